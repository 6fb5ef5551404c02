"""How long an array was at risk, and what its users felt meanwhile: the words and the table of a report.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.analysis.bad_days import AFTER, BEFORE, DEGRADED, REBUILDING, BadDay, bad_days
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.model.access_count import fatal_members
from raidlab.report.figures.bad_days import deepest
from raidlab.report.figures.words import number

_MINUTE, _HOUR = 60.0, 3600.0
# Beyond this many of the smaller unit the larger one is easier to read.
_ENOUGH = 2
# More members than this are counted, not named.
_MOST_NAMED = 3


@dataclass(frozen=True)
class BadDayRow:
    """One array under one load."""

    target: str
    array: str
    workload: str
    level: str
    risk_s: float
    risk: str
    rebuild: str
    terabyte: str
    """How long a terabyte would take at the rate of this rebuild."""
    bears: str
    """How many more members it may lose meanwhile, whichever they are; or which one it may not."""
    cells: dict[str, str]
    """By phase: throughput, its share of that before, and p99."""
    sentence: str


def rows_of(analysis: Analysis) -> list[BadDayRow]:
    """A row for each array that lost a member, or had one rebuilt, at the heaviest load of each workload."""
    return [_row(day) for day in deepest(bad_days(analysis))]


def span(seconds: float) -> str:
    """A time as people say it: 41 s, 9.2 min, 14 h."""
    for unit_s, unit in ((_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= _ENOUGH * unit_s:
            return f"{seconds / unit_s:.3g} {unit}"
    return f"{seconds:.3g} s"


def _row(day: BadDay) -> BadDayRow:
    point, hours, further = day.point, day.hours_a_tb, _further(day)
    return BadDayRow(
        point.target,
        point.array,
        point.workload,
        point.level,
        day.risk_s,
        span(day.risk_s) if day.is_whole else f"over {span(day.risk_s)}",
        span(day.rebuild_s) if day.rebuild_s is not None else _unfinished(day),
        span(hours * _HOUR) if hours is not None else "",
        "" if further is None else further.cell,
        _cells(day),
        _sentence(day, "" if further is None else f", and {further.words}"),
    )


@dataclass(frozen=True)
class _Further:
    """What else may fail while members are lost: in a cell of the table, and in a sentence."""

    cell: str
    words: str


def _further(day: BadDay) -> _Further | None:
    """What else may fail: so many members whichever, or one that is not the wrong one; None if nothing tells."""
    point, borne = day.point, day.point.failures_borne
    if borne is None:
        return None
    rebuilt = point.run.rebuilds.filter(point.run.rebuilds["cell"] == point.cells[0])["leaf"].to_list()
    # Members that were missing from the beginning are taken off already.
    still = max(0, borne - (0 if point.missing else len(rebuilt)))
    if still:
        may = "one more member may fail" if still == 1 else f"{still} more members may fail"
        return _Further(str(still), f"{may} meanwhile, whichever")
    lost = {*point.missing, *rebuilt}
    fatal, others = fatal_members(point.run.tree(point.array), lost), point.members - len(lost)
    if not 0 < len(fatal) < others:
        return _Further("none", "any further loss meanwhile may lose data")
    named = f"member {' or '.join(map(str, fatal))}" if len(fatal) <= _MOST_NAMED else f"{len(fatal)} of the {others}"
    return _Further(
        f"one, but not {named}", f"the loss of {named} meanwhile may lose data, that of any other would not"
    )


def _unfinished(day: BadDay) -> str:
    if day.phase(REBUILDING) is None:
        return "none"
    return f"{100 * day.rebuilt_bytes / max(1, day.member_bytes):.0f} % done"


def _cells(day: BadDay) -> dict[str, str]:
    found = {}
    for name in (BEFORE, DEGRADED, REBUILDING, AFTER):
        phase = day.phase(name)
        kept = day.kept_percent(name) if name != BEFORE else None
        share = "" if kept is None else f" ({kept:.0f} %)"
        rate, time = (None, None) if phase is None else (phase.mb_s, phase.p99_ms)
        said = [] if rate is None else [f"{number(rate)} MB/s{share}"]
        said += [] if time is None else [f"p99 {number(time)} ms"]
        found[name] = ", ".join(said)
    return found


def _sentence(day: BadDay, further: str) -> str:
    """What the day was like: what is kept, for how long, at what risk."""
    if not day.risk_s:
        return "the run was over before a member failed."
    throttle, said = f" at the throttle {day.throttle}" if day.throttle else "", []
    for name, words in ((REBUILDING, f"of rebuild{throttle}"), (DEGRADED, "without the lost member")):
        phase, kept = day.phase(name), day.kept_percent(name)
        if phase is not None and kept is not None:
            how_long = span(phase.end_s - phase.begin_s)
            said.append(f"{kept:.0f} % during {how_long} {words}{_slower(day, name)}")
    keeps = f"keeps {' and '.join(said)}; " if said else ""
    end = "" if day.is_whole else " (the run was over before it was whole)"
    return f"{keeps}at risk for {span(day.risk_s)}{end}{further}."


def headline(rows: list[BadDayRow]) -> str:
    """Who is at risk the shortest and the longest, in a sentence; of a single array all that is said of it."""
    if len(rows) == 1:
        return f"{rows[0].array} {rows[0].sentence}"
    shortest, longest = min(rows, key=lambda row: row.risk_s), max(rows, key=lambda row: row.risk_s)
    return f"At risk for {shortest.risk} ({shortest.array}) to {longest.risk} ({longest.array}) after a failure."


def _slower(day: BadDay, name: str) -> str:
    before, phase = day.phase(BEFORE), day.phase(name)
    if before is None or phase is None or not before.p99_ms or phase.p99_ms is None:
        return ""
    return f" (p99 {number(phase.p99_ms)} ms, not {number(before.p99_ms)})"

"""How long an array was at risk, and what its users felt meanwhile: the words and the table of a report.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raidlab.analysis.bad_days import (
    BEFORE,
    DEGRADED,
    LEAST_SECONDS,
    PHASES,
    REBUILDING,
    SCRUBBING,
    SLOW,
    BadDay,
    bad_days,
)
from raidlab.analysis.metrics import Analysis
from raidlab.report.figures.bad_days import deepest
from raidlab.report.figures.words import number
from raidlab.study.units import format_number

_MINUTE, _HOUR = 60.0, 3600.0
# Beyond this many of the smaller unit the larger one is easier to read.
_ENOUGH = 2
_MOST_NAMED = 8
# What takes from clients while no member is gone: of a time, and by itself.
_HARDSHIPS = {SCRUBBING: ("of a scrub", "during a scrub"), SLOW: ("with a slow member", "with a slow member")}


@dataclass(frozen=True)
class BadDayRow:
    """One array under one load."""

    target: str
    array: str
    workload: str
    level: str
    repeats: int
    risk_s: float
    risk: str
    is_whole: bool
    is_lost: bool
    rebuild: str
    terabyte: str
    """How long a terabyte would take at the rate of this rebuild; nothing where it never came to its end."""
    terabyte_s: float | None
    floor_kib_s: float | None
    """The least rate of md's, if the rebuild was held there."""
    missed_kib_s: float | None
    """The rate that its throttle asks for, if the rebuild was slower."""
    bears: str
    """How many of the other members might have failed meanwhile without loss of data, each by itself."""
    bears_any: bool
    """Whether any of them might, while it had lost one."""
    kept_percent: dict[str, float]
    """By what takes from clients while no member is gone: the share of throughput that is kept."""
    cells: dict[str, str]
    """By phase: throughput, its share of that before, and p99."""
    sentence: str


def rows_of(analysis: Analysis) -> list[BadDayRow]:
    """A row for each array that scrubbed, had a slow member, lost one or had one rebuilt, at its heaviest load."""
    days = deepest(bad_days(analysis))
    phases = [name for name in PHASES if any(day.phase(name) for day in days)]
    return [_row(day, phases) for day in days]


def span(seconds: float, interval: tuple[float, float] | None = None) -> str:
    """A time as people say it: 41 s, 9.2 min, 14 h; with an interval that shows: 9.2 min (9.1 to 9.3)."""
    units = ((_HOUR, "h"), (_MINUTE, "min"))
    unit_s, unit = next(((s, unit) for s, unit in units if seconds >= _ENOUGH * s), (1.0, "s"))
    low, high = (format_number(max(0.0, end) / unit_s) for end in interval or (seconds, seconds))
    return f"{format_number(seconds / unit_s)} {unit}{f' ({low} to {high})' if low != high else ''}"


def _row(day: BadDay, phases: list[str]) -> BadDayRow:
    point, hours, fatal = day.point, day.hours_a_tb, day.fatal
    return BadDayRow(
        point.target,
        point.array,
        point.workload,
        point.level,
        len(day.repeats),
        day.risk_s,
        _risk(day),
        day.is_whole,
        bool(day.losses),
        span(day.rebuild_s) if day.rebuild_s is not None else _unfinished(day),
        span(hours * _HOUR) if hours is not None else "",
        hours * _HOUR if hours is not None else None,
        day.floor_kib_s,
        day.missed_kib_s,
        "" if fatal is None or not day.risk_s else f"{day.others - len(fatal)} of {day.others}",
        fatal == () and day.risk_s > 0,
        {name: kept for name in _HARDSHIPS if (kept := day.kept_percent(name)) is not None},
        _cells(day, phases),
        _sentence(day),
    )


def _risk(day: BadDay) -> str:
    if day.losses:
        return "data lost"
    return f"{'' if day.is_whole else 'over '}{span(day.risk_s, day.risk_interval)}" if day.risk_s else "none"


def _unfinished(day: BadDay) -> str:
    if day.phase(REBUILDING) is None:
        return "none"
    rate = day.rebuilt_bytes_per_s
    at = "" if rate is None else f" at {number(rate / 1e6)} MB/s"
    stopped = ", then given up" if day.is_stopped else ""
    return f"{number(100 * day.rebuilt_bytes / max(1, day.member_bytes))} % done{at}{stopped}"


def _kept(day: BadDay, name: str) -> str | None:
    """The share of throughput that is kept in a phase, with its interval; None where it is too short to tell."""
    kept, interval = day.kept_percent(name), day.kept_interval(name)
    if kept is None:
        return None
    if day.keeps_up(name):
        return "all that arrives"
    scatter = "" if interval is None else f" ({interval[0]:.0f} to {interval[1]:.0f})"
    return f"{kept:.0f} %{scatter}{' of what arrives' if day.point.rate_per_s else ''}"


def _cells(day: BadDay, phases: list[str]) -> dict[str, str]:
    found = {}
    for name in phases:
        phase = day.phase(name)
        kept = _kept(day, name) if name != BEFORE else None
        share = "" if kept is None else f", {kept}"
        rate, time = (None, None) if phase is None else (phase.mb_s, phase.p99_ms)
        said = [] if rate is None else [f"{number(rate)} MB/s{share}"]
        said += [] if time is None else [f"p99 {number(time)} ms"]
        found[name] = ", ".join(said)
    return found


def _sentence(day: BadDay) -> str:
    """What the day was like: what is kept, for how long, at what risk."""
    keeps = _keeps(day) or ("" if day.losses else _too_short(day))
    if not day.risk_s and not day.losses:
        return f"{keeps}{_unharmed(day)}."
    if day.losses:
        often = f" So in {len(day.losses)} of {len(day.repeats)} repeats." if len(day.repeats) > 1 else ""
        return f"{day.losses[0]}{often}{f' It {keeps[:-2]}.' if keeps else ''}"
    came = f"; {_unfinished(day)}" if day.phase(REBUILDING) is not None else ""
    never = "nothing took its place" if day.throttle is None else f"the run was over before it was whole{came}"
    end = "" if day.is_whole else f" ({never})"
    return f"{keeps}at risk for {span(day.risk_s, day.risk_interval)}{end}{_further(day)}."


def _keeps(day: BadDay) -> str:
    """What is kept of throughput while something was wrong; nothing where that was too short to tell."""
    throttle, said = f" at the throttle {day.throttle.in_words}" if day.throttle else "", []
    for name, words in (
        (REBUILDING, f"of rebuild{throttle}"),
        (DEGRADED, "without the lost member"),
        *((name, of_time) for name, (of_time, _) in _HARDSHIPS.items()),
    ):
        phase, kept = day.phase(name), _kept(day, name)
        if phase is not None and kept is not None:
            said.append(f"{kept} during {span(day.length_s(name))} {words}{_slower(day, name)}")
    return f"keeps {' and '.join(said)}; " if said else ""


def _too_short(day: BadDay) -> str:
    """That no share can be told of what users kept; nothing where there was nothing before to compare with."""
    wrong = [phase for phase in day.phases if phase.name in (DEGRADED, REBUILDING, *_HARDSHIPS)]
    if not wrong or day.phase(BEFORE) is None or len(day.repeats) > 1:
        return ""
    return f"too short to say what users keep, of one repeat (shares need {LEAST_SECONDS} s of each phase); "


def _unharmed(day: BadDay) -> str:
    """Why nothing was at risk."""
    if day.rebuilt_bytes:
        return "all of it fell into the warm-up, of which no second is recorded"
    if any(map(day.phase, _HARDSHIPS)):
        return "no member was lost"
    return "the run was over before anything befell a member"


def _further(day: BadDay) -> str:
    """What another failure would have done meanwhile: that depends on whose it is."""
    fatal = day.fatal
    if fatal is None:
        return ""
    gone = day.point.members - day.others
    when = "meanwhile" if gone == 1 else f"while {gone} are gone"
    if not fatal:
        return f", and any one more member may fail {when}"
    if len(fatal) == day.others:
        return f", and any further loss {when} loses data"
    if len(fatal) == 1:
        return f", and member {fatal[0]} must not fail {when} (any other of the {day.others} left may)"
    return f", and {len(fatal)} of the {day.others} members left must not fail {when} ({_names(fatal)})"


def _names(members: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, members[:_MOST_NAMED]))
    return shown if len(members) <= _MOST_NAMED else f"{shown} and {len(members) - _MOST_NAMED} more"


def headline(rows: list[BadDayRow]) -> str:
    """Who is at risk the shortest and the longest, and what else costs; of a single array all that is said of it."""
    if len(rows) == 1:
        return f"{rows[0].array} {rows[0].sentence}"
    lost, kept = ([row for row in rows if row.is_lost is is_lost] for is_lost in (True, False))
    names = ", ".join(dict.fromkeys(row.array for row in lost))
    said = [f"Data lost: {names}."] if lost else []
    if kept := [row for row in kept if row.risk_s]:
        ends = [chosen(kept, key=lambda row: row.risk_s) for chosen in (min, max)]
        told = dict.fromkeys(f"{'' if row.is_whole else 'over '}{span(row.risk_s)} ({row.array})" for row in ends)
        said.append(f"At risk for {' to '.join(told)} after a failure.")
        bearing = dict.fromkeys(row.array for row in kept if row.bears_any)
        said += [f"Any one more member may fail meanwhile: {', '.join(bearing)}."] if bearing else []
    for name, (_, words) in _HARDSHIPS.items():
        if with_it := [(row.kept_percent[name], row.array) for row in rows if name in row.kept_percent]:
            told = dict.fromkeys(f"{percent:.0f} % ({array})" for percent, array in (min(with_it), max(with_it)))
            said.append(f"{' to '.join(told)} of throughput is kept {words}.")
    return " ".join(said)


def terabytes(rows: list[BadDayRow]) -> str:
    """What a risk comes to on larger disks: that of a study's small ones must not pass for theirs."""
    found = [(row.terabyte_s, row) for row in rows if row.terabyte_s is not None]
    if not found:
        return ""
    ends = [min(found, key=lambda one: one[0])[1], max(found, key=lambda one: one[0])[1]]
    told = " to ".join(dict.fromkeys(f"{row.terabyte} ({row.array})" for row in ends))
    return f"How long hangs on the size of the disks: at these rates the rebuild of a terabyte takes {told}, reckoned."


def _by_rate(rows: list[BadDayRow], rate: Callable[[BadDayRow], float | None]) -> list[tuple[str, str]]:
    """The rates that rows have, and the arrays of each."""
    found: dict[float, dict[str, None]] = {}
    for row in rows:
        if (of := rate(row)) is not None:
            found.setdefault(of, {})[row.array] = None
    return [(f"{of:.6g}", ", ".join(names)) for of, names in sorted(found.items())]


def notes(rows: list[BadDayRow]) -> list[str]:
    """What holds of several rows: what decides how long a rebuild takes, and how sure the shares are."""
    said = []
    for floor, names in _by_rate(rows, lambda row: row.floor_kib_s):
        said.append(
            f"At md's least rate, {floor} KiB/s a member (speed_limit_min; min_kib_s here): {names}. Where that rate "
            "holds a rebuild, not the disks decide how many hours a terabyte takes: a higher one shortens them and "
            "takes from clients. A run with another min_kib_s tells."
        )
    for rate, names in _by_rate(rows, lambda row: row.missed_kib_s):
        said.append(
            f"Slower than the {rate} KiB/s a member that the throttle asks for, which then holds little back: {names}. "
            "Clients' requests and what is rebuilt at a time (unit, policy) decide how many hours a terabyte takes."
        )
    if any(row.repeats == 1 for row in rows):
        said.append(
            "Of one repeat: how much of a share is chance is not known, above 100 % as below; repeats = 3 would tell."
        )
    else:
        said.append(f"Behind shares and risks stand 95 % intervals over {min(row.repeats for row in rows)} repeats.")
    return said


def _slower(day: BadDay, name: str) -> str:
    before, phase = day.phase(BEFORE), day.phase(name)
    if before is None or phase is None or not before.p99_ms or phase.p99_ms is None:
        return ""
    return f" (p99 {number(phase.p99_ms)} ms, not {number(before.p99_ms)})"

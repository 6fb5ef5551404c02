"""What a check answers.

Invariants:

- A verdict is PASS, UNKNOWN, WARN or INVALID, and comes with the evidence in a sentence that holds the figures.
- UNKNOWN is the answer "could not be determined, because ...": neither a fault nor an all-clear.
- A check that does not apply to a run gives no finding; one that applies always gives one, PASS included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import polars as pl

from raidlab.results.answer import VERDICTS

if TYPE_CHECKING:
    from raidlab.analysis.metrics import Analysis
    from raidlab.study.schema import Array

PASS, UNKNOWN, WARN, INVALID = "PASS", "UNKNOWN", "WARN", "INVALID"
# What tables and documents call them.
_COLUMNS = ("check", "target", "verdict", "evidence", "mend")
SEVERITY: dict[str, int] = {verdict: place for place, verdict in enumerate(VERDICTS)}


# How the engine says that a rebuild or a scrub did not come to its end.
_NOT_OVER = "when the run was over"
_NEVER_IDLE_REMEDY = "Take the throttle md, rate or share, or a load of arrivals (open), which leaves pauses."


@dataclass(frozen=True)
class Concern:
    """What a finding says of one array under one workload.

    Attributes
    ----------
    says : str
        A sentence without its end, for where those figures stand alone.
    """

    array: str
    workload: str
    says: str


@dataclass(frozen=True)
class Finding:
    """The answer of one check about one target.

    Attributes
    ----------
    check : str
        The check's name, which is its file's.
    verdict : str
        ``PASS``, ``UNKNOWN``, ``WARN`` or ``INVALID``.
    evidence : str
        A sentence with the figures it rests on.
    remedy : str
        The flag or the action that would remedy it; empty for PASS.
    concerns : tuple of Concern
        What it says of single figures, the worst first; empty where it is about the target as a whole.
    """

    check: str
    target: str
    verdict: str
    evidence: str
    remedy: str = ""
    concerns: tuple[Concern, ...] = ()

    def row(self) -> dict[str, str]:
        """It as tables and documents have it, where the remedy stands under ``mend``."""
        return dict(zip(_COLUMNS, (self.check, self.target, self.verdict, self.evidence, self.remedy), strict=True))


def frame_of(findings: Iterable[Finding]) -> pl.DataFrame:
    """Findings as a table, a row each."""
    return pl.DataFrame([finding.row() for finding in findings], schema=dict.fromkeys(_COLUMNS, pl.String))


def told_by_engine(
    analysis: Analysis, name: str, remedy: str, waits: Callable[[Array], bool] = lambda _array: False
) -> Iterator[Finding]:
    """What the engine says in its check ``name`` of each array and load, in the first repeat.

    What is no PASS has the engine's remedy, or else this one. ``waits`` says of which arrays that work goes on only
    while no client asks for anything: beside a closed loop, that may be never.
    """
    waiting = {array.name for array in analysis.run.study.array if waits(array)}
    for point in analysis.points:
        rows = analysis.run.of_cells("checks", point.cells[:1]).filter(pl.col("check") == name)
        if rows.is_empty():
            continue
        where = f"{point.array}, {point.workload}, {point.level}{', first repeat' if len(point.cells) > 1 else ''}"
        verdict = next((worse for worse in (INVALID, WARN) if worse in rows["verdict"]), PASS)
        mend = "" if verdict == PASS else next(filter(None, rows["mend"]), remedy)
        evidence = f"{where}: {' '.join(rows['evidence'])}"
        if verdict == PASS and point.array in waiting and _NOT_OVER in evidence and not point.is_open:
            verdict, mend = WARN, _NEVER_IDLE_REMEDY
            evidence += (
                " The throttle 'idle' waits until no request is in flight, and beside a closed loop that may be never."
            )
        yield Finding(name, point.target, verdict, evidence, mend)


def that_concern(findings: Iterable[Finding], targets: set[str], *, among: Iterable[str]) -> list[Finding]:
    """Findings about some targets of a run, or about what is none of ``among``, all its targets: the run as a whole."""
    others = set(among) - targets
    return [finding for finding in findings if finding.target not in others]


def warns_of(findings: Iterable[Finding], target: str, lines: Iterable[tuple[str, str]]) -> list[Finding]:
    """What says WARN or worse of figures of a target, of these arrays and workloads (or patterns of names) alone.

    Examples
    --------
    >>> concerns = (Concern("RAID 1", "scan", "It is slow"), Concern("RAID 5", "scan", "It is slower"))
    >>> plain = Finding("device_too_plain", "sim", "WARN", "It.", "Mend it.", concerns)
    >>> [one.evidence for one in warns_of([plain], "sim", {("RAID ?", "scan")})]
    ['It is slow; the same is to be said of 1 more.']
    >>> warns_of([plain], "sim", {("RAID 1", "other")})
    []
    """
    asked, found = list(lines), []
    for finding in findings:
        mine = tuple(
            one
            for one in finding.concerns
            if any(fnmatchcase(one.array, names) and fnmatchcase(one.workload, loads) for names, loads in asked)
        )
        if mine and finding.target == target and SEVERITY[finding.verdict] >= SEVERITY[WARN]:
            more = f"; the same is to be said of {len(mine) - 1} more" if len(mine) > 1 else ""
            found.append(replace(finding, evidence=f"{mine[0].says}{more}.", concerns=mine))
    return found


def words_of(findings: Sequence[Finding], verdicts: Sequence[str]) -> str:
    """The names of checks by verdict, in a line.

    Examples
    --------
    >>> words_of([Finding("cache", "live", INVALID, "It."), Finding("clock", "run", PASS, "It.")], (INVALID, WARN))
    'INVALID cache (live)'
    """
    found = []
    for verdict in verdicts:
        names = dict.fromkeys(f"{one.check} ({one.target})" for one in findings if one.verdict == verdict)
        found += [f"{verdict} {', '.join(names)}"] if names else []
    return "; ".join(found)

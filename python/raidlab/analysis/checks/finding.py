"""What a check answers.

Invariants:

- A verdict is PASS, UNKNOWN, WARN or INVALID, and comes with the evidence in a sentence that holds the figures.
- UNKNOWN is the answer "could not be determined, because ...": neither a fault nor an all-clear.
- A check that does not apply to a run gives no finding; one that applies always gives one, PASS included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    """

    check: str
    target: str
    verdict: str
    evidence: str
    remedy: str = ""

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

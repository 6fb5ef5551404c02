"""May results of others be set beside one's own?

A result without its settings is a number without a meaning: a write cache alone makes a factor of several. And another
workload is another question.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.results.foreign import ForeignRow
from raidlab.study.figure import StudyFigure

NAME = "foreign"
_TARGET = "foreign"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for each figure in which foreign results had another workload; UNKNOWN where their settings are not told."""
    rows = list(analysis.run.foreign)
    if not rows:
        return
    drawn: set[ForeignRow] = set()
    for spec in analysis.run.study.figure:
        mine = _rows(spec, rows)
        drawn |= set(mine)
        other = [name for name in spec.workloads if spec.foreign is not None and name != spec.foreign.workload]
        if mine and other:
            told = f"'{spec.number}' sets foreign results of '{mine[0].workload}' beside own ones of {_quoted(other)}."
            yield Finding(NAME, _TARGET, WARN, told, "Compare shapes, not heights, or run the same workload.")
    left = len(rows) - sum(1 for row in rows if row in drawn)
    unknown = sorted({word for row in rows for word in row.unknown})
    if unknown:
        names = ", ".join(dict.fromkeys(row.controller for row in rows if row.unknown))
        told = f"Of the results of {names} is not known: {', '.join(unknown)}."
        yield Finding(NAME, _TARGET, UNKNOWN, told, "Add the column to the file if you find out; else judge with care.")
    if left:
        told = f"{left} of {len(rows)} foreign results have a level and workload that no figure of the study draws."
        yield Finding(NAME, _TARGET, UNKNOWN, told, "Name them as a [[figure]] of the study does.")
    if not unknown and not left:
        yield Finding(NAME, _TARGET, PASS, f"{len(rows)} foreign results say where they come from and what was set.")


def _rows(spec: StudyFigure, rows: list[ForeignRow]) -> list[ForeignRow]:
    wanted = spec.foreign
    return [] if wanted is None else [r for r in rows if (r.level, r.workload) == (wanted.level, wanted.workload)]


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)

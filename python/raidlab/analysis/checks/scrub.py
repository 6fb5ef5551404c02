"""What did the array find when it went over all it holds, and how long did that take?

A run with a scrub is a run of that scrub: its figures are those of an array that works for itself as well. Every array
and load has its own, and each is told.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis

NAME = "scrub"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with how long each scrub took beside each load; WARN where redundancy did not agree or was not readable."""
    told = analysis.run.checks.filter(pl.col("check") == NAME)
    for point in analysis.points:
        rows = told.filter(pl.col("cell").is_in(point.cells[:1]))
        if rows.is_empty():
            continue
        where = f"{point.array}, {point.workload}, {point.level}{', first repeat' if len(point.cells) > 1 else ''}"
        finds = WARN in rows["verdict"]
        remedy = "Members that were not written through this array never agreed: let a scrub of 'repair' go first."
        verdict, mend = (WARN, remedy) if finds else (PASS, "")
        yield Finding(NAME, point.target, verdict, f"{where}: {' '.join(rows['evidence'])}", mend)

"""How long did it take until members were rebuilt?

A run with new members in the places of missing ones is a run of that rebuild: its figures are those of an array that
works for itself as well, and of a whole one once the rebuild is over. Every array and load has its own, and each is
told.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis

NAME = "rebuild"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with how long each rebuild took beside each load, or how far it came; WARN where a member fails later."""
    told = analysis.run.checks.filter(pl.col("check") == NAME)
    for point in analysis.points:
        rows = told.filter(pl.col("cell").is_in(point.cells[:1]))
        if rows.is_empty():
            continue
        where = f"{point.array}, {point.workload}, {point.level}{', first repeat' if len(point.cells) > 1 else ''}"
        is_later = WARN in rows["verdict"]
        verdict, remedy = (WARN, "Measure for longer, or let it fail sooner.") if is_later else (PASS, "")
        yield Finding(NAME, point.target, verdict, f"{where}: {' '.join(rows['evidence'])}", remedy)

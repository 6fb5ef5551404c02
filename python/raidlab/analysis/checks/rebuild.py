"""How long did it take until members were rebuilt?

A run with new members in the places of missing ones is a run of that rebuild: its figures are those of an array that
works for itself as well, and of a whole one once the rebuild is over. Every array and load has its own, and each is
told.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.checks.finding import PASS, Finding
from raidlab.analysis.metrics import Analysis

NAME = "rebuild"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with how long each rebuild took beside each load, or how far it came."""
    told = analysis.run.checks.filter(pl.col("check") == NAME)
    for point in analysis.points:
        rows = told.filter(pl.col("cell").is_in(point.cells[:1])).iter_rows(named=True)
        evidence = " ".join(row["evidence"] for row in rows)
        if evidence:
            where = f"{point.array}, {point.workload}, {point.level}"
            yield Finding(NAME, point.target, PASS, f"{where}: {evidence}")

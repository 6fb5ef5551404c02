"""Were data lost, because a member failed before another was rebuilt?

Whether a rebuild is over when the next member fails, only the run can tell. Where it is not and the array bears no
more, the run ends there: its figures are of an array that has lost what it held.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.checks.finding import INVALID, PASS, Finding
from raidlab.analysis.metrics import Analysis

NAME = "data_loss"


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID for each array and load with which data were lost; PASS where members failed and none were."""
    failing = {
        array.name
        for array in analysis.run.study.array
        if sum(event.fail is not None for event in array.events) + len(array.missing) > 1
    }
    for point in analysis.points:
        lost = point.rows_of("checks").filter(pl.col("check") == NAME)
        where = f"{point.array}, {point.workload}, {point.level}"
        if lost.height:
            repeats = f" So in {lost.height} of {len(point.rows)} repeats." if len(point.rows) > 1 else ""
            yield Finding(
                NAME,
                point.target,
                INVALID,
                f"{where}: {lost['evidence'][0]}{repeats}",
                "Let the next member fail later, rebuild faster (throttle, after), or take a level that bears more.",
            )
        elif point.array in failing:
            yield Finding(NAME, point.target, PASS, f"{where}: no data were lost, though more than one member was.")

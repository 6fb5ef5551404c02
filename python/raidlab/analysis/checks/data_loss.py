"""Were data lost, because a member failed before another was rebuilt, or because no other could be read?

Whether a rebuild is over when the next member fails, only the run can tell. Where it is not and the array bears no
more, the run ends there: its figures are of an array that has lost what it held. So are those of one of which a place
could not be read when no redundancy was left: a rebuild is given up there (`rebuild`), a request fails (`unreadable`).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.checks.finding import INVALID, PASS, SEVERITY, Finding
from raidlab.analysis.metrics import Analysis

NAME = "data_loss"
_REMEDY = (
    "Let the next member fail later, rebuild faster (throttle, after), scrub before, or take a level that bears more."
)


def losses_among(checks: pl.DataFrame) -> pl.DataFrame:
    """Those of the engine's checks that say that data were lost: a failure too many, or a rebuild that was given up."""
    is_given_up = (pl.col("check") == "rebuild") & (pl.col("verdict") == INVALID)
    return checks.filter((pl.col("check") == NAME) | is_given_up)


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID for each array and load with which data were lost, WARN where a request failed for it, else PASS."""
    arrays = analysis.run.study.array
    failing = {
        array.name for array in arrays if sum(event.fail is not None for event in array.events) + len(array.missing) > 1
    }
    for point in analysis.points:
        checks = point.rows_of("checks")
        lost = losses_among(checks)
        where, met = f"{point.array}, {point.workload}, {point.level}: ", ""
        spoiled = checks.filter(pl.col("check") == "unreadable")
        if not lost.height and not (lost := spoiled.filter(pl.col("verdict") != PASS)).is_empty():
            met = "requests asked for what could not be read and no other member could give back."
        if lost.height:
            times, often = lost["cell"].n_unique(), len(point.rows)
            repeats = f" So in {times} of {often} repeats." if often > 1 else ""
            verdict = max(lost["verdict"], key=SEVERITY.__getitem__)
            remedy = next(filter(None, lost["mend"]), _REMEDY)
            yield Finding(NAME, point.target, verdict, f"{where}{met or lost['evidence'][0]}{repeats}", remedy)
        elif point.array in failing or spoiled.height:
            why = "more than one member was" if point.array in failing else "some of a member could not be read"
            yield Finding(NAME, point.target, PASS, f"{where}no data were found to be lost, though {why}.")

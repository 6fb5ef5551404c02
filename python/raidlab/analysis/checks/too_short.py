"""Did each cell run long enough for its percentiles?

A p99 that rests on ten requests is the largest but one of a lucky few.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, PASS, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.metrics import Analysis
from raidlab.stats.percentile import least_values

NAME = "too_short"
# Fewer requests than these have no interval of their 99th percentile, however independent they are; the 90th of fewer
# than ten is their maximum, which is no percentile.
_INTERVAL_OF = 99
_LEAST_REQUESTS = 10


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID for cells with next to no requests, WARN for few."""
    # Of streams, and of runs that are as short as they are meant to be, rates are told and no percentiles.
    rates = {one.name for one in analysis.run.study.workload if one.streams is not None or one.count is not None}
    asked = [point for point in analysis.points if point.workload not in rates]
    for target in dict.fromkeys(point.target for point in asked):
        points = [point for point in asked if point.target == target]
        counted = [(point.total("all_requests"), point) for point in points]
        fewest, point = min(counted, key=lambda pair: pair[0])
        needed = least_values(_INTERVAL_OF)
        few = sum(1 for count, _ in counted if count < needed)
        where = f"{point.array}, {point.workload}, {point.level}"
        if fewest < _LEAST_REQUESTS:
            verdict = INVALID
        elif few:
            verdict = WARN
        else:
            verdict = PASS
        evidence = f"The fewest requests behind a percentile are {fewest:.0f} ({where})"
        short = (
            f"; {few} of {len(points)} points have fewer than {needed}, the least for an interval of a p{_INTERVAL_OF}."
        )
        evidence += short if few else "."
        more = knob(
            analysis,
            f"Raise measure of [{target}] in the study.",
            f"Raise quick.measure of [{target}] in the study, or leave out --quick.",
            "Raise --runtime.",
        )
        remedy = "" if verdict == PASS else more
        yield Finding(NAME, target, verdict, evidence, remedy)

"""A metric over a whole sweep of loads: its least, greatest or mean; of an array alone, or against a reference.

Loads that both have run are set beside each other one by one: at equal total depth, whatever number of volumes it is
spread over. The mean of ratios is the geometric one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from raidlab.analysis.metrics import Metric, Point
from raidlab.published.quantities.kind import Kind, Need, PointKeys, Reading, Source, metric_named, over_repeats
from raidlab.published.quantities.metric import needs_at
from raidlab.study import Study
from raidlab.study.words import Name


class Keys(PointKeys):
    """What a measure of this kind says."""

    of: Literal["mean", "least", "greatest"] = "mean"
    """What is taken over the sweep."""
    metric: str
    """Which metric."""
    reference: Name | None = None
    """The array it is divided by, load by load."""
    reference_workload: Name | None = None
    """The reference's workload, where it is another."""
    from_depth: Annotated[int, Field(ge=1)] = 1
    """The least depth that counts."""
    to_depth: Annotated[int, Field(ge=1)] = 2**16
    """The greatest depth that counts."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number over all repeats, and for each."""
    metric = metric_named(keys.metric)
    own = _swept(keys, source.points_of(keys.array, keys.workload))
    if keys.reference is None:
        return over_repeats(own, lambda points: _over(keys, metric, points, None))
    reference = _swept(keys, source.points_of(keys.reference, keys.reference_workload or keys.workload))
    others = {_load(point): point for point in reference}
    both = [point for point in own if _load(point) in others]
    pairs = [*both, *(others[_load(point)] for point in both)]
    return over_repeats(pairs, lambda points: _over(keys, metric, points[: len(both)], points[len(both) :]))


def _swept(keys: Keys, points: list[Point]) -> list[Point]:
    return [point for point in points if point.is_swept and (_in_range(keys, point.depth) or point.load == "open")]


def _in_range(keys: Keys, depth: int) -> bool:
    return keys.from_depth <= depth <= keys.to_depth


def _load(point: Point) -> tuple[str, int, float]:
    return point.load, point.depth, point.rate_per_s


def _over(keys: Keys, metric: Metric, points: Sequence[Point], others: Sequence[Point] | None) -> float | None:
    found = []
    for index, point in enumerate(points):
        value = metric.compute(point, None)
        below = metric.compute(others[index], None) if others is not None else 1.0
        if value is None or not below:
            return None
        found.append(value / below)
    if not found:
        return None
    if keys.of != "mean":
        return min(found) if keys.of == "least" else max(found)
    if keys.reference is None or min(found) <= 0:
        return sum(found) / len(found)
    return math.exp(sum(math.log(one) for one in found) / len(found))


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """Every load of the sweep that counts."""
    found = needs_at({keys.array}, keys.workload, "maximum", study) or set()
    if keys.reference is not None:
        found |= needs_at({keys.reference}, keys.reference_workload or keys.workload, "maximum", study) or set()
    return {need for need in found if need[2].kind == "open" or _in_range(keys, need[2].depth)}


KIND = Kind("sweep", "a metric over a sweep of loads", Keys, read, needs)

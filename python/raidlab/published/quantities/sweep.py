"""A metric over a whole sweep of loads: its least, greatest or mean; of an array alone, or against a reference.

Loads that both have run are set beside each other one by one: at equal total depth, whatever number of volumes it is
spread over. The mean of ratios is the geometric one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from raidlab.analysis.metrics import METRICS, Metric, Point
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source
from raidlab.published.quantities.metric import needs_at
from raidlab.study import Study
from raidlab.study.words import Name, Table

_METRICS: dict[str, Metric] = {metric.kind: metric for metric in METRICS}


class Keys(Table):
    """What a measure of this kind says."""

    of: Literal["mean", "least", "greatest"] = "mean"
    """What is taken over the sweep."""
    metric: str
    """Which metric."""
    array: Name
    """Which array."""
    workload: Name
    """Which workload."""
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
    if keys.metric not in _METRICS:
        raise NotThereError(f"there is no metric '{keys.metric}'")
    own = _swept(keys, source.points_of(keys.array, keys.workload))
    if keys.reference is None:
        pairs: list[tuple[Point, Point | None]] = [(point, None) for point in own]
    else:
        others = {_load(point): point for point in _swept(keys, _reference(keys, source))}
        pairs = [(point, others[_load(point)]) for point in own if _load(point) in others]
    value = _over(keys, pairs)
    if value is None:
        return None
    repeats = min(min(len(own.rows), len(other.rows) if other else len(own.rows)) for own, other in pairs)
    each = [_over(keys, [(_one(own, i), other and _one(other, i)) for own, other in pairs]) for i in range(repeats)]
    return Reading.over(value, each)


def _reference(keys: Keys, source: Source) -> list[Point]:
    assert keys.reference is not None, "the caller looked"
    return source.points_of(keys.reference, keys.reference_workload or keys.workload)


def _swept(keys: Keys, points: list[Point]) -> list[Point]:
    return [point for point in points if point.is_swept and (_in_range(keys, point.depth) or point.load == "open")]


def _in_range(keys: Keys, depth: int) -> bool:
    return keys.from_depth <= depth <= keys.to_depth


def _load(point: Point) -> tuple[str, int, float]:
    return point.load, point.depth, point.rate_per_s


def _one(point: Point, repeat: int) -> Point:
    return replace(point, rows=(point.rows[repeat],))


def _over(keys: Keys, pairs: list[tuple[Point, Point | None]]) -> float | None:
    compute = _METRICS[keys.metric].compute
    found: list[float] = []
    for own, other in pairs:
        value, below = compute(own, None), compute(other, None) if other is not None else 1.0
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


KIND = Kind(
    kind="sweep",
    title="a metric over a sweep of loads",
    keys=Keys,
    is_run=True,
    read=read,
    needs=needs,
)

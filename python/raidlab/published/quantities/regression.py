"""A straight line through a metric over the queue depths of a sweep: what one more request outstanding adds.

Reference: least squares; the slope over the number of readers is the "additional time" of S. Hauser, L. Berman,
G. Thoma, *Is the bang worth the buck?*, 1996.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from raidlab.analysis.metrics import METRICS, Metric, Point
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source
from raidlab.published.quantities.metric import needs_at
from raidlab.stats.regression import line
from raidlab.study import Study
from raidlab.study.words import Name, Table

_METRICS: dict[str, Metric] = {metric.kind: metric for metric in METRICS}


class Keys(Table):
    """What a measure of this kind says."""

    of: Literal["slope", "intercept", "r_squared"]
    """Which number of the line; the intercept is at depth 0."""
    metric: str
    """Which metric, as the line's height."""
    array: Name
    """Which array."""
    workload: Name
    """Which workload."""
    up_to: Annotated[int, Field(ge=2)] | None = None
    """The greatest depth that counts; all when left out."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The line through all repeats together, and through each alone."""
    if keys.metric not in _METRICS:
        raise NotThereError(f"there is no metric '{keys.metric}'")
    points = [
        point
        for point in source.points_of(keys.array, keys.workload)
        if point.load == "closed" and point.is_swept and (keys.up_to is None or point.depth <= keys.up_to)
    ]
    value = _line(keys, points)
    if value is None:
        return None
    repeats = min(len(point.rows) for point in points)
    each = [_line(keys, [replace(point, rows=(point.rows[i],)) for point in points]) for i in range(repeats)]
    return Reading.over(value, each)


def _line(keys: Keys, points: list[Point]) -> float | None:
    heights = [_METRICS[keys.metric].compute(point, None) for point in points]
    known = [(point.depth, height) for point, height in zip(points, heights, strict=True) if height is not None]
    if len(known) < 2 or len(known) != len(points):
        return None
    found = line([depth for depth, _ in known], [height for _, height in known])
    if keys.of == "r_squared":
        return found.explained
    return (found.slope if keys.of == "slope" else found.intercept).value


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """Every point of the sweep that counts."""
    found = needs_at({keys.array}, keys.workload, "maximum", study)
    return None if found is None else {need for need in found if keys.up_to is None or need[2].depth <= keys.up_to}


KIND = Kind(
    kind="regression",
    title="a line through a metric over queue depths",
    keys=Keys,
    is_run=True,
    read=read,
    needs=needs,
)

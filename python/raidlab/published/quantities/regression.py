"""A straight line through a metric over the queue depths of a sweep: what one more request outstanding adds.

Reference: least squares; the slope over the number of readers is the "additional time" of S. Hauser, L. Berman,
G. Thoma, *Is the bang worth the buck?*, 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from raidlab.analysis.metrics import Metric, Point
from raidlab.published.quantities.kind import Kind, Need, PointKeys, Reading, Source, metric_named, over_repeats
from raidlab.published.quantities.metric import needs_at
from raidlab.stats.regression import line
from raidlab.study import Study


class Keys(PointKeys):
    """What a measure of this kind says."""

    of: Literal["slope", "intercept", "r_squared", "residual"]
    """Which number of the line; the intercept is at depth 0, the residual how far points lie around it (s.d.)."""
    metric: str
    """Which metric, as the line's height."""
    up_to: Annotated[int, Field(ge=2)] | None = None
    """The greatest depth that counts; all when left out."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The line through all repeats together, and through each alone."""
    metric = metric_named(keys.metric)
    points = [
        point
        for point in source.points_of(keys.array, keys.workload)
        if point.load == "closed" and point.is_swept and (keys.up_to is None or point.depth <= keys.up_to)
    ]
    return over_repeats(points, lambda points: _line(keys, metric, points))


def _line(keys: Keys, metric: Metric, points: Sequence[Point]) -> float | None:
    known = [(point.depth, height) for point in points if (height := metric.compute(point, None)) is not None]
    if len(known) < 2 or len(known) != len(points):
        return None
    found = line([depth for depth, _ in known], [height for _, height in known])
    if keys.of == "r_squared":
        return found.explained
    if keys.of == "residual":
        return found.residual
    return (found.slope if keys.of == "slope" else found.intercept).value


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """Every point of the sweep that counts."""
    found = needs_at({keys.array}, keys.workload, "maximum", study)
    return None if found is None else {need for need in found if keys.up_to is None or need[2].depth <= keys.up_to}


KIND = Kind("regression", "a line through a metric over queue depths", Keys, read, needs)

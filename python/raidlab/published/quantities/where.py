"""A metric of one array at the load where a metric of another (or its own) reaches a value.

Such as the transaction time after a change of hardware, at the arrival rate at which it was so much before. Between two
loads of the sweep everything lies on the line between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from raidlab.analysis.metrics import Metric, Point
from raidlab.published.quantities.kind import Kind, Need, Reading, Source, metric_named, over_repeats
from raidlab.published.quantities.metric import needs_at
from raidlab.study import Study
from raidlab.study.words import Name, Table


class Crossing(Table):
    """What is reached."""

    metric: str
    """Which metric."""
    array: Name
    """Of which array."""
    value: float
    """What it is there."""


class Keys(Table):
    """What a measure of this kind says."""

    metric: str | None = None
    """Which metric; the load itself (depth, or rate a second) when left out."""
    array: Name
    """Which array."""
    workload: Name
    """Which workload, of both arrays."""
    reaches: Crossing
    """Where on the sweep."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number, over all repeats and for each; None where the sweep does not reach the value."""
    taken = None if keys.metric is None else metric_named(keys.metric)
    reached = metric_named(keys.reaches.metric)
    own = _swept(source.points_of(keys.array, keys.workload))
    other = _swept(source.points_of(keys.reaches.array, keys.workload))

    def take(points: Sequence[Point]) -> float | None:
        level = _between([(height, load) for load, height in _heights(reached, points[len(own) :])], keys.reaches.value)
        return level if level is None or taken is None else _between(_heights(taken, points[: len(own)]), level)

    return over_repeats([*own, *other], take)


def _swept(points: list[Point]) -> list[Point]:
    return sorted((point for point in points if point.is_swept), key=lambda point: point.level_value)


def _heights(metric: Metric, points: Sequence[Point]) -> list[tuple[float | None, float | None]]:
    """The load of each point, and its metric there."""
    return [(point.level_value, metric.compute(point, None)) for point in points]


def _between(places: Sequence[tuple[float | None, float | None]], at: float) -> float | None:
    """The height at a place, on the line between the first two neighbours that enclose it."""
    for (low, first), (high, last) in pairwise(places):
        if low is None or high is None or first is None or last is None:
            continue
        if min(low, high) <= at <= max(low, high):
            return first + (at - low) / (high - low) * (last - first) if high != low else first
    return None


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """The whole sweep of both."""
    return needs_at({keys.array, keys.reaches.array}, keys.workload, "maximum", study)


KIND = Kind("where", "a metric where another reaches a value", Keys, read, needs)

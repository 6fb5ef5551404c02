"""A metric of one array at the load where a metric of another (or its own) reaches a value.

Such as the transaction time after a change of hardware, at the arrival rate at which it was so much before. Between two
loads of the sweep everything lies on the line between them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from raidlab.analysis.metrics import METRICS, Metric, Point
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source
from raidlab.published.quantities.metric import needs_at
from raidlab.study import Study
from raidlab.study.words import Name, Table

_METRICS: dict[str, Metric] = {metric.kind: metric for metric in METRICS}


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
    for name in (keys.metric, keys.reaches.metric):
        if name is not None and name not in _METRICS:
            raise NotThereError(f"there is no metric '{name}'")
    own = _swept(source.points_of(keys.array, keys.workload))
    other = _swept(source.points_of(keys.reaches.array, keys.workload))
    value = _at_crossing(keys, own, other)
    if value is None:
        return None
    repeats = min(len(point.rows) for point in [*own, *other])
    each = [_at_crossing(keys, _ones(own, index), _ones(other, index)) for index in range(repeats)]
    return Reading.over(value, each)


def _swept(points: list[Point]) -> list[Point]:
    return sorted((point for point in points if point.is_swept), key=lambda point: point.level_value)


def _ones(points: list[Point], repeat: int) -> list[Point]:
    return [replace(point, rows=(point.rows[repeat],)) for point in points]


def _at_crossing(keys: Keys, own: list[Point], other: list[Point]) -> float | None:
    heights = [(point.level_value, _METRICS[keys.reaches.metric].compute(point, None)) for point in other]
    level = None
    for (low, first), (high, last) in pairwise(heights):
        if first is not None and last is not None and min(first, last) <= keys.reaches.value <= max(first, last):
            share = (keys.reaches.value - first) / (last - first) if last != first else 0.0
            level = low + share * (high - low)
            break
    if level is None or keys.metric is None:
        return level
    known = [(point.level_value, _METRICS[keys.metric].compute(point, None)) for point in own]
    for (low, first), (high, last) in pairwise(known):
        if first is not None and last is not None and low <= level <= high:
            return first + (level - low) / (high - low) * (last - first)
    return None


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """The whole sweep of both."""
    return needs_at({keys.array, keys.reaches.array}, keys.workload, "maximum", study)


KIND = Kind(
    kind="where",
    title="a metric where another reaches a value",
    keys=Keys,
    is_run=True,
    read=read,
    needs=needs,
)

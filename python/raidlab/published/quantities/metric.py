"""A metric at a point of the study: an array under a workload at one load."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field

from raidlab.analysis.metrics import Metric, Point
from raidlab.published.quantities.kind import Kind, Need, PointKeys, Reading, Source, metric_named, over_repeats
from raidlab.study import LoadPoint, Study
from raidlab.study.expand import load_of, load_points
from raidlab.study.words import Name, Table


class AtDepth(Table):
    """A queue depth of the sweep."""

    depth: Annotated[int, Field(ge=1)]


class AtPercentile(Table):
    """The place on the sweep where a percentile of response time is so much, between two of its depths."""

    ms: Annotated[float, Field(gt=0)]
    percentile: Annotated[float, Field(gt=0, lt=100)] = 90


At = Literal["idle", "maximum", "heaviest", "target"] | AtDepth | AtPercentile


class Keys(PointKeys):
    """What a measure of this kind says."""

    metric: str
    """Which metric."""
    reference: Name | None = None
    """The array it is compared with, for metrics that compare."""
    at: At = "maximum"
    """One request outstanding; the load of most throughput, or the heaviest, of the sweep; the held response time; a
    depth; where a percentile of response time is so much."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The metric, over all repeats and for each."""
    metric = metric_named(keys.metric)
    return read_at(keys.array, keys.workload, keys.at, source, lambda point: _computed(metric, keys, point, source))


def read_at(array: str, workload: str, at: At, source: Source, take: Callable[[Point], float | None]) -> Reading | None:
    """A number taken from the point that ``at`` names; between two depths it lies on the line between them."""
    points = source.points_of(array, workload)
    if at == "target":
        return _at_target(array, workload, points, source, take)
    if isinstance(at, AtPercentile):
        return _at_place(points, at.ms, lambda one: (one.response.percentile_ns(at.percentile) or 0) / 1e6, take)
    point = chosen(points, at)
    return None if point is None else reading_of(point, take)


def chosen(points: list[Point], at: At) -> Point | None:
    """The point that ``at`` names; None where it was not run."""
    swept = [point for point in points if point.is_swept]
    if at == "maximum":
        return max(swept, key=lambda point: point.per_s("all_bytes"), default=None)
    if at == "heaviest":
        return max(swept, key=lambda point: (point.depth, point.rate_per_s), default=None)
    depth = at.depth if isinstance(at, AtDepth) else 1
    return next((point for point in points if point.load == "closed" and point.depth == depth), None)


def reading_of(point: Point, take: Callable[[Point], float | None]) -> Reading | None:
    """A number of a point, and of each of its repeats alone."""
    return over_repeats([point], lambda points: take(points[0]))


def _at_target(
    array: str, workload: str, points: list[Point], source: Source, take: Callable[[Point], float | None]
) -> Reading | None:
    holds = [row for row in source.run.hold_rows(source.target, workload) if row["array"] == array]
    depths = [row["depth"] for row in holds if row["depth"] is not None]
    closed = sorted((point for point in points if point.load == "closed"), key=lambda point: point.depth)
    if not depths or len(depths) != len(holds) or not closed:
        return None
    depth = sum(depths) / len(depths)
    below = [point for point in closed if point.depth <= depth] or closed[:1]
    above = [point for point in closed if point.depth >= depth] or closed[-1:]
    first, last = reading_of(below[-1], take), reading_of(above[0], take)
    if first is None or last is None:
        return None
    width = above[0].depth - below[-1].depth
    return _between(first, last, (depth - below[-1].depth) / width if width else 0.0)


def _at_place(
    points: list[Point], wanted: float, place: Callable[[Point], float], take: Callable[[Point], float | None]
) -> Reading | None:
    """Between the two neighbours of the sweep that enclose a place on it; None beyond its ends."""
    swept = sorted((point for point in points if point.is_swept and point.load == "closed"), key=lambda one: one.depth)
    for (low, below), (high, above) in pairwise((place(point), point) for point in swept):
        if low <= wanted <= high:
            first, last = reading_of(below, take), reading_of(above, take)
            share = (wanted - low) / (high - low) if high > low else 0.0
            return None if first is None or last is None else _between(first, last, share)
    return None


def _between(first: Reading, last: Reading, share: float) -> Reading:
    def line(low: float, high: float) -> float:
        return low + share * (high - low)

    each = tuple(line(low, high) for low, high in zip(first.each, last.each, strict=False))
    return Reading(line(first.value, last.value), each, first.is_served and last.is_served)


def _computed(metric: Metric, keys: Keys, point: Point, source: Source) -> float | None:
    if keys.reference is None:
        return metric.compute(point, None)
    others = source.points_of(keys.reference, keys.workload)
    same = [
        one for one in others if (one.load, one.depth, one.rate_per_s) == (point.load, point.depth, point.rate_per_s)
    ]
    return metric.compute(point, same[0]) if same else None


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """Its point; for a reference the same load there. What a search finds is not known before."""
    arrays = {keys.array} | ({keys.reference} if keys.reference else set())
    return needs_at(arrays, keys.workload, keys.at, study)


def point_at(at: Callable[[Any], At]) -> Callable[[Any, Study], set[Need] | None]:
    """What a measure of one point needs: that point, at the load that its keys name."""
    return lambda keys, study: needs_at({keys.array}, keys.workload, at(keys), study)


def needs_at(arrays: set[str], workload: str, at: At, study: Study) -> set[Need] | None:
    """The cells in which ``at`` may lie."""
    if at == "target":
        return None
    return {
        (array.name, work.name, point)
        for array in study.array
        for work in study.workload
        if array.name in arrays and work.name == workload
        for point in _loads(at, load_points(load_of(study, array, work), quick=False))
    }


def _loads(at: At, points: list[LoadPoint]) -> list[LoadPoint]:
    if at == "idle":
        return [LoadPoint("closed", depth=1)]
    if isinstance(at, AtDepth):
        return [LoadPoint("closed", depth=at.depth)]
    return points[-1:] if at == "heaviest" else points


KIND = Kind("metric", "a metric at a point", Keys, read, needs)

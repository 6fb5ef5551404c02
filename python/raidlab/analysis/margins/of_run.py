"""The margins of a best that a run shows by itself: swept, reckoned, by price and by chance.

Invariants:

- Nothing is simulated here. What a run has not tried is reckoned, and called so, or left alone.
- A margin speaks of the figure that the answer speaks of: throughput at the held response time, or at the heaviest
  load.
- A turn is taken from the rival that comes first along an axis; it need not be the one that is second now.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from raidlab.analysis.margins import reckoned
from raidlab.analysis.margins.chance import reversed_percent
from raidlab.analysis.margins.crossing import Curve, Place, as_is, crossings
from raidlab.analysis.margins.margin import Axis, BestMargins, How, Margin, nearest_first
from raidlab.analysis.metrics import Analysis, ComparedArray, Comparison, Point
from raidlab.analysis.metrics.relative_throughput import share_basis
from raidlab.stats import ratio_interval
from raidlab.study.workload import FixedSize, Workload


@dataclass(frozen=True)
class Contest:
    """Who is first in a comparison, and against whom."""

    comparison: Comparison
    first: ComparedArray
    rivals: tuple[ComparedArray, ...]
    """The nearest behind it first."""
    level: tuple[str, ...]
    """Who is level with the first, and so none of them."""
    held: bool
    """Whether the answer speaks of throughput at an equal response time."""

    @property
    def beside(self) -> str:
        """The reference, where it is not among those that the first is before."""
        reference = self.comparison.compare.reference
        return "" if reference in (self.first.array, *(row.array for row in self.rivals)) else reference

    def logs(self, rival: ComparedArray) -> list[float]:
        """The log ratio of the figure that decides, first to rival, in every repeat."""
        return _logs(rates_of(self.first, held=self.held), rates_of(rival, held=self.held))


def rates_of(row: ComparedArray, *, held: bool) -> tuple[float, ...]:
    """The throughput that an answer speaks of, in each repeat, on the basis the study names."""
    return row.held.rates if held and row.held is not None else row.rates


def margins_of(analysis: Analysis, contest: Contest) -> BestMargins:
    """All margins of who is first under a closed loop."""
    found: list[Margin] = []
    workload = _workload(analysis, contest.comparison.workload)
    for rival in contest.rivals:
        for axis, now, curve, scale in _swept(analysis, contest, rival, workload):
            for place in crossings(curve, now, scale):
                found.append(_margin(axis, now, place, rival.array, "swept"))
        by_busy_time = _reckoned(analysis, contest, rival, workload)
        if by_busy_time is not None:
            found.append(_margin("read", workload.read, by_busy_time, rival.array, "reckoned"))
    if contest.held and contest.first.held is not None:
        percentile = contest.first.held.percentile
        found = [replace(one, percentile=percentile) if one.axis == "response" else one for one in found]
    second = contest.rivals[0]
    found += [*_price(contest, second), *_chance(contest.logs(second), second.array)]
    comparison = contest.comparison
    names = contest.first.array, second.array
    return BestMargins(
        comparison.target, comparison.workload, *names, nearest_first(found), contest.level, contest.beside
    )


def _margin(axis: Axis, now: float, place: Place, instead: str, how: How) -> Margin:
    factor = 100.0 if axis == "read" else 1.0
    at, low, high = (None if value is None else factor * value for value in place)
    assert at is not None, "a place is a number; only its interval may be missing"
    if axis == "read" and low is not None and high is not None:
        low, high = max(low, 0.0), min(high, 100.0)
    return Margin(axis, factor * now, at, low, high, instead, how)


def _swept(
    analysis: Analysis, contest: Contest, rival: ComparedArray, workload: Workload
) -> Iterator[tuple[Axis, float, Curve, Callable[[float], float]]]:
    """Every axis that the run moved: the load of a workload, and workloads that differ in one thing alone."""
    if contest.held and contest.first.held is not None:
        now = contest.first.held.target_ms
        yield "response", now, _over_response(analysis, contest, rival, contest.first.held.percentile, now), math.log
    elif not contest.first.sweep_rates:
        yield "depth", float(contest.first.point.depth), _over_depth(analysis, contest, rival), math.log
    for axis, value_of, scale in _WORK_AXES:
        alike = [one for one in analysis.run.study.workload if _differs_only_in(axis, one, workload)]
        curve = [
            (value, logs)
            for one in (workload, *alike)
            if (value := value_of(one)) is not None and (logs := _under(analysis, contest, rival, one.name))
        ]
        now_value = value_of(workload)
        if now_value is not None and len(curve) > 1:
            yield axis, now_value, sorted(curve, key=lambda point: point[0]), scale


def _size_of(workload: Workload) -> float | None:
    return float(workload.size.bytes) if isinstance(workload.size, FixedSize) else None


def _read_of(workload: Workload) -> float | None:
    return workload.read


_WORK_AXES: tuple[tuple[Axis, Callable[[Workload], float | None], Callable[[float], float]], ...] = (
    ("read", _read_of, as_is),
    ("size", _size_of, math.log),
)


def _differs_only_in(key: str, one: Workload, other: Workload) -> bool:
    """Whether two workloads are the same but for their name and one key."""
    if one.streams is not None or one.files is not None or one.trace is not None or one.name == other.name:
        return False
    texts = [each.model_dump(exclude={"name", key}) for each in (one, other)]
    return texts[0] == texts[1] and getattr(one, key) != getattr(other, key)


def _under(analysis: Analysis, contest: Contest, rival: ComparedArray, workload: str) -> list[float]:
    """The same two arrays under another workload, by the figure that decides here; empty where they have none there."""
    for comparison in analysis.comparisons:
        own = contest.comparison
        if (comparison.target, comparison.compare, comparison.workload) == (own.target, own.compare, workload):
            rows = {row.array: row for row in comparison.rows}
            first, other = rows.get(contest.first.array), rows.get(rival.array)
            if first is None or other is None:
                return []
            if contest.held and any(row.held is None or row.held.is_lower_bound for row in (first, other)):
                return []
            return _logs(rates_of(first, held=contest.held), rates_of(other, held=contest.held))
    return []


def _over_depth(analysis: Analysis, contest: Contest, rival: ComparedArray) -> Curve:
    per_depth = [_closed(analysis, contest, array) for array in (contest.first.array, rival.array)]
    common = sorted(per_depth[0].keys() & per_depth[1].keys())
    curve = [(float(depth), _logs(*(_rates(found[depth], contest) for found in per_depth))) for depth in common]
    return [point for point in curve if point[1]]


def _over_response(
    analysis: Analysis, contest: Contest, rival: ComparedArray, percentile: float, now_ms: float
) -> Curve:
    """Throughput at equal response times, read off both curves of each repeat wherever one of them has a point."""
    curves = [
        _response_curves(_closed(analysis, contest, array), contest, percentile)
        for array in (contest.first.array, rival.array)
    ]
    if not all(curves) or len(curves[0]) != len(curves[1]):
        return []
    everyone = [each for of_array in curves for each in of_array]
    low, high = max(each[0][0] for each in everyone), min(each[-1][0] for each in everyone)
    places = sorted({place for each in everyone for place, _ in each if low <= place <= high} | {now_ms})
    if not low <= now_ms <= high:
        return []
    return [
        (place, [_at(own, place) - _at(other, place) for own, other in zip(*curves, strict=True)]) for place in places
    ]


def _response_curves(points: dict[int, Point], contest: Contest, percentile: float) -> list[list[tuple[float, float]]]:
    """Of each repeat, the logarithm of throughput over response time in ms, as far as both rise with the depth."""
    found: dict[int, list[tuple[float, float]]] = {}
    for _, point in sorted(points.items()):
        for number, (repeat, rate) in enumerate(zip(point.repeats, _rates(point, contest), strict=False)):
            value_ns = repeat.response.percentile_ns(percentile)
            curve = found.setdefault(number, [])
            if value_ns and rate > 0 and (not curve or value_ns / 1e6 > curve[-1][0]):
                curve.append((value_ns / 1e6, math.log(rate)))
    return [curve for _, curve in sorted(found.items())] if all(len(curve) > 1 for curve in found.values()) else []


def _at(curve: list[tuple[float, float]], place: float) -> float:
    """A curve between its points, straight over the logarithm of the response time."""
    index = min(max(bisect.bisect_left(curve, (place, -math.inf)), 1), len(curve) - 1)
    (left, low), (right, high) = curve[index - 1 : index + 1]
    return low + (high - low) * math.log(place / left) / math.log(right / left)


def _closed(analysis: Analysis, contest: Contest, array: str) -> dict[int, Point]:
    """The points of an array's closed loop under the contest's workload, by depth; as many repeats as most have."""
    own = contest.comparison
    found = {
        point.depth: point
        for point in analysis.points
        if (point.target, point.array, point.workload, point.load) == (own.target, array, own.workload, "closed")
    }
    most = max((len(point.rows) for point in found.values()), default=0)
    return {depth: point for depth, point in found.items() if len(point.rows) == most}


def _reckoned(analysis: Analysis, contest: Contest, rival: ComparedArray, workload: Workload) -> Place | None:
    sides = []
    for row in (contest.first, rival):
        point = _busy_point(analysis, contest, row)
        others = [
            (found, one)
            for one in analysis.run.study.workload
            if _differs_only_in("read", one, workload) and (found := _same_place(analysis, point, one.name)) is not None
        ]
        known = reckoned.demands(point, workload, others)
        rates = rates_of(row, held=contest.held)
        if known is None or len(known) != len(rates):
            return None
        sides.append((rates, known))
    return reckoned.crossing_of_reads(workload.read, sides[0], sides[1])


def _busy_point(analysis: Analysis, contest: Contest, row: ComparedArray) -> Point:
    """Where a row's members are looked at: at the depth nearest to the one at which its response time is held."""
    if not contest.held or row.held is None or row.held.depth is None:
        return row.point
    depth, closed = row.held.depth, _closed(analysis, contest, row.array)
    return min(closed.values(), key=lambda point: abs(math.log(point.depth / depth)), default=row.point)


def _same_place(analysis: Analysis, point: Point, workload: str) -> Point | None:
    here = (point.target, point.array, workload, point.load, point.depth)
    return next(
        (one for one in analysis.points if (one.target, one.array, one.workload, one.load, one.depth) == here), None
    )


def _price(contest: Contest, second: ComparedArray) -> Iterator[Margin]:
    """What a disk of the first may cost, in disks of the second, until both give the same for the money.

    Throughput for money is throughput a disk over the price of a disk: the ratio of the one is the factor of the other.
    """
    per, points = contest.comparison.compare.per, (contest.first.point, second.point)
    if per not in ("disk", "array") or (per == "array" and points[0].disks != points[1].disks):
        return
    own, other = (rates_of(row, held=contest.held) for row in (contest.first, second))
    if len(own) == len(other) and own and sum(other) > 0:
        factor = sum(own) / sum(other)
        if factor > 1:
            low, high = ratio_interval(own, other) or (None, None)
            yield Margin("price", 1.0, factor, low, high, second.array, "reckoned")


def _chance(logs: Sequence[float], second: str) -> Iterator[Margin]:
    percent = reversed_percent(logs)
    if percent is not None:
        yield Margin("seeds", None, percent, None, None, second, "chance")


def margins_of_open(analysis: Analysis, comparison: Comparison, first: str, second: str) -> BestMargins:
    """The margins of who answers soonest in an open loop: over the rates that the run offered, and by chance."""
    by_array: dict[str, dict[float, list[float]]] = {}
    for point in analysis.swept(comparison.target, comparison.workload, group=comparison.compare.group):
        times = [repeat.response.percentile_ns(90) for repeat in point.repeats] if point.load == "open" else []
        if point.keeps_up and times and all(times):
            by_array.setdefault(point.array, {})[point.rate_per_s] = [float(time) for time in times if time]
    own, now = by_array.get(first, {}), next((row.point.rate_per_s for row in comparison.rows), 0.0)
    found = []
    for name, other in by_array.items():
        common = sorted(own.keys() & other.keys())
        if name != first and now in common:
            # Who answers sooner is ahead: the rival's time over the first's.
            curve = [(rate, _logs(other[rate], own[rate])) for rate in common]
            for place in crossings(curve, now):
                found.append(_margin("rate", now, place, name, "swept"))
    found += _chance(_logs(by_array.get(second, {}).get(now, ()), own.get(now, ())), second)
    return BestMargins(comparison.target, comparison.workload, first, second, nearest_first(found))


def _rates(point: Point, contest: Contest) -> list[float]:
    basis = share_basis(point, contest.comparison.compare.per)
    return [rate / basis for rate in point.each_per_s("all_bytes")]


def _logs(own: Sequence[float], other: Sequence[float]) -> list[float]:
    if len(own) != len(other) or not all(value > 0 for value in (*own, *other)):
        return []
    return [math.log(a / b) for a, b in zip(own, other, strict=True)]


def _workload(analysis: Analysis, name: str) -> Workload:
    return next(one for one in analysis.run.study.workload if one.name == name)

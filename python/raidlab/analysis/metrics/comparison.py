"""Comparisons: for each table a study asks for, its arrays side by side under each workload.

Invariants:

- All arrays of a comparison stand at the same load: the heaviest of the sweep that every one of them has run; in an
  open loop the heaviest that every one of them keeps up with, if there is one.
- The figures at an equal percentile of response time come from the study's own search, averaged over repeats as
  throughputs, and are None where no depth met the target. Where the deepest queue did not reach the target they are
  lower bounds (`Held.is_lower_bound`), and against a reference for which that is so there is no share.
- Open and closed loop never share a comparison: a workload has one or the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean

from raidlab.analysis.metrics.point import Point
from raidlab.analysis.metrics.relative_throughput import share_basis
from raidlab.results import Run
from raidlab.results.answer import HoldRow
from raidlab.stats import ratio_interval
from raidlab.study.schema import Compare

# The engine's words for a search whose target is missed even with one request outstanding, and for one whose deepest
# queue stays below it.
ALWAYS_EXCEEDED, NEVER_EXCEEDED = "always_exceeded", "never_exceeded"


@dataclass(frozen=True)
class HoldResult:
    """Throughput at an equal percentile of response time."""

    percentile: float
    target_ms: float
    throughput_mb_s: float | None
    """None where even one request at a time exceeds the target."""
    iops: float | None
    """Requests a second at that throughput, each of the mean size that the load of the comparison has shown."""
    depth: float | None
    relative_percent: float | None
    """Against the reference array at the same target, on the basis the study names."""
    bound: str | None
    """How the search ended."""
    rates: tuple[float, ...]
    """The throughput of each repeat, on the basis the study names; empty where a repeat missed the target."""
    relative_interval_percent: tuple[float, float] | None = None
    """The 95 % interval of that throughput against the reference's, paired by repeat; None for a single run, and where
    there is no share."""

    @property
    def is_lower_bound(self) -> bool:
        """Whether the deepest queue tried did not reach the target, so that more would have been possible."""
        return self.bound == NEVER_EXCEEDED


@dataclass(frozen=True)
class ComparedArray:
    """One array of a comparison."""

    array: str
    point: Point
    """Its point at the load of the comparison."""
    values: dict[str, float | None]
    """Its metrics there, by kind."""
    held: HoldResult | None
    """What it does at the response-time target."""
    rates: tuple[float, ...]
    """The throughput of each repeat, on the basis the study names."""
    relative_interval_percent: tuple[float, float] | None
    """The 95 % interval of its throughput against the reference, paired by repeat; None for a single run."""
    sweep_rates: tuple[float, ...] = ()
    """For each repeat the geometric mean of its throughput over the depths of the sweep that the study names
    (`sweep_from`), so that the ratio of two is the mean ratio over the sweep; empty where the study names none."""


@dataclass(frozen=True)
class Comparison:
    """The arrays of one group under one workload on one target."""

    compare: Compare
    target: str
    workload: str
    load: str
    rows: tuple[ComparedArray, ...]


def comparisons_of(run: Run, points: list[Point], values: dict[int, dict[str, float | None]]) -> list[Comparison]:
    """All comparisons of a run, in the order of the study, from the metrics of each point by its position."""
    targets = list(dict.fromkeys(point.target for point in points))
    found = []
    for target in targets:
        for compare in run.study.compare:
            for workload in run.study.workload:
                mine = [
                    (point, values[index])
                    for index, point in enumerate(points)
                    if (point.target, point.group, point.workload) == (target, compare.group, workload.name)
                ]
                comparison = _compare(run, compare, target, workload.name, mine)
                if comparison is not None:
                    found.append(comparison)
    return found


def heaviest_common_load(points: list[Point]) -> tuple[str, int, float] | None:
    """The heaviest load of the sweep that all arrays have run, and keep up with if any is; None when there is none."""
    arrays = {point.array for point in points}
    loads = {(point.load, point.depth, point.rate_per_s) for point in points if point.is_swept}
    common = {}
    for load in loads:
        there = [point for point in points if (point.load, point.depth, point.rate_per_s) == load]
        if {point.array for point in there} == arrays:
            common[load] = all(point.keeps_up for point in there)
    kept_up = [load for load, kept in common.items() if kept]
    return max(kept_up or common, default=None)


def _compare(
    run: Run, compare: Compare, target: str, workload: str, mine: list[tuple[Point, dict[str, float | None]]]
) -> Comparison | None:
    load = heaviest_common_load([point for point, _ in mine])
    if load is None:
        return None
    held = held_rows(run, compare, target, workload, {point.array: point for point, _ in mine})
    chosen = [(point, values) for point, values in mine if (point.load, point.depth, point.rate_per_s) == load]
    rates = {
        point.array: tuple(rate / share_basis(point, compare.per) for rate in point.each_per_s("all_bytes"))
        for point, _ in chosen
    }
    rows = tuple(
        ComparedArray(
            point.array,
            point,
            values,
            held.get(point.array),
            rates[point.array],
            None if point.is_open else _percent_interval(rates[point.array], rates.get(compare.reference, ())),
            _sweep_rates(compare, point.array, [one for one, _ in mine]),
        )
        for point, values in chosen
    )
    kind, depth, rate = load
    label = f"queue depth {depth}" if kind == "closed" else f"{rate:g} requests/s offered"
    label = chosen[0][0].level if kind == "trace" else label
    return Comparison(compare, target, workload, label, rows)


def _sweep_rates(compare: Compare, array: str, points: list[Point]) -> tuple[float, ...]:
    """The geometric mean, repeat by repeat, over the depths from `sweep_from` on that every array has run."""
    if compare.sweep_from is None:
        return ()
    swept = [point for point in points if point.is_swept and point.load == "closed"]
    by_array: dict[str, set[int]] = {}
    for point in swept:
        by_array.setdefault(point.array, set()).add(point.depth)
    depths = (
        {depth for depth in set.intersection(*by_array.values()) if depth >= compare.sweep_from} if swept else set()
    )
    each = [
        [rate / share_basis(point, compare.per) for rate in point.each_per_s("all_bytes")]
        for point in swept
        if point.array == array and point.depth in depths
    ]
    if not each or len({len(rates) for rates in each}) > 1:
        return ()
    return tuple(geometric_mean(rates) for rates in zip(*each, strict=True) if all(rates))


def held_rows(
    run: Run, compare: Compare, target: str, workload: str, points: dict[str, Point]
) -> dict[str, HoldResult]:
    """What each array does at the response-time target, by array."""
    by_array: dict[str, list[HoldRow]] = {}
    for row in run.hold_rows(target, workload):
        if row["array"] in points:
            by_array.setdefault(row["array"], []).append(row)
    per_basis = {
        array: rate / share_basis(points[array], compare.per)
        for array, rows in by_array.items()
        if (rate := mean_rate(rows)) is not None
    }
    bounds = {array: bound_of(rows) for array, rows in by_array.items()}
    reference = None if bounds.get(compare.reference) == NEVER_EXCEEDED else per_basis.get(compare.reference)
    rates = {
        array: tuple((row["throughput_bytes_per_s"] or 0.0) / share_basis(points[array], compare.per) for row in rows)
        for array, rows in by_array.items()
        if array in per_basis
    }
    held = {}
    for array, rows in by_array.items():
        rate, own = mean_rate(rows), per_basis.get(array)
        has_interval = bool(reference) and bounds[array] != NEVER_EXCEEDED
        held[array] = HoldResult(
            percentile=rows[0]["percentile"],
            target_ms=rows[0]["target_ns"] / 1e6,
            throughput_mb_s=None if rate is None else rate / 1e6,
            iops=_requests_per_s(rate, points[array]),
            depth=mean_known(row["depth"] for row in rows),
            relative_percent=None if own is None or not reference else 100 * own / reference,
            bound=bounds[array],
            rates=rates.get(array, ()),
            relative_interval_percent=_percent_interval(rates.get(array, ()), rates.get(compare.reference, ()))
            if has_interval
            else None,
        )
    return held


def _requests_per_s(bytes_per_s: float | None, point: Point) -> float | None:
    """A throughput in requests, whose mean size does not depend on the load."""
    moved = point.total("all_bytes")
    return None if bytes_per_s is None or not moved else bytes_per_s * point.total("all_requests") / moved


def bound_of(rows: list[HoldRow]) -> str | None:
    """How the searches of all repeats ended: the one word that limits what may be said of them."""
    words = [row["bound"] for row in rows]
    return next((word for word in (ALWAYS_EXCEEDED, NEVER_EXCEEDED) if word in words), words[0])


def _percent_interval(own: tuple[float, ...], reference: tuple[float, ...]) -> tuple[float, float] | None:
    interval = ratio_interval(own, reference)
    return None if interval is None else (100 * interval[0], 100 * interval[1])


def mean_rate(rows: list[HoldRow]) -> float | None:
    """The mean rate over repeats; None when in one of them even a single request at a time misses the target."""
    if any(row["bound"] == ALWAYS_EXCEEDED for row in rows):
        return None
    return mean_known(row["throughput_bytes_per_s"] for row in rows)


def mean_known(values: Iterator[float | None]) -> float | None:
    """The mean of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None

"""The result of a measurement as rows: a point in its directions, with what repeats say of every figure.

Reads and writes are reported apart and never averaged; where a workload has both, there is a row for each and none for
the two together, but for a single figure of throughput of all.

Invariants:

- A percentile is that of the merged histogram of all repeats; its interval is that of the shares that the repeats
  have below each time.
- Where no repeat ran to its end, the ones cut short are shown and marked (``whole`` is False).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from raidlab.analysis.metrics.point import Point, points_of
from raidlab.histogram import Histogram
from raidlab.results import Run
from raidlab.stats import student
from raidlab.stats.figure import figure
from raidlab.stats.percentile import percentile_of_repeats
from raidlab.stats.tail import tail_index

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
DIRECTIONS = ("read", "write")
# Fewer say nothing of how heavy their tail is.
_LEAST_TIMES_OF_A_TAIL = 100

Row = dict[str, Any]


def result_rows(run: Run) -> list[Row]:
    """One flat row a subject, load and direction; units stand at the end of the names, statistics last.

    ``_low`` and ``_high`` bound the 95 % interval over repeats; where they are None, ``_no_interval`` says why.
    """
    whole = points_of(run)
    known = {identity(point) for point in whole}
    points = whole + [point for point in points_of(run, cut=True) if identity(point) not in known]
    return [row for point in points for row in _rows(point, point.is_whole)]


def identity(point: Point) -> tuple[Any, ...]:
    """What tells points of one run apart."""
    return point.array, point.workload, point.load, point.depth, point.rate_per_s


def _rows(point: Point, whole: bool) -> Iterator[Row]:
    directions = [direction for direction in DIRECTIONS if point.total(f"{direction}_requests")]
    for direction in directions or ["read"]:
        row: Row = {
            "subject": point.array,
            "load": point.load,
            "depth": point.depth,
            "rate_per_s": point.rate_per_s,
            "operation": direction,
            "purpose": "sweep" if point.is_swept else "search",
            "repeats": len(point.rows),
            "whole": whole,
            "elapsed_ns": int(point.total("elapsed_ns")),
            "requests": int(point.total(f"{direction}_requests")),
            "bytes": int(point.total(f"{direction}_bytes")),
        }
        each = {name: point.each_per_s(f"{direction}_{name}") for name in ("requests", "bytes")}
        row |= figure("iops", point.per_s(f"{direction}_requests"), student(each["requests"]))
        megabytes = [rate / 1e6 for rate in each["bytes"]]
        row |= figure("throughput_mb_s", point.per_s(f"{direction}_bytes") / 1e6, student(megabytes))
        row |= _times(point, direction)
        yield row


def _times(point: Point, direction: str) -> Row:
    means = [row[f"{direction}_response_mean_ns"] for row in point.rows]
    weights = [row[f"{direction}_requests"] for row in point.rows]
    return times_of([point.run.histogram([cell], direction) for cell in point.cells], means, weights)


def times_of(each: Sequence[Histogram], means: Sequence[float | None], weights: Sequence[int]) -> Row:
    """Response times of repeats, with intervals: from their histograms, exact means in ns, and requests."""
    weight = sum(weights)
    mean = sum((value or 0.0) * count for value, count in zip(means, weights, strict=True)) / weight if weight else None
    merged = Histogram.merged(each)
    tail = tail_index(merged) if merged.total >= _LEAST_TIMES_OF_A_TAIL else None
    found = figure("response_time_ns_mean", mean, student([value for value in means if value is not None], tail=tail))
    for percentile in PERCENTILES:
        name = f"response_time_ns_p{percentile:g}".replace(".", "_")
        found |= figure(name, merged.percentile_ns(percentile), percentile_of_repeats(each, percentile))
    return found


def target_rows(point: Point, names: list[str]) -> list[Row]:
    """What each target of a point that has several did; throughput only, and the mean time at the target."""
    members = point.rows_of("members")
    elapsed_s = point.total("elapsed_ns") / 1e9
    found = []
    for leaf, name in enumerate(names):
        total = members.filter(members["leaf"] == leaf).sum().to_dicts()[0]
        requests = total["reads"] + total["writes"]
        moved_mb = (total["read_bytes"] + total["write_bytes"]) / 1e6
        found.append(
            {
                "target": name,
                "iops": requests / elapsed_s if elapsed_s else 0.0,
                "throughput_mb_s": moved_mb / elapsed_s if elapsed_s else 0.0,
                "service_time_ns_mean": total["wait_ns"] / requests if requests else None,
            }
        )
    return found

"""Figures of a point that comparisons are made of, of all its repeats together and of each by itself.

Invariants:

- Reads and writes are apart: a figure is that of one direction.
- A percentile of a repeat is that of its own histogram, and of all repeats that of the merged one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raidlab.analysis.metrics.point import Point

NS_PER_MS = 1e6


@dataclass(frozen=True)
class RepeatFigure:
    """A figure that can be compared."""

    kind: str
    """Its name, with the unit and the statistic at the end."""
    title: str
    """For headings, with its unit."""
    is_rate: bool
    """Whether it is a rate, which in an open loop is that of the offer and compares nothing."""
    compute: Callable[[Point, str], float | None]
    """``compute(point, operation)``; None, or 0, where there is none."""


def _mean_ms(point: Point, operation: str) -> float | None:
    mean_ns = point.weighted_mean(f"{operation}_response_mean_ns", weight=f"{operation}_requests")
    return None if mean_ns is None else mean_ns / NS_PER_MS


def _percentile(percentile: float) -> RepeatFigure:
    def compute(point: Point, operation: str) -> float | None:
        value_ns = point.run.histogram(point.cells, operation).percentile_ns(percentile)
        return None if value_ns is None else value_ns / NS_PER_MS

    kind = f"response_time_ms_p{percentile:g}".replace(".", "_")
    return RepeatFigure(kind, f"p{percentile:g} response time, ms", False, compute)


REPEAT_FIGURES = {
    figure.kind: figure
    for figure in (
        RepeatFigure("throughput_mb_s", "throughput, MB/s", True, lambda point, way: point.per_s(f"{way}_bytes") / 1e6),
        RepeatFigure("iops", "requests a second", True, lambda point, way: point.per_s(f"{way}_requests")),
        RepeatFigure("response_time_ms_mean", "mean response time, ms", False, _mean_ms),
        *(_percentile(percentile) for percentile in (50, 90, 99, 99.9)),
    )
}
DEFAULT_KINDS = ("throughput_mb_s", "response_time_ms_p90")

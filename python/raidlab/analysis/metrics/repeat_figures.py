"""Figures of single repeats, which comparisons are made of, and of all repeats together.

Invariants:

- Reads and writes are apart: a figure is that of one direction.
- A percentile of a repeat is that of its own histogram, and of all repeats that of the merged one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raidlab.analysis.metrics.point import Point

NS_PER_MS = 1e6
# Of one repeat, given its cells' rows, and of all repeats, given all of them.
Compute = Callable[[Point, list[dict[str, Any]], str], float | None]


@dataclass(frozen=True)
class RepeatFigure:
    """A figure that can be compared.

    Attributes
    ----------
    kind : str
        Its name, with the unit and the statistic at the end.
    title : str
        For headings, with its unit.
    is_rate : bool
        Whether it is a rate, which in an open loop is that of the offer and compares nothing.
    compute : callable
        ``compute(point, rows, operation)`` of some of the point's rows; None where there is none.
    """

    kind: str
    title: str
    is_rate: bool
    compute: Compute


def _per_s(column: str, scale: float) -> Compute:
    def compute(_point: Point, rows: list[dict[str, Any]], operation: str) -> float | None:
        elapsed_ns = sum(row["elapsed_ns"] for row in rows)
        return sum(row[f"{operation}_{column}"] for row in rows) * scale / elapsed_ns if elapsed_ns else None

    return compute


def _mean_ms(_point: Point, rows: list[dict[str, Any]], operation: str) -> float | None:
    known = [row for row in rows if row[f"{operation}_response_mean_ns"] is not None]
    weight = sum(row[f"{operation}_requests"] for row in known)
    total = sum(row[f"{operation}_response_mean_ns"] * row[f"{operation}_requests"] for row in known)
    return total / weight / NS_PER_MS if weight else None


def _percentile(percentile: float) -> RepeatFigure:
    def compute(point: Point, rows: list[dict[str, Any]], operation: str) -> float | None:
        value_ns = point.run.histogram([int(row["cell"]) for row in rows], operation).percentile_ns(percentile)
        return None if value_ns is None else value_ns / NS_PER_MS

    kind = f"response_time_ms_p{percentile:g}".replace(".", "_")
    return RepeatFigure(kind, f"p{percentile:g} response time, ms", False, compute)


REPEAT_FIGURES = {
    figure.kind: figure
    for figure in (
        RepeatFigure("throughput_mb_s", "throughput, MB/s", True, _per_s("bytes", 1e3)),
        RepeatFigure("iops", "requests a second", True, _per_s("requests", 1e9)),
        RepeatFigure("response_time_ms_mean", "mean response time, ms", False, _mean_ms),
        *(_percentile(percentile) for percentile in (50, 90, 99, 99.9)),
    )
}
DEFAULT_KINDS = ("throughput_mb_s", "response_time_ms_p90")

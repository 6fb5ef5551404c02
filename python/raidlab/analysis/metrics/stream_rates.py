"""Rates of streams by direction: each over the time to its own end, as one that ends early keeps what it did.

The throughput of a cell counts all bytes until its last stream has ended, so that a fast stream beside a slow one looks
as slow. Repeats are merged by adding up bytes and times of the same stream.
"""

from __future__ import annotations

import polars as pl

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

_ARRAY = "array"


def _mb_s(point: Point, end: str) -> float | None:
    """The sum of the rates of all streams with the array at this end; None where there are no streams."""
    mine = point.run.streams.filter(pl.col("cell").is_in(point.cells))
    if mine.is_empty():
        return None
    sums = mine.filter(pl.col(end) == _ARRAY).group_by("number").agg(pl.col("bytes").sum(), pl.col("elapsed_ns").sum())
    return float(sum(moved / elapsed * 1000 for _number, moved, elapsed in sums.sort("number").iter_rows() if elapsed))


METRICS = (
    Metric(
        kind="streams_read_mb_s",
        title="rates of streams, from the array",
        unit="MB/s",
        meaning="streams that read the array, each over the time to its own end, added up",
        compute=lambda point, reference: _mb_s(point, "source"),
    ),
    Metric(
        kind="streams_write_mb_s",
        title="rates of streams, to the array",
        unit="MB/s",
        meaning="streams that write the array, each over the time to its own end, added up",
        compute=lambda point, reference: _mb_s(point, "sink"),
    ),
)

"""Throughput: of the whole array, of its streams by direction, for each physical disk; and requests a second.

For each disk is fair when arrays differ in members. In the simulator every member is a disk of its own. Live members
that share a disk count once: the disk's time is what they divide among themselves, and a second file on it adds none.

Rates of streams are each over the time to its own end, as one that ends early keeps what it did: the throughput of a
cell counts all bytes until its last stream has ended, so that a fast stream beside a slow one looks as slow. Repeats
are merged by adding up bytes and times of the same stream.
"""

from __future__ import annotations

import polars as pl

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

BYTES_PER_MB = 1_000_000
_ARRAY = "array"


def throughput_mb_s(point: Point) -> float:
    """Throughput in MB/s (10^6 bytes); redundancy written beside the data does not count."""
    return point.per_s("all_bytes") / BYTES_PER_MB


def _streams_mb_s(point: Point, end: str) -> float | None:
    """The sum of the rates of all streams with the array at this end; None where there are no streams."""
    mine = point.run.streams.filter(pl.col("cell").is_in(point.cells))
    if mine.is_empty():
        return None
    sums = mine.filter(pl.col(end) == _ARRAY).group_by("number").agg(pl.col("bytes").sum(), pl.col("elapsed_ns").sum())
    return float(sum(moved / elapsed * 1000 for _number, moved, elapsed in sums.sort("number").iter_rows() if elapsed))


METRICS = (
    Metric(
        kind="throughput_mb_s",
        title="throughput",
        unit="MB/s",
        meaning="bytes of completed requests a second, over all members together; redundancy does not count",
        compute=lambda point, reference: throughput_mb_s(point),
    ),
    Metric(
        kind="streams_read_mb_s",
        title="rates of streams, from the array",
        unit="MB/s",
        meaning="streams that read the array, each over the time to its own end, added up",
        compute=lambda point, reference: _streams_mb_s(point, "source"),
    ),
    Metric(
        kind="streams_write_mb_s",
        title="rates of streams, to the array",
        unit="MB/s",
        meaning="streams that write the array, each over the time to its own end, added up",
        compute=lambda point, reference: _streams_mb_s(point, "sink"),
    ),
    Metric(
        kind="throughput_per_disk_mb_s",
        title="throughput per disk",
        unit="MB/s",
        meaning="throughput divided by all physical disks below the array, those that hold redundancy included; live "
        "members that share a disk count as one",
        compute=lambda point, reference: throughput_mb_s(point) / point.disks,
    ),
    Metric(
        kind="iops",
        title="requests a second",
        unit="1/s",
        meaning="completed requests a second, over all members together",
        compute=lambda point, reference: point.per_s("all_requests"),
    ),
)

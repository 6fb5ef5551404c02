"""Throughput: of the whole array, of its streams by direction, for each physical disk; and requests a second.

For each disk is fair when arrays differ in members. In the simulator every member is a disk of its own. Live members
that share a disk count once: the disk's time is what they divide among themselves, and a second file on it adds none.

Rates of streams are of a direction, until the last stream of that direction has ended: one time for all that is added
up. The throughput of a cell counts all bytes until its last stream has ended, so that reads which end early look as
slow as the writes beside them. Repeats are merged by adding up bytes and times.
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
    """What all streams with the array at this end moved until their last had ended; None where there are no streams."""
    mine = point.rows_of("streams")
    if mine.is_empty():
        return None
    cells = mine.filter(pl.col(end) == _ARRAY).group_by("cell").agg(pl.col("bytes").sum(), pl.col("elapsed_ns").max())
    moved, elapsed = int(cells["bytes"].sum()), int(cells["elapsed_ns"].sum())
    return moved / elapsed * 1000 if elapsed else 0.0


def _of_streams(kind: str, way: str, verb: str, end: str) -> Metric:
    return Metric(
        kind=kind,
        title=f"rates of streams, {way}",
        unit="MB/s",
        meaning=f"what streams {verb} the array, together, until the last of them ended",
        compute=lambda point, reference: _streams_mb_s(point, end),
    )


METRICS = (
    Metric(
        kind="throughput_mb_s",
        title="throughput",
        unit="MB/s",
        meaning="bytes of completed requests a second, over all members together; redundancy does not count",
        compute=lambda point, reference: throughput_mb_s(point),
    ),
    _of_streams("streams_read_mb_s", "from the array", "read of", "source"),
    _of_streams("streams_write_mb_s", "to the array", "write to", "sink"),
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

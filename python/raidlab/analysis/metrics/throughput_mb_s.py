"""Throughput of the whole array: bytes asked for and completed, a second."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

BYTES_PER_MB = 1_000_000


def throughput_mb_s(point: Point) -> float:
    """Throughput in MB/s (10^6 bytes); redundancy written beside the data does not count."""
    return point.per_s("all_bytes") / BYTES_PER_MB


METRIC = Metric(
    kind="throughput_mb_s",
    title="throughput",
    unit="MB/s",
    meaning="bytes of completed requests a second, over all members together; redundancy does not count",
    compute=lambda point, reference: throughput_mb_s(point),
)

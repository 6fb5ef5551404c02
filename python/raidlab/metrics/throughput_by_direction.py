"""Throughput of reads and of writes apart: the two parts of the whole, never a mean of both."""

from __future__ import annotations

from raidlab.metrics.metric import Metric
from raidlab.metrics.throughput_mb_s import BYTES_PER_MB

_MEANING = "bytes of completed {} a second; with those of the other direction the whole throughput"
METRICS = (
    Metric(
        kind="read_mb_s",
        title="throughput, reads",
        unit="MB/s",
        meaning=_MEANING.format("reads"),
        compute=lambda point, reference: point.per_s("read_bytes") / BYTES_PER_MB,
    ),
    Metric(
        kind="write_mb_s",
        title="throughput, writes",
        unit="MB/s",
        meaning=_MEANING.format("writes"),
        compute=lambda point, reference: point.per_s("write_bytes") / BYTES_PER_MB,
    ),
)

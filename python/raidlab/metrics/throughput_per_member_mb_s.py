"""Throughput for each member paid for, redundancy included: the fair figure when arrays differ in members."""

from __future__ import annotations

from raidlab.metrics.metric import Metric
from raidlab.metrics.throughput_mb_s import throughput_mb_s

METRIC = Metric(
    kind="throughput_per_member_mb_s",
    title="throughput per member",
    unit="MB/s",
    meaning="throughput divided by all members of the array, those that hold redundancy included",
    compute=lambda point, reference: throughput_mb_s(point) / point.members,
)

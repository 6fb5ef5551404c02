"""Throughput for each physical disk below the array, redundancy included: fair when arrays differ in members.

In the simulator every member is a disk of its own. Live members that share a disk count once: the disk's time is what
they divide among themselves, and a second file on it adds none.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.throughput_mb_s import throughput_mb_s

METRIC = Metric(
    kind="throughput_per_disk_mb_s",
    title="throughput per disk",
    unit="MB/s",
    meaning="throughput divided by all physical disks below the array, those that hold redundancy included; live "
    "members that share a disk count as one",
    compute=lambda point, reference: throughput_mb_s(point) / point.disks,
)

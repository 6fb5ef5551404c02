"""Processor time that raidlab's threads spent on a request, in their own code and in the kernel.

Work that the kernel does in threads of its own (a loop device's, a file system's) is not in it.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

NS_PER_US = 1000


def processor_time_us(point: Point, column: str) -> float | None:
    """A column of processor time a request, in microseconds; None where it was not counted."""
    spent_ns = point.counted(column)
    requests = point.total("all_requests")
    return None if spent_ns is None or not requests else spent_ns / requests / NS_PER_US


METRICS = (
    Metric(
        kind="cpu_user_per_request_us",
        title="user CPU a request",
        unit="us",
        meaning="processor time of raidlab's threads in their own code, divided by the requests completed",
        compute=lambda point, reference: processor_time_us(point, "cpu_user_ns"),
    ),
    Metric(
        kind="cpu_system_per_request_us",
        title="system CPU a request",
        unit="us",
        meaning="processor time of raidlab's threads in the kernel, divided by the requests completed",
        compute=lambda point, reference: processor_time_us(point, "cpu_system_ns"),
    ),
)

"""What moved at the devices, by the kernel's own counters, against what was asked for.

100 % is a plain device. Less means that a cache answered; more means that something below reads or writes more than it
is asked to: redundancy, a file system's own blocks, read-ahead, or other programs on the same device.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point


def device_bytes_percent(point: Point, operation: str) -> float | None:
    """Bytes the devices read (or wrote) in percent of those asked for; None where no device was asked for any."""
    moved, asked = point.device_bytes(operation)
    return 100 * moved / asked if asked else None


METRICS = tuple(
    Metric(
        kind=f"device_{operation}_bytes_percent",
        title=f"bytes {done} at the device",
        unit="%",
        meaning=f"bytes {done} at the devices below, by the kernel's counters, in percent of those asked for",
        compute=lambda point, reference, operation=operation: device_bytes_percent(point, operation),  # type: ignore[misc]
    )
    for operation, done in (("read", "read"), ("write", "written"))
)

"""What a request costs its disks: their time for it, added up over all disks that it touches.

Modelled disks tell it at any load. Of real members it is the time of their accesses, which is theirs alone as long as
nothing queues: with one request outstanding.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point
from raidlab.study.expand import IDLE_DEPTH

_STAGES = ("overhead", "disconnect", "transfer", "paired")


def disk_time_ms(point: Point) -> float | None:
    """The mean time of all disks for one request; None where nobody tells."""
    times = [point.weighted_mean(f"stage_{stage}_ns") for stage in _STAGES]
    if None not in times:
        return sum(time or 0.0 for time in times) / 1e6
    requests = point.total("all_requests")
    if point.load != "closed" or point.depth != IDLE_DEPTH or not requests:
        return None
    waited_ns = float(point.rows_of("members")["wait_ns"].sum())
    return waited_ns / requests / 1e6 if waited_ns else None


METRIC = Metric(
    kind="disk_time_ms",
    title="disk time",
    unit="ms",
    meaning="time of all disks for one request, added up; of real members with one request outstanding only",
    compute=lambda point, reference: disk_time_ms(point),
)

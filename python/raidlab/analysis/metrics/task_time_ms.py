"""How long a task takes: its requests are issued one after another, so it is the sum of their response times."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

NS_PER_MS = 1_000_000


def task_time_ms_mean(point: Point) -> float | None:
    """The mean response of a request times the requests of a task; None where tasks were not counted."""
    tasks, mean_ns = point.counted("tasks"), point.weighted_mean("all_response_mean_ns")
    if not tasks or mean_ns is None:
        return None
    # Tasks that began before the window and ended in it have requests on both sides; whole numbers of steps do not.
    steps = round(point.total("all_requests") / tasks)
    return mean_ns * steps / NS_PER_MS


METRIC = Metric(
    kind="task_time_ms_mean",
    title="time of a task",
    unit="ms",
    meaning="mean time of a task, the sum of its requests' response times; of a single request its response time",
    compute=lambda point, reference: task_time_ms_mean(point),
)

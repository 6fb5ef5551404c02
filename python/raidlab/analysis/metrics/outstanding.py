"""Requests in flight, on average over the window: in an open loop, what an array lets pile up.

Reference: J. D. C. Little, *A proof for the queuing formula L = lambda W*, Operations Research 9 (1961): at equal rates
the number in flight goes with the response time, and with nothing else.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point


def outstanding_mean(point: Point) -> float | None:
    """The mean over all repeats, each as long as it ran; None where it was not recorded."""
    elapsed_ns = point.total("elapsed_ns")
    if not elapsed_ns or any(row["depth_mean"] is None for row in point.rows):
        return None
    return float(sum(row["depth_mean"] * row["elapsed_ns"] for row in point.rows)) / elapsed_ns


METRIC = Metric(
    kind="outstanding_mean",
    title="requests in flight",
    unit="1",
    meaning="mean number of requests in flight over the window, over all volumes together",
    compute=lambda point, reference: outstanding_mean(point),
)

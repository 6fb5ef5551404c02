"""Requests completed a second."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric

METRIC = Metric(
    kind="iops",
    title="requests a second",
    unit="1/s",
    meaning="completed requests a second, over all members together",
    compute=lambda point, reference: point.per_s("all_requests"),
)

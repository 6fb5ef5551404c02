"""The share of the members' capacity that holds user data."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric

METRIC = Metric(
    kind="storage_efficiency_percent",
    title="storage efficiency",
    unit="%",
    meaning="user capacity in percent of the capacity of all members",
    compute=lambda point, reference: 100 * float(point.rows[0]["storage_efficiency"]),
)

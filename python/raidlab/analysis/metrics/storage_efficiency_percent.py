"""The share of the members' capacity that holds user data."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point


def _percent(point: Point, _reference: Point | None) -> float | None:
    return None if point.storage_efficiency is None else 100 * point.storage_efficiency


METRIC = Metric(
    kind="storage_efficiency_percent",
    title="storage efficiency",
    unit="%",
    meaning="user capacity in percent of the capacity of all members",
    compute=_percent,
)

"""Response time: percentiles from merged histograms, and the mean."""

from __future__ import annotations

from raidlab.metrics.metric import Metric
from raidlab.metrics.point import Point

NS_PER_MS = 1_000_000


def response_time_ms(point: Point, percentile: float) -> float | None:
    """The response time that ``percentile`` % of a point's requests did not exceed."""
    value_ns = point.response.percentile_ns(percentile)
    return None if value_ns is None else value_ns / NS_PER_MS


def response_time_ms_mean(point: Point) -> float | None:
    """The mean response time over all requests."""
    mean_ns = point.weighted_mean("all_response_mean_ns")
    return None if mean_ns is None else mean_ns / NS_PER_MS


def _percentile(percentile: float) -> Metric:
    return Metric(
        kind=f"response_time_ms_p{percentile:g}".replace(".", "_"),
        title=f"p{percentile:g} response time",
        unit="ms",
        meaning=f"{percentile:g} % of the requests took at most this, counted from their intended arrival",
        compute=lambda point, reference: response_time_ms(point, percentile),
    )


METRICS = (
    _percentile(50),
    _percentile(90),
    _percentile(99),
    _percentile(99.9),
    Metric(
        kind="response_time_ms_mean",
        title="mean response time",
        unit="ms",
        meaning="the mean over all requests, counted from their intended arrival",
        compute=lambda point, reference: response_time_ms_mean(point),
    ),
)

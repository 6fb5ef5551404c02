"""Response time: percentiles from merged histograms, and the mean; and the wait of an arrival at any moment.

That wait is what stalls of a closed loop mean to those outside.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

NS_PER_MS = 1_000_000
_WAIT_PERCENT = 99


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


def _deviation_ms(point: Point) -> float | None:
    deviation_ns = point.response.deviation_ns
    return None if deviation_ns is None else deviation_ns / NS_PER_MS


def _end(kind: str, percentile: float, word: str) -> Metric:
    return Metric(
        kind=f"response_time_ms_{kind}",
        title=f"{word} response time",
        unit="ms",
        meaning=f"the {word} of all requests, to the resolution of the histogram",
        compute=lambda point, reference: response_time_ms(point, percentile),
    )


def _wait_ms(point: Point) -> float | None:
    wait_ns = point.wait_ns(_WAIT_PERCENT)
    return None if wait_ns is None else wait_ns / NS_PER_MS


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
    Metric(
        kind="response_time_ms_sd",
        title="standard deviation of response time",
        unit="ms",
        meaning="how far response times scatter about their mean, over all requests",
        compute=lambda point, reference: _deviation_ms(point),
    ),
    _end("min", 0, "shortest"),
    _end("max", 100, "longest"),
    Metric(
        kind=f"arrival_wait_ms_p{_WAIT_PERCENT}",
        title=f"p{_WAIT_PERCENT} wait of an arrival",
        unit="ms",
        meaning=f"{100 - _WAIT_PERCENT} % of arrivals at any moment of a closed loop would have waited this long or "
        "longer until anything completed: reckoned from the times in which nothing did, a lower bound; live only",
        compute=lambda point, reference: _wait_ms(point),
    ),
)

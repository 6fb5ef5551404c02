"""How long an arrival at any moment would have waited at least: what stalls of a closed loop mean to those outside."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.metrics.response_time import NS_PER_MS

_PERCENTILE = 99


def _wait_ms(point: Point) -> float | None:
    wait_ns = point.wait_ns(_PERCENTILE)
    return None if wait_ns is None else wait_ns / NS_PER_MS


METRIC = Metric(
    kind=f"arrival_wait_ms_p{_PERCENTILE}",
    title=f"p{_PERCENTILE} wait of an arrival",
    unit="ms",
    meaning=f"{100 - _PERCENTILE} % of arrivals at any moment of a closed loop would have waited this long or longer "
    "until anything completed: reckoned from the times in which nothing did, a lower bound; live only",
    compute=lambda point, reference: _wait_ms(point),
)

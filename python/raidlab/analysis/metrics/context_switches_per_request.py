"""How often raidlab's threads gave up the processor for a request, of themselves or because they had to."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point


def context_switches_per_request(point: Point) -> float | None:
    """Voluntary and involuntary switches a request; None where they were not counted."""
    voluntary, involuntary = point.counted("voluntary_switches"), point.counted("involuntary_switches")
    requests = point.total("all_requests")
    return None if voluntary is None or involuntary is None or not requests else (voluntary + involuntary) / requests


METRIC = Metric(
    kind="context_switches_per_request",
    title="context switches a request",
    unit="1",
    meaning="context switches of raidlab's threads, divided by the requests completed",
    compute=lambda point, reference: context_switches_per_request(point),
)

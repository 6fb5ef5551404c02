"""Did the device stall, and does a closed loop hide it?

A closed loop sends nothing new while a device stalls: a stall is as many slow requests as were in flight, however long
it lasts, and a percentile over requests may pass it by. Whoever comes from outside meets it as often as it is long. How
long such a one would have waited at least is reckoned from the times in which nothing completed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.metrics import Analysis, Point
from raidlab.study.units import format_time_ns

NAME = "stalls"
# Shorter ones may be this machine's own.
_LEAST_NS = 10_000_000
# In mean times between completions, and in median response times: what chance does not bring about.
_MANY_GAPS = 20
_MANY_TIMES = 3
_LEAST_COUNT = 3
_LEAST_SHARE = 0.02
_HIDDEN_TIMES = 2.0
PERCENTILE = 99


@dataclass(frozen=True)
class StallSummary:
    """Stalls of a point, and two 99th percentiles: of its response times, and of what arrivals at any moment wait."""

    count: int
    share: float
    longest_ns: int
    response_ns: int
    arrival_wait_ns: float


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for a closed loop whose 99th percentile is less than half of what arrivals at any moment wait at least."""
    points = [point for point in analysis.points if point.target == "live" and not point.is_open]
    drawn = [point for point in points if point.total("all_requests") and point.load in ("closed", "hold")]
    if not drawn:
        return
    known = [point for point in drawn if point.gaps.value_ns.size]
    if not known:
        drawn_by = {work.name for work in analysis.run.study.workload if work.streams is None and work.files is None}
        is_drawn = any(point.workload in drawn_by for point in drawn)
        why = "it was" if is_drawn else "of streams and whole files it is"
        evidence = f"Could not be determined, because {why} not recorded how long nothing completed."
        yield Finding(NAME, "live", UNKNOWN, evidence, "Measure again." if is_drawn else "Measure requests.")
        return
    found = [(stalled, point) for point in known if (stalled := stalls_of(point)) is not None]
    if not found:
        longest = max(int(point.gaps.value_ns.max()) for point in known)
        told = f"for {format_time_ns(longest)} at most" if longest else "for less than 1 ms at any time"
        yield Finding(NAME, "live", PASS, f"Nothing completed {told}; no closed loop hides stalls.")
        return
    worst, point = max(found, key=lambda entry: entry[0].arrival_wait_ns / max(entry[0].response_ns, 1))
    evidence = (
        f"In {len(found)} of {len(known)} closed loops the device stalled; for one, {point.array}, {point.workload}, "
        f"{point.level}: {worst.count} times nothing completed for long, {worst.share:.0%} of the time, up to "
        f"{format_time_ns(worst.longest_ns)}. The p{PERCENTILE} of the closed loop is "
        f"{format_time_ns(worst.response_ns)}; one in a hundred arrivals at any moment would have waited "
        f"{format_time_ns(round(worst.arrival_wait_ns))} or more (reckoned from the stalls, without a queue behind "
        "them)."
    )
    remedy = knob(
        analysis,
        "Measure with an open loop (open of [load] in the study): its percentiles count stalls as they are met.",
        "Measure with an open loop (open of [load] in the study): its percentiles count stalls as they are met.",
        "Measure with an open loop (--rate): its percentiles count stalls as they are met.",
    )
    yield Finding(NAME, "live", WARN, evidence, remedy)


def stalls_of(point: Point) -> StallSummary | None:
    """The stalls that a point's closed loop hides; None where there are none, or its percentiles show them."""
    gaps, requests = point.gaps, point.total("all_requests")
    median_ns, response_ns = point.response.percentile_ns(50), point.response.percentile_ns(PERCENTILE)
    if not gaps.total or median_ns is None or response_ns is None:
        return None
    least_ns = max(_LEAST_NS, _MANY_GAPS * point.watched_ns / requests, _MANY_TIMES * median_ns)
    is_stall = gaps.value_ns >= least_ns
    count = int(gaps.count[is_stall].sum())
    share = float((gaps.value_ns[is_stall] * gaps.count[is_stall]).sum()) / point.watched_ns
    arrival_wait_ns = point.wait_ns(PERCENTILE) or 0.0
    if count < _LEAST_COUNT or share < _LEAST_SHARE or arrival_wait_ns < _HIDDEN_TIMES * response_ns:
        return None
    return StallSummary(count, share, int(gaps.value_ns.max()), response_ns, arrival_wait_ns)

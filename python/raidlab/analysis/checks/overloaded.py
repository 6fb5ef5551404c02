"""Does each array keep up with the rate that an open loop offers it?

Requests that arrive faster than they are served pile up: the response time then says how long the run was, not how
fast the array is.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.study.units import format_number

NAME = "overloaded"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when an array serves less than 95 % of the rate offered."""
    for target in analysis.targets:
        points = [point for point in analysis.points if point.target == target and point.load == "open"]
        behind = [point for point in points if not point.keeps_up]
        if not points:
            continue
        if not behind:
            yield Finding(NAME, target, PASS, f"All {len(points)} open-loop points keep up with the rate offered.")
            continue
        worst = min(behind, key=lambda point: point.per_s("all_requests") / point.rate_per_s)
        evidence = (
            f"{len(behind)} of {len(points)} open-loop points do not keep up; {worst.array}, {worst.workload}, serves "
            f"{format_number(worst.per_s('all_requests'))} of {format_number(worst.rate_per_s)} requests/s offered."
        )
        yield Finding(NAME, target, WARN, evidence, "Read no response times there; offer less.")

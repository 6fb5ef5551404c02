"""Had the beginning ended when measuring began?

Caches fill, drives clean up, queues build: the first seconds of a load are not like the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.study.units import format_time_ns

NAME = "warm_up"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a pilot that was to find the end of the warm-up had not settled at its own."""
    measure = analysis.run.facts.get("measure")
    pilots = measure["warmups"] if measure is not None else []
    if not pilots:
        return
    unsettled = [pilot for pilot in pilots if not pilot["settled"]]
    if unsettled:
        first = unsettled[0]
        evidence = (
            f"{len(unsettled)} of {len(pilots)} pilots had not settled; for one, {first['subject']}, {first['load']}: "
            f"{first['sentence']}."
        )
        remedy = "Measure longer with --runtime, or give a --warmup that is known to be long enough."
        yield Finding(NAME, "live", WARN, evidence, remedy)
        return
    longest = max(pilots, key=lambda pilot: pilot["warmup_ns"])
    evidence = (
        f"Every pilot settled; the longest warm-up is {format_time_ns(longest['warmup_ns'])} ({longest['subject']}, "
        f"{longest['load']}): {longest['sentence']}."
    )
    yield Finding(NAME, "live", PASS, evidence)

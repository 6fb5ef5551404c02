"""Did every search for a response-time target reach it?

A search that ends at its deepest queue with the target still unmet has not found the load at which arrays answer alike:
what it gives is a lower bound, taken at a depth that somebody chose.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.comparison import NEVER_EXCEEDED

NAME = "target_never_reached"
MET = "All {searches} searches met their response-time target."
BELOW = (
    "{short} of {searches} searches ended at their deepest queue ({depth}) with p{percentile} still below "
    "{target_ms} ms (for one, {array}, {workload}): their figures are lower bounds, not equal response times."
)


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when the deepest queue of a search stays below the response-time target."""
    rows = list(analysis.run.holds.iter_rows(named=True))
    for target in dict.fromkeys(row["target"] for row in rows):
        mine = [row for row in rows if row["target"] == target]
        short = [row for row in mine if row["bound"] == NEVER_EXCEEDED]
        if not short:
            yield Finding(NAME, target, PASS, MET.format(searches=len(mine)))
            continue
        one = short[0]
        evidence = BELOW.format(
            short=len(short),
            searches=len(mine),
            depth=f"{one['depth']:g}",
            percentile=f"{one['percentile']:g}",
            target_ms=f"{one['target_ns'] / 1e6:g}",
            array=one["array"],
            workload=one["workload"],
        )
        yield Finding(NAME, target, WARN, evidence, "Raise load.hold.max_depth, or hold a shorter response time.")

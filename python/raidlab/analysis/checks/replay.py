"""Was what was replayed the trace?

Requests that were left out, moved into a volume that is smaller than the recorded one, or widened to the array's
sectors are another workload than the one recorded. The engine counts them and judges each cell.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.engine import summed_up
from raidlab.analysis.checks.finding import Finding
from raidlab.analysis.metrics import Analysis

NAME = "replay"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when requests of a trace were left out, wrapped, widened or reordered in any cell."""
    yield from summed_up(analysis, {NAME})

"""Did the host keep up with the emulated disks?

A completion that is delivered late delays what follows from it, as a slow host does: past a small share of the disks'
own time, a figure says more about the host than about the disks. The engine records how late every completion was and
judges each cell.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.engine import summed_up
from raidlab.analysis.checks.finding import Finding
from raidlab.analysis.metrics import Analysis

NAME = "lateness"


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when the 99th percentile of lateness is more than 2 % of the mean service time in any cell."""
    yield from summed_up(analysis, {NAME})

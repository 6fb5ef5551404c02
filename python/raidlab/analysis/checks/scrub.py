"""What did the array find when it went over all it holds, and how long did that take?

A run with a scrub is a run of that scrub: its figures are those of an array that works for itself as well. Every array
and load has its own, and each is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import Finding, told_by_engine
from raidlab.analysis.metrics import Analysis

NAME = "scrub"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with how long each scrub took; WARN where redundancy did not agree or was unreadable, or it was cut off."""
    remedy = "Members that were not written through this array never agreed: let a scrub of 'repair' go first."
    yield from told_by_engine(analysis, NAME, remedy)

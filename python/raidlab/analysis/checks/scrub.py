"""What did the array find when it went over all it holds, and how long did that take?

A run with a scrub is a run of that scrub: its figures are those of an array that works for itself as well. Every array
and load has its own, and each is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import Finding, told_by_engine
from raidlab.analysis.metrics import Analysis
from raidlab.study.schema import Array

NAME = "scrub"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with how long each took; WARN if redundancy did not agree or was unreadable, or it was cut off or idle."""
    remedy = "Members that were not written through this array never agreed: let a scrub of 'repair' go first."

    def waits(array: Array) -> bool:
        return any(event.throttle is not None and event.throttle.kind == "idle" for event in array.events)

    yield from told_by_engine(analysis, NAME, remedy, waits)

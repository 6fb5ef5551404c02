"""How long did it take until members were rebuilt?

A run with new members in the places of missing ones is a run of that rebuild: its figures are those of an array that
works for itself as well, and of a whole one once the rebuild is over. Every array and load has its own, and each is
told.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import Finding, told_by_engine
from raidlab.analysis.metrics import Analysis
from raidlab.study.schema import Array

NAME = "rebuild"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with how long each took or how far it is; WARN if places are lost or it had no time, INVALID if given up."""

    def waits(array: Array) -> bool:
        return array.rebuild is not None and array.rebuild.throttle.kind == "idle"

    yield from told_by_engine(analysis, NAME, "Measure for longer, or let it fail sooner.", waits)

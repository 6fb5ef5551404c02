"""What became of members' places that could not be read?

A run with latent sector errors is a run of arrays that repair them; what was not met lies there still. Every array and
load has its own, and each is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import Finding, told_by_engine
from raidlab.analysis.metrics import Analysis

NAME = "unreadable"


def check(analysis: Analysis) -> Iterator[Finding]:
    """PASS with what was written anew and what still cannot be read; WARN where requests failed."""
    yield from told_by_engine(analysis, NAME, "An array that has redundancy left answers from its other members.")

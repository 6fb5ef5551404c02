"""Was a member so much slower than its peers that it was read last?

Where the policy has members sit out (``sit_out``), figures are those of an array that goes around one for a time. Each
time is told, of every array and load.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import Finding, told_by_engine
from raidlab.analysis.metrics import Analysis

NAME = "sat_out"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN with who sat out, from when until when, and how slow it was."""
    yield from told_by_engine(analysis, NAME, "Look at that disk: its SMART data, its cable, its firmware's messages.")

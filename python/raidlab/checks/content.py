"""Did the device give back what was written to it?

A device that loses writes, answers with zeros, or wraps at an eighth of its capacity is fast and worthless. What raidlab
writes bears a stamp in every sector (place, number of the write, a sum of the rest), so a share of what is read is
compared while measuring, and a sample of what was acknowledged is read back afterwards. The engine compares and judges
each cell; of contents that raidlab did not write nothing can be known.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.checks.engine import summed_up
from raidlab.checks.finding import Finding
from raidlab.metrics import Analysis

NAME = "content"


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when a sector did not hold what was written to it; UNKNOWN where nobody knows what that was."""
    yield from summed_up(analysis, {NAME})

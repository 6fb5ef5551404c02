"""Do the live members go past the page cache?

Buffered I/O measures memory until the cache is full, and the kernel's write-back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raidlab.checks.finding import PASS, WARN, Finding
from raidlab.metrics import Analysis

NAME = "buffered_io"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a target was not opened with O_DIRECT."""
    members = [member for member in analysis.run.facts["live_members"] if member["kind"] != "memory"]
    flags = list(_direct_flags(analysis.run.facts.get("live_facts")))
    if not members or not flags:
        return
    buffered = flags.count(False)
    if buffered:
        yield Finding(
            NAME,
            "live",
            WARN,
            f"{buffered} of {len(flags)} members were opened without O_DIRECT: the page cache stands between the array "
            "and the disk.",
            "Use a file system that supports O_DIRECT (ext4 and xfs do), or block devices.",
        )
    else:
        yield Finding(NAME, "live", PASS, f"All {len(flags)} members were opened with O_DIRECT.")


def _direct_flags(facts: Any) -> Iterator[bool]:
    """Every ``direct`` the engine reports, wherever it stands in its facts."""
    if isinstance(facts, dict):
        if isinstance(facts.get("direct"), bool):
            yield facts["direct"]
        for value in facts.values():
            yield from _direct_flags(value)
    elif isinstance(facts, list):
        for value in facts:
            yield from _direct_flags(value)

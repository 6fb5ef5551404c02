"""Do the live members go past the page cache?

Buffered I/O measures memory until the cache is full, and the kernel's write-back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.checks.finding import PASS, WARN, Finding
from raidlab.metrics import Analysis

NAME = "buffered_io"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a member is not opened with O_DIRECT."""
    ways = [member["io"] for member in analysis.run.facts["live_members"] if member["kind"] != "memory"]
    if not ways:
        return
    buffered = ways.count("buffered")
    if buffered:
        yield Finding(
            NAME,
            "live",
            WARN,
            f"{buffered} of {len(ways)} members are not opened with O_DIRECT: the page cache stands between the array "
            "and the disk.",
            "Use a file system that supports O_DIRECT (ext4 and xfs do), or block devices.",
        )
    else:
        yield Finding(NAME, "live", PASS, f"All {len(ways)} members are opened with O_DIRECT.")

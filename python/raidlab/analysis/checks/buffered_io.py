"""Do the live members go past the page cache?

Buffered I/O measures memory until the cache is full, and the kernel's write-back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.checks.knobs import is_measurement
from raidlab.analysis.checks.members import MemberVerdict, name_of, passed
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "buffered_io"
_REMEDY = "Use a file system that supports O_DIRECT (ext4 and xfs do), or block devices"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a member is not opened with O_DIRECT."""
    ways = [member["io"] for member in analysis.run.live_members() if member["kind"] not in ("memory", "null")]
    if not ways:
        return
    buffered = ways.count("buffered")
    what = "targets" if is_measurement(analysis) else "members"
    if buffered:
        evidence = (
            f"{buffered} of {len(ways)} {what} are not opened with O_DIRECT: the page cache stands between raidlab and "
            "the disk."
        )
        remedy = f"{_REMEDY}{', and leave out --buffered' if is_measurement(analysis) else ''}."
        yield Finding(NAME, "live", WARN, evidence, remedy)
    else:
        yield Finding(NAME, "live", PASS, f"All {len(ways)} {what} are opened with O_DIRECT.")


def judge(member: Member) -> MemberVerdict | None:
    """WARN when it cannot be opened with O_DIRECT."""
    if member["kind"] not in ("file", "block"):
        return None
    if member["io"] == "buffered":
        evidence = f"{name_of(member)} cannot be opened with O_DIRECT: the page cache answers."
        return MemberVerdict(WARN, evidence, f"{_REMEDY}.")
    return passed(f"{name_of(member)} is opened with O_DIRECT.")

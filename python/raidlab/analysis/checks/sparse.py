"""Is what was read stored anywhere?

A hole of a sparse file, a block that a thin device never got, reads as zeros without any disk: a figure over such
measures the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, WARN, Finding
from raidlab.analysis.checks.members import (
    MemberVerdict,
    content_of,
    name_of,
    over_members,
    passed,
    reads_and_writes,
    unknown,
)
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member
from raidlab.study.units import format_bytes

NAME = "sparse"
_WHOLE_SHARE = 0.99
_INVALID_SHARE = 0.5
_REMEDY = "Fill the target first (a write over all of it), or let raidlab make its own file: name a directory."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a file or device below a target is not stored in full; INVALID when half is missing and it is read."""
    reads, _ = reads_and_writes(analysis)
    yield from over_members(NAME, analysis, lambda member: judge(member, reads=reads))


def judge(member: Member, *, reads: bool = True) -> MemberVerdict | None:
    """By what the file systems and zram say they keep."""
    facts = member.get("allocation")
    if facts is None:
        return None
    if "unknown" in facts:
        return unknown(f"of {name_of(member)} {facts['unknown']}")
    if not facts["places"]:
        return None
    shares = [
        (stored / place["size_bytes"], stored, place)
        for place in facts["places"]
        if (stored := place["stored_bytes"]) is not None
    ]
    if not shares:
        return _not_counted(member, facts["places"][0]["name"])
    share, stored, place = min(shares, key=lambda found: found[0])
    unwritten = place.get("unwritten_bytes", 0)
    reserved = f"; {format_bytes(unwritten)} are reserved and were never written" if unwritten else ""
    evidence = (
        f"Of {place['name']} {format_bytes(stored)} are stored, {share:.0%} of its "
        f"{format_bytes(place['size_bytes'])}{reserved}."
    )
    if share >= _WHOLE_SHARE:
        return passed(evidence)
    return MemberVerdict(INVALID if reads and share < _INVALID_SHARE else WARN, evidence, _REMEDY)


def _not_counted(member: Member, file: str) -> MemberVerdict:
    """Of a file whose file system counts no blocks: by the zeros among a sample of it."""
    content = content_of(member)
    blocks, zero = content["blocks"], content.get("zero", 0)
    if blocks and zero <= (1 - _WHOLE_SHARE) * blocks:
        return passed(f"The file system of {file} counts no blocks; of {blocks} blocks sampled {zero} are zeros.")
    why = f"the file system of {file} counts no blocks, and {zero} of {blocks} blocks sampled are zeros"
    return unknown(why, _REMEDY)

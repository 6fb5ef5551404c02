"""Is striping piled upon striping?

A stripe over arrays that stripe by themselves cuts requests twice: what one layer lays side by side the other may lay
on one disk, and neither chunk says how large a transfer a disk sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, name_of, over_members, passed
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member, Volume
from raidlab.study.check import stripes_in
from raidlab.study.units import format_bytes

NAME = "stacked_striping"
_STRIPED = re.compile(r"raid(0|4|5|6|10)|striped|raidz\d?|draid")
_REMEDY = "Stripe in one place only: give raidlab the disks themselves, or measure the array below by itself."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when an array of raidlab's stripes over volumes that stripe, or one volume that stripes lies on another."""
    stripes = [array.name for array in analysis.run.study.array if stripes_in(analysis.run.tree(array.name))]
    yield from over_members(NAME, analysis, lambda member: judge(member, above=_above(member, stripes)))


def _above(member: Member, stripes: list[str]) -> str | None:
    """The array of the run that stripes over a member; the members of a study serve all of its arrays."""
    subject = member.get("subject")
    return next((name for name in stripes if subject in (None, name)), None)


def judge(member: Member, *, above: str | None = None) -> MemberVerdict | None:
    """By the levels of the kernel's volumes below, and the array above if there is one: that of a TREE@PLACE too."""
    above = above or member.get("striped_by")
    volumes = member.get("volumes")
    if volumes is None or (not volumes and above is None):
        return None
    striped = [volume for volume in volumes if _STRIPED.search(volume["level"] or "")]
    words = [_words(volume) for volume in striped]
    if above is not None and striped:
        evidence = f"{above} stripes over {name_of(member)}, which lies on {', on '.join(words)}: striped twice."
        return MemberVerdict(WARN, evidence, _REMEDY)
    if len(striped) > 1:
        evidence = f"{name_of(member)} lies on {', on '.join(words)}: striped {len(striped)} times."
        return MemberVerdict(WARN, evidence, _REMEDY)
    what = f"striped once, by {words[0]}" if words else "not striped below"
    return passed(f"{name_of(member)} is {what}.")


def _words(volume: Volume) -> str:
    chunk = f", chunk {format_bytes(volume['chunk_bytes'])}" if volume["chunk_bytes"] else ""
    return f"{volume['name']} ({volume['kind']} {volume['level']}{chunk})"

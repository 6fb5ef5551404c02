"""Would other data be faster, because something below stores equal blocks once?

What raidlab writes repeats no sector. What a target holds already may repeat, and a target that deduplicates then reads
one block where another would read many.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import (
    MemberVerdict,
    content_of,
    is_stored,
    name_of,
    over_members,
    passed,
    reads_and_writes,
)
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "dedupe"
_FEW_SHARE = 0.1
_FASTER = 1.1
_REMEDY = "Fill the target with data that do not repeat (a run that writes all of it), or turn deduplication off."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for a target that deduplicates, or of whose content a sample repeats."""
    reads, _ = reads_and_writes(analysis)
    yield from over_members(NAME, analysis, lambda member: judge(member, reads=reads))


def judge(member: Member, *, reads: bool = True) -> MemberVerdict | None:
    """By what the kernel says of the target, what a sample of it holds, and pairs of writes if there were any."""
    if not is_stored(member) or "stack" not in member:
        return None
    name, who = name_of(member), _deduplicator_of(member)
    if who is not None:
        return MemberVerdict(WARN, f"{who} stores equal blocks once.", _REMEDY)
    pair = member.get("repeated_pair")
    if pair is not None and pair["low"] > _FASTER:
        evidence = (
            f"{name} wrote repeated data {pair['ratio']:.2f} times as fast as data without repetition "
            f"({pair['low']:.2f} to {pair['high']:.2f} at 95 %, {pair['pairs']} pairs): something below deduplicates."
        )
        return MemberVerdict(WARN, evidence, _REMEDY)
    content = content_of(member)
    blocks, repeated = content["blocks"], content.get("repeated", 0)
    if reads and blocks and repeated > _FEW_SHARE * blocks:
        return MemberVerdict(WARN, f"{repeated} of {blocks} blocks sampled of {name} repeat another of them.", _REMEDY)
    measured = ""
    if pair is not None:
        measured = f" Repeated writes were {pair['ratio']:.2f} times as fast as others."
    return passed(
        f"Nothing tells that {name} deduplicates; what raidlab writes repeats no sector, and of {blocks} blocks "
        f"sampled {repeated} repeat.{measured}"
    )


def _deduplicator_of(member: Member) -> str | None:
    for volume in member.get("volumes", []):
        how = volume.get("details", {}).get("dedup")
        if volume["kind"] == "zfs" and how not in (None, "off"):
            return f"{volume['name']} (dedup={how})"
        if volume["level"] == "vdo":
            return f"{volume['name']} (VDO)"
    return None

"""Would other data be faster, because something below compresses?

Zeros and text shrink, random bytes do not: a target that compresses is as fast as the data let it be, and one that
keeps zeros for nothing reads them for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, WARN, Finding
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

NAME = "compression"
# Of the blocks sampled.
_FEW_SHARE = 0.1
_MOST_SHARE = 0.5
# Compressible data are so much faster on a target that compresses, in the worst case of the interval.
_FASTER = 1.1
_FILL = "Fill it with random data before reading (a run that writes all of it), or name a directory."
_SAY = "Give the share that compresses with every figure (--compressible), or turn compression off."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for a target that compresses, or whose content would; INVALID where such a target's zeros were read."""
    reads, writes = reads_and_writes(analysis)
    measure = analysis.run.facts.get("measure")
    share = measure["drive"]["compressible_percent"] if measure is not None and writes else 0
    yield from over_members(NAME, analysis, lambda member: judge(member, reads=reads, written_percent=share))


def judge(member: Member, *, reads: bool = True, written_percent: int = 0) -> MemberVerdict | None:
    """By what the kernel says of the target, what a sample of it holds, and pairs of writes if there were any."""
    if not is_stored(member) or "stack" not in member:
        return None
    name, content = name_of(member), content_of(member)
    pair, compressor = member.get("compressible_pair"), compressor_of(member)
    faster = "" if pair is None else f" Compressible data were written {pair['ratio']:.2f} times as fast as others."
    blocks = max(content["blocks"], 1)
    zero, shrinks = content.get("zero", 0) / blocks, content.get("compressible", 0) / blocks
    held = f"of {content['blocks']} blocks sampled {zero:.0%} are zeros and {shrinks:.0%} compress"
    if compressor is not None:
        if reads and zero > _MOST_SHARE:
            return MemberVerdict(INVALID, f"{compressor}, and {held}: zeros are read from nowhere.", _FILL)
        return MemberVerdict(WARN, f"{compressor}: its speed is that of the data; {held}.{faster}", _SAY)
    if pair is not None and pair["low"] > _FASTER:
        between = f"{pair['low']:.2f} to {pair['high']:.2f} at 95 %, {pair['pairs']} pairs"
        return MemberVerdict(WARN, f"Something below {name} compresses.{faster[:-1]} ({between}).", _SAY)
    if written_percent:
        evidence = f"{written_percent} % of what was written to {name} compresses away."
        return MemberVerdict(WARN, evidence, "Leave out --compressible for figures that hold for any data.")
    evidence = f"Nothing tells that {name} compresses; {held}.{faster}"
    if reads and shrinks > _FEW_SHARE:
        evidence = f"Of {name}, {held}: figures of reading it may be those of such data.{faster}"
        return MemberVerdict(WARN, evidence, _FILL)
    return passed(evidence)


def compressor_of(member: Member) -> str | None:
    """Who compresses below a target, as the beginning of a sentence; None where nobody is known to."""
    for layer in member.get("stack", []):
        if layer.get("compresses"):
            return f"{layer['name']} compresses what it keeps ({layer['compresses']})"
    for volume in member.get("volumes", []):
        how = volume.get("details", {}).get("compression")
        if volume["kind"] == "zfs" and how not in (None, "off"):
            return f"{volume['name']} compresses what it keeps ({how})"
        if volume["level"] == "vdo":
            return f"{volume['name']} (VDO) compresses what it keeps"
    system = member.get("filesystem")
    options = system["options"].split(",") if system is not None else []
    kept = [option for option in options if option.startswith("compress")]
    if kept:
        return f"The file system of {name_of(member)} is mounted with {kept[0]}"
    return None

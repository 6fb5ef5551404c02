"""Is what was written safe, or does it wait in a memory that loses it with the power?

A volatile cache takes writes at the speed of memory until it is full, and keeps them safe only when it is flushed. A
device may also say that it has flushed and not have. That shows when its power is cut, and in no other way for certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.cache import in_memory
from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import (
    MemberVerdict,
    is_stored,
    name_of,
    over_members,
    passed,
    reads_and_writes,
)
from raidlab.analysis.checks.members import unknown as not_known
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member
from raidlab.study.units import format_time_ns

NAME = "write_cache"
_VOLATILE = "write back"
# A quarter of a revolution of a disk that turns 15,000 times a minute: scattered blocks are not written in less.
_LEAST_FLUSH_NS = 1_000_000
_TELLS = (
    "Cut its power while it writes, and read what it had acknowledged (diskchecker.pl). How fast it is with a full "
    "cache, measure --until-steady tells."
)


def check(analysis: Analysis) -> Iterator[Finding]:
    """UNKNOWN for writes to devices with a volatile cache: only cutting their power tells what it loses."""
    _, writes = reads_and_writes(analysis)
    if writes:
        yield from over_members(NAME, analysis, judge)


def judge(member: Member) -> MemberVerdict | None:
    """By what the devices say of themselves; WARN where a disk that turns flushes scattered blocks in under 1 ms."""
    if not is_stored(member) or "stack" not in member or in_memory(member):
        return None
    name, flushed = name_of(member), member.get("flushed")
    disks = [layer for layer in member["stack"] if layer["name"] in member["disks"]]
    turning = bool(disks) and all(layer.get("rotational") for layer in disks)
    told = ""
    if flushed is not None:
        told = f"; a flush of {flushed['blocks']} scattered blocks took {format_time_ns(flushed['median_ns'])}"
        if turning and flushed["median_ns"] < _LEAST_FLUSH_NS:
            evidence = f"{name} lies on disks that turn{told}: they cannot have been written in that time."
            remedy = "Turn the cache off (hdparm -W0), or know that it survives loss of power."
            return MemberVerdict(WARN, evidence, remedy)
    caches = [layer["name"] for layer in member["stack"] if layer.get("write_cache") == _VOLATILE]
    if caches:
        return not_known(f"{', '.join(caches)} below {name} may hold writes in a volatile cache{told}", _TELLS)
    if not disks or any(layer.get("write_cache") is None for layer in disks):
        return not_known(f"the kernel does not tell whether {name} has a write cache{told}", _TELLS)
    return passed(f"No device below {name} says that it has a volatile write cache{told}.")

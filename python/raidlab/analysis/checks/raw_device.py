"""Was the thing measured that programs use: the file system, not the raw device below it?

A raw device has no journal, no allocation, no metadata: its figures are an upper bound of a file system's on it, and to
set one beside the other compares nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, name_of, over_members, passed, unknown
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "raw_device"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a raw device holds a file system, or when some targets are raw devices and others files."""
    kinds = {member["kind"] for member in analysis.run.live_members()}
    if {"block", "file"} <= kinds:
        evidence = "Some targets are raw devices and others files: between them stands a file system, not only a disk."
        yield Finding(NAME, "live", WARN, evidence, "Measure all as files (name directories) or all as devices.")
        return
    yield from over_members(NAME, analysis, judge)


def judge(member: Member) -> MemberVerdict | None:
    """By what stands on the device."""
    name = name_of(member)
    if member["kind"] == "file" and member.get("path"):
        system = member.get("filesystem")
        through = system["kind"] if system is not None else "its file system"
        return passed(f"{name} is reached through {through}, as programs reach it.")
    if member["kind"] != "block" or "signature" not in member:
        return None
    signature = member["signature"]
    if "unknown" in signature:
        return unknown(f"what stands on {name} is not known ({signature['unknown']})")
    if signature["kind"] is not None and signature.get("usage") == "filesystem":
        evidence = (
            f"{name} holds {signature['kind']}, and was measured below it: programs are served by the file system."
        )
        remedy = "Mount it and name the mount point (raidlab makes a file there), or say 'raw device' with the figure."
        return MemberVerdict(WARN, evidence, remedy)
    what = f"holds {signature['kind']}" if signature["kind"] else "holds no file system"
    return passed(f"{name} {what} and is measured as a raw device: figures of a file system on it will differ.")

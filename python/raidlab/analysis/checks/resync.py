"""Was anything else at work in the kernel's arrays: a resync, a rebuild, a scrub, a balance?

It reads and writes the same disks, and ends some day: what is measured beside it is neither the array's speed nor
steady.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.members import (
    MemberVerdict,
    name_of,
    over_members,
    passed,
    volume_name,
    volumes_of,
)
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member
from raidlab.study.schema import Array

NAME = "resync"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when an array or volume of the kernel's was busy with itself before or after.

    INVALID for one that is an array of the study, unless it is to be measured so.
    """
    yield from over_members(NAME, analysis, judge, judge_standing)


def judge_standing(member: Member, array: Array) -> MemberVerdict | None:
    """By whether the study asks for an array that is busy."""
    found, what = judge(member), f"'{array.name}' ({name_of(member)})"
    if found is None or found.verdict == UNKNOWN:
        return found
    if array.state == "resyncing":
        if found.verdict == WARN:
            return passed(f"{what} is busy, as the study asks. {found.evidence}")
        remedy = "Begin what it is to be busy with, and measure again; or leave out state = 'resyncing'."
        return MemberVerdict(INVALID, f"{what} is to be busy with itself, and was not. {found.evidence}", remedy)
    if found.verdict == WARN:
        remedy = f"{found.remedy} Or say in the study that it is meant so: state = 'resyncing', beside its volume."
        return MemberVerdict(INVALID, f"{what} is to be idle, and was not. {found.evidence}", remedy)
    return found


def judge(member: Member) -> MemberVerdict | None:
    """By what the kernel says its arrays are doing."""
    volumes = volumes_of(member)
    if not volumes:
        return None
    busy, untold = [], []
    for volume, when in volumes:
        name = volume_name(volume)
        if volume["activity"] is None:
            untold.append(name)
        elif volume["activity"] != "idle":
            share = volume.get("activity_share")
            done = "" if share is None else f" ({share:.0%} done)"
            # What is pending does not compete yet, and may begin at any write.
            is_pending = volume["activity"].endswith("pending")
            busy.append(
                f"{name} had{when} a {volume['activity'].split()[0]} pending"
                if is_pending
                else f"{name} was{when} busy with {volume['activity']}{done}"
            )
    if busy:
        evidence = f"{'; '.join(dict.fromkeys(busy))}."
        remedy = "Wait until it is done (cat /proc/mdstat, btrfs balance status, zpool status), and measure again."
        return MemberVerdict(WARN, evidence, remedy)
    names = sorted({volume_name(volume) for volume, _ in volumes})
    if untold:
        return MemberVerdict(
            UNKNOWN,
            f"Whether {', '.join(dict.fromkeys(untold))} was busy could not be determined, because the kernel "
            "does not tell.",
        )
    return passed(f"Idle before and after: {', '.join(names)}.")

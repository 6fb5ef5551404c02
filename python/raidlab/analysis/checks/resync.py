"""Was anything else at work in the kernel's arrays: a resync, a rebuild, a scrub, a balance?

It reads and writes the same disks, and ends some day: what is measured beside it is neither the array's speed nor
steady.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import UNKNOWN, WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, over_members, passed, volume_name, volumes_of
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "resync"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when an array or volume of the kernel's was busy with itself before or after."""
    yield from over_members(NAME, analysis, judge)


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
            busy.append(f"{name} was{when} busy with {volume['activity']}{done}")
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

"""Are the devices set as the kernel sets them?

A queue that merges nothing, a small transfer, a mount without barriers: a figure depends on it, and whoever reads the
figure takes the defaults for granted.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, name_of, over_members, passed, unknown
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "settings"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for settings of queues, arrays and mounts below a target that are not the kernel's defaults."""
    yield from over_members(NAME, analysis, judge)


def judge(member: Member) -> MemberVerdict | None:
    """By the settings whose default is the same on all devices."""
    facts = member.get("settings")
    if facts is None:
        return None
    if "unknown" in facts:
        return unknown(f"the settings of {name_of(member)} cannot be read: {facts['unknown']}")
    if not facts["changed"]:
        devices = ", ".join(layer["name"] for layer in member.get("stack", []))
        return passed(f"The settings of {devices or 'what lies below ' + name_of(member)} are the kernel's defaults.")
    told = [
        f"{found['place']}: {found['name']} is {found['value']} (default: {found['default']})"
        for found in facts["changed"]
    ]
    evidence = f"{'; '.join(told)}."
    return MemberVerdict(WARN, evidence, "Set them back (/sys/block/DEVICE/queue/), or give them with every figure.")

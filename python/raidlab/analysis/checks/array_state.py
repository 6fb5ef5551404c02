"""Were the kernel's arrays below the targets whole, before and after?

An array without one of its members is another array than the one that its owner wants to know about: it reads what is
missing from parity, or writes one copy less.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import UNKNOWN, WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, over_members, passed, volume_name, volumes_of
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member, Volume

NAME = "array_state"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for arrays and volumes of the kernel's that are not optimal, UNKNOWN where they tell nothing of it."""
    yield from over_members(NAME, analysis, judge)


def judge(member: Member) -> MemberVerdict | None:
    """By the state of every array and volume below the target."""
    volumes = volumes_of(member)
    if not volumes:
        return None
    bad = [(volume, when) for volume, when in volumes if volume["state"] not in (None, "optimal")]
    wrong = [f"{volume_name(volume)} was{when} {volume['state']}{_missing(volume)}" for volume, when in bad]
    if wrong:
        evidence = f"{'; '.join(dict.fromkeys(wrong))}."
        remedy = "Measure again when the array is whole, or say with every figure that it was not."
        return MemberVerdict(WARN, evidence, remedy)
    untold = [
        f"The state of {volume_name(volume)}{when} could not be determined, because "
        f"{volume['unknown'].get('state', 'nothing tells')}"
        for volume, when in volumes
        if volume["state"] is None
    ]
    if untold:
        return MemberVerdict(UNKNOWN, f"{'; '.join(dict.fromkeys(untold))}.")
    return passed(f"Whole before and after: {', '.join(sorted({volume_name(volume) for volume, _ in volumes}))}.")


def _missing(volume: Volume) -> str:
    count = volume["missing_members"]
    return f" ({count} of {len(volume['members'])} members missing)" if count else ""

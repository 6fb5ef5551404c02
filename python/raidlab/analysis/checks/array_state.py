"""Were the kernel's arrays below the targets whole, before and after?

An array without one of its members is another array than the one that its owner wants to know about: it reads what is
missing from parity, or writes one copy less. One that a study takes as its own array is to be in the state that the
study asks for.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.members import (
    MemberVerdict,
    name_of,
    over_members,
    passed,
    unknown,
    volume_name,
    volumes_of,
)
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member, Volume
from raidlab.study.schema import Array

NAME = "array_state"
_SAY_STATE = (
    "Measure again when it is, or say in the study which state is meant: state = 'degraded', beside its volume."
)
_ASK_OWNER = "Ask the controller's own tool, and say in the study what it says: says = '...', beside its volume."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for arrays and volumes of the kernel's that are not optimal, UNKNOWN where they tell nothing of it.

    INVALID for one that is an array of the study, and in another state than it asks for.
    """
    yield from over_members(NAME, analysis, judge, judge_standing)


def judge_standing(member: Member, array: Array) -> MemberVerdict | None:
    """By the state that the study asks for: whole, or with members missing. What is busy may be either."""
    what = f"'{array.name}' ({name_of(member)})"
    if not member.get("volumes"):
        told = f"; its owner says: {array.says}" if array.says else ""
        return unknown(f"the kernel knows no array below {what}{told}", _ASK_OWNER)
    found = judge(member)
    if found is not None and any(volume["state"] == "failed" for volume, _ in volumes_of(member)):
        return MemberVerdict(
            INVALID, f"{what} has failed. {found.evidence}", "Mend it: no study asks for such an array."
        )
    if found is None or found.verdict == UNKNOWN or array.state == "resyncing":
        return found if found is None or found.verdict != WARN else passed(f"{what} is as asked. {found.evidence}")
    if array.state == "degraded":
        if found.verdict == WARN:
            return passed(f"{what} is degraded, as the study asks. {found.evidence}")
        return MemberVerdict(INVALID, f"{what} is to be degraded, and was not. {found.evidence}", _SAY_STATE)
    if found.verdict == WARN:
        return MemberVerdict(INVALID, f"{what} is to be whole, and was not. {found.evidence}", _SAY_STATE)
    return found


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

"""Checks that judge one live target at a time: by its facts in a run, or by those that ``raidlab check`` gathers.

Such a check has a function ``judge(member)``, which sees the facts of one target and answers with a `MemberVerdict`, or
None where it does not apply. Of a run's members the worst answer stands, with what is said of all that are as bad.

Invariant: a judge sees only the facts it is given; it reads and measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from raidlab.analysis.checks.finding import INVALID, PASS, SEVERITY, UNKNOWN, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Content, DeviceBytes, Member, Traffic, Unknown, Volume
from raidlab.study.schema import Array

# More sentences than these of one check help nobody.
_MOST_SENTENCES = 3
# After the one in the sentence.
_MOST_NAMES = 2


@dataclass(frozen=True)
class MemberVerdict:
    """The answer about one target: a verdict, a sentence with the figures, and what would remedy it."""

    verdict: str
    evidence: str
    remedy: str = ""


Judge = Callable[[Member], MemberVerdict | None]
# Of a member that is an array of the study, which says in what state it is to be.
JudgeStanding = Callable[[Member, Array], MemberVerdict | None]


def over_members(
    name: str, analysis: Analysis, judge: Judge, judge_standing: JudgeStanding | None = None
) -> Iterator[Finding]:
    """One finding for all live members of a run; ``judge_standing`` judges those that are arrays of the study."""
    members, standing = analysis.run.live_members(), analysis.run.standing

    def judged(member: Member) -> MemberVerdict | None:
        array = standing.get(member.get("subject", ""))
        return judge(member) if array is None or judge_standing is None else judge_standing(member, array)

    found = [answer for member in members if (answer := judged(member)) is not None]
    if found:
        yield merged(name, "live", found, members)


def of_target(name: str, member: Member, judge: Judge) -> Iterator[Finding]:
    """The finding about one target that is looked at by itself."""
    answer = judge(member)
    if answer is not None:
        yield Finding(name, name_of(member), answer.verdict, answer.evidence, answer.remedy)


def merged(name: str, target: str, found: list[MemberVerdict], members: Sequence[Member]) -> Finding:
    """The worst of several answers, with the sentences of all that are as bad; what is said of several alike, once."""
    worst = max(found, key=lambda answer: SEVERITY[answer.verdict])
    names = sorted(map(name_of, members), key=len, reverse=True)
    # By the sentence without its member's name: the first such sentence, and the members that it is said of.
    alike: dict[str, tuple[str, list[str]]] = {}
    for sentence in (answer.evidence for answer in found if answer.verdict == worst.verdict):
        own = next((one for one in names if one in sentence), "")
        _, same = alike.setdefault(sentence.replace(own, "") if own else sentence, (sentence, []))
        if own not in same:
            same.append(own)
    told = [sentence + _same_of(same[1:], named=worst.verdict in (WARN, INVALID)) for sentence, same in alike.values()]
    evidence = " ".join(told[:_MOST_SENTENCES])
    if len(told) > _MOST_SENTENCES:
        evidence += f" And so of {len(told) - _MOST_SENTENCES} more, with other figures."
    return Finding(name, target, worst.verdict, evidence, worst.remedy)


def _same_of(names: list[str], *, named: bool) -> str:
    """Whom else a sentence is said of; by name only where somebody has to go there."""
    first = names[:_MOST_NAMES] if named else []
    rest = [f"{len(names) - len(first)} more"] if len(names) > len(first) else []
    return f" The same of {', '.join(first + rest)}." if names else ""


def name_of(member: Member) -> str:
    """What a target is called: the user's word for it, its path, or its kind."""
    return str(member.get("name") or member.get("path") or member["kind"])


def volumes_of(member: Member) -> list[tuple[Volume, str]]:
    """The kernel's arrays and volumes below a target, as they were before and after: each with a word for when."""
    before, after = member.get("volumes", []), member.get("volumes_after", [])
    return [*((volume, "") for volume in before), *((volume, " afterwards") for volume in after)]


def content_of(member: Member) -> Content:
    """What a sample of a target holds; no blocks where there is none."""
    found = member.get("content")
    return {"blocks": 0} if found is None or "unknown" in found else found


def moved_below(member: Member) -> tuple[dict[str, DeviceBytes], float]:
    """What moved at each device below a target over the whole run, and in how many seconds; nothing if not counted."""
    before, after = _counted(member.get("traffic")), _counted(member.get("traffic_after"))
    if before is None or after is None:
        return {}, 0.0
    then = before["devices"]
    moved: dict[str, DeviceBytes] = {
        name: {
            "read_bytes": now["read_bytes"] - then[name]["read_bytes"],
            "write_bytes": now["write_bytes"] - then[name]["write_bytes"],
        }
        for name, now in after["devices"].items()
        if name in then
    }
    return moved, after["at_s"] - before["at_s"]


def _counted(traffic: Traffic | Unknown | None) -> Traffic | None:
    return None if traffic is None or "unknown" in traffic else traffic


def volume_name(volume: Volume) -> str:
    """What an array or volume of the kernel's is called."""
    return f"{volume['name']} ({volume['kind']})"


def unknown(why: str, tells: str = "") -> MemberVerdict:
    """The answer of a check that lacks what it would have to know, and what would tell."""
    return MemberVerdict(UNKNOWN, f"Could not be determined, because {why}.", tells)


def passed(evidence: str) -> MemberVerdict:
    """The answer that nothing is wrong."""
    return MemberVerdict(PASS, evidence)


def is_stored(member: Member) -> bool:
    """Whether a target is one that keeps bytes outside of raidlab: a file or a block device."""
    return member["kind"] in ("file", "block", "directory")


def reads_and_writes(analysis: Analysis) -> tuple[bool, bool]:
    """Whether the live cells of a run read, and whether they wrote."""
    points = [point for point in analysis.points if point.target == "live"]
    reads = any(point.total("read_requests") for point in points)
    return reads, any(point.total("write_requests") for point in points)

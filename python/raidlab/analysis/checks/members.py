"""Checks that judge one live target at a time: by its facts in a run, or by those that ``raidlab check`` gathers.

Such a check has a function ``judge(member)``, which sees the facts of one target and answers with a `Judged`, or None
where it does not apply. Of a run's members the worst answer stands, with what is said of all that are as bad.

Invariant: a judge sees only the facts it is given; it reads and measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from raidlab.analysis.checks.finding import PASS, SEVERITY, UNKNOWN, Finding
from raidlab.analysis.metrics import Analysis

Member = dict[str, Any]
# More sentences than these of one check help nobody.
_MOST_SENTENCES = 3


@dataclass(frozen=True)
class Judged:
    """The answer about one target: a verdict, a sentence with the figures, and what would mend it."""

    verdict: str
    evidence: str
    mend: str = ""


Judge = Callable[[Member], Judged | None]


def over_members(name: str, analysis: Analysis, judge: Judge) -> Iterator[Finding]:
    """One finding for all live members of a run."""
    found = [judged for member in analysis.run.live_members() if (judged := judge(member)) is not None]
    if found:
        yield merged(name, "live", found)


def of_target(name: str, member: Member, judge: Judge) -> Iterator[Finding]:
    """The finding about one target that is looked at by itself."""
    judged = judge(member)
    if judged is not None:
        yield Finding(name, name_of(member), judged.verdict, judged.evidence, judged.mend)


def merged(name: str, target: str, found: list[Judged]) -> Finding:
    """The worst of several answers, with the sentences of all that are as bad, each once."""
    worst = max(found, key=lambda judged: SEVERITY[judged.verdict])
    sentences = list(dict.fromkeys(judged.evidence for judged in found if judged.verdict == worst.verdict))
    evidence = " ".join(sentences[:_MOST_SENTENCES])
    if len(sentences) > _MOST_SENTENCES:
        evidence += f" The same of {len(sentences) - _MOST_SENTENCES} more."
    return Finding(name, target, worst.verdict, evidence, worst.mend)


def name_of(member: Member) -> str:
    """What a target is called: the user's word for it, its path, or its kind."""
    return str(member.get("name") or member.get("path") or member.get("kind"))


def volumes_of(member: Member) -> list[tuple[dict[str, Any], str]]:
    """The kernel's arrays and volumes below a target, as they were before and after: each with a word for when."""
    looks = (("", "volumes"), (" afterwards", "volumes_after"))
    return [(volume, when) for when, key in looks for volume in member.get(key) or []]


def volume_name(volume: dict[str, Any]) -> str:
    """What an array or volume of the kernel's is called."""
    return f"{volume['name']} ({volume['kind']})"


def unknown(why: str, tells: str = "") -> Judged:
    """The answer of a check that lacks what it would have to know, and what would tell."""
    return Judged(UNKNOWN, f"Could not be determined, because {why}.", tells)


def passed(evidence: str) -> Judged:
    """The answer that nothing is wrong."""
    return Judged(PASS, evidence)


def is_stored(member: Member) -> bool:
    """Whether a target is one that keeps bytes outside of raidlab: a file or a block device."""
    return member.get("kind") in ("file", "block", "directory")


def reads_and_writes(analysis: Analysis) -> tuple[bool, bool]:
    """Whether the live cells of a run read, and whether they wrote."""
    points = [point for point in analysis.points if point.target == "live"]
    reads = any(point.total("read_requests") for point in points)
    return reads, any(point.total("write_requests") for point in points)

"""Why an array and its twin differ, as far as counters, facts and checks show it; one function a cause.

Adding one: a function ``NAME(evidence)`` that yields causes, a line in `CAUSES`, a test with a run in which it is the
cause.

Invariants:

- A cause says what was seen, with the figures; what it takes of the speed is not claimed, for nothing shows that.
- What makes an array slower is named only where a load is slower than predicted, and so with faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from raidlab.analysis.checks import INVALID, WARN, Finding
from raidlab.analysis.metrics import Analysis, Point
from raidlab.analysis.prediction.members import MemberWork, leaf_names, members_below, members_of_points
from raidlab.results.facts import Member
from raidlab.study.units import format_number

Direction = Literal["slower", "faster"]
# A member is slow where a request takes so much longer there than on the median of the others.
_SLOW = 1.3
# Fewer requests say little of a member, and so do differences below what the kernel counts in.
_LEAST_REQUESTS = 50
_LEAST_DIFFERENCE_MS = 0.05
# Of the busiest member, beside that of the twin.
_UNEVEN = 1.3
# What checks find that makes an array slower, or faster, than its disks are.
_BY_CHECK: dict[str, tuple[str, Direction]] = {
    "array_state": ("degraded", "slower"),
    "resync": ("busy with itself", "slower"),
    "throttling": ("a limit", "slower"),
    "generator_limited": ("raidlab itself", "slower"),
    "busy_processors": ("busy processors", "slower"),
    "background_load": ("other load", "slower"),
    "stalls": ("stalls", "slower"),
    "settings": ("settings", "slower"),
    "stacked_striping": ("striping on striping", "slower"),
    "cache": ("a cache", "faster"),
    "buffered_io": ("the page cache", "faster"),
    "write_cache": ("a write cache", "faster"),
    "sparse": ("holes", "faster"),
    "compression": ("compression", "faster"),
    "dedupe": ("deduplication", "faster"),
}


@dataclass(frozen=True)
class Cause:
    """What may be behind a difference."""

    kind: str
    """In a word or two."""
    direction: Direction
    evidence: str
    """What shows it, with the figures."""
    remedy: str = ""
    """What to do about it, or how to see whether it is the cause."""


@dataclass(frozen=True)
class Evidence:
    """An array that differs from its twin, with all that may show why."""

    analysis: Analysis
    array: str
    target: str
    findings: tuple[Finding, ...]
    slower: bool
    faster: bool
    slower_writes: bool
    measured: tuple[Point, ...]
    predicted: tuple[Point, ...]

    @property
    def live(self) -> list[Member]:
        """The facts of what it lies on; none of modelled disks."""
        return self.analysis.run.live_members(self.array) if self.target == "live" else []

    @property
    def members(self) -> list[MemberWork]:
        """What each of its members did."""
        if self.target == "live":
            return [one for member in self.live for one in members_below(member)]
        return members_of_points(self.analysis, self.measured)


def causes_of(evidence: Evidence) -> list[Cause]:
    """The causes that something shows, of the directions in which the two differ."""
    wanted = {"slower": evidence.slower, "faster": evidence.faster}
    return [cause for find in CAUSES for cause in find(evidence) if wanted[cause.direction]]


def slow_member(evidence: Evidence) -> Iterator[Cause]:
    """One member takes longer for a request than the others do."""
    worked = [one for one in evidence.members if one.requests >= _LEAST_REQUESTS]
    for one in worked if len(worked) > 1 else ():
        usual = statistics.median(other.mean_ms for other in worked if other is not one)
        if one.mean_ms > _SLOW * usual and one.mean_ms - usual > _LEAST_DIFFERENCE_MS:
            yield Cause(
                "a slow member",
                "slower",
                f"A request took {_ms(one.mean_ms)} on {one.name} and {_ms(usual)} on the others by the median "
                f"({one.requests:,} requests there).",
                "Look at that disk (smartctl -a, dmesg, its cable), and measure it by itself: raidlab measure.",
            )


def uneven_members(evidence: Evidence) -> Iterator[Cause]:
    """One member serves more of the requests than its twin's does."""
    found = [_largest_share(works) for works in (evidence.members, _predicted_members(evidence))]
    if found[0] is None or found[1] is None:
        return
    (name, share), (_, predicted) = found[0], found[1]
    if share > _UNEVEN * predicted:
        yield Cause(
            "uneven members",
            "slower",
            f"{name} served {share:.0%} of the requests to members, and in the simulator the busiest serves "
            f"{predicted:.0%}.",
            "See which of the copies is read, and whether what is asked for lies on all members.",
        )


def shared_disks(evidence: Evidence) -> Iterator[Cause]:
    """Several members lie on one disk."""
    for member in evidence.live:
        names, disks = leaf_names(member), set(member["disks"])
        if len(names) > len(disks) > 0:
            yield Cause(
                "shared disks",
                "slower",
                f"Its {len(names)} members lie on {len(disks)} disk{'s' if len(disks) > 1 else ''} "
                f"({', '.join(sorted(disks))}); the twin's have one each.",
                "Give each member a disk of its own; 'one_device = true' in a study's [sim] predicts them as they are.",
            )


def misaligned(evidence: Evidence) -> Iterator[Cause]:
    """A device below begins within a physical block: accesses touch one block more, and writes read it first."""
    for member in evidence.live:
        for layer in member.get("stack", []):
            offset = layer.get("alignment_offset_bytes", 0)
            if offset:
                block = layer.get("physical_block_bytes", 0)
                told = f"{offset} bytes beside" if offset > 0 else "beside"
                yield Cause(
                    "misalignment",
                    "slower",
                    f"{layer['name']} begins {told} the physical blocks of {block} bytes below it.",
                    "Move the partition to a multiple of 1 MiB: parted -a optimal, or sfdisk from sector 2048 on.",
                )


def bitmap(evidence: Evidence) -> Iterator[Cause]:
    """A write-intent bitmap is written before the first write to a region."""
    for member in evidence.live if evidence.slower_writes else ():
        for volume in member.get("volumes", []):
            place = volume.get("details", {}).get("bitmap")
            if place not in (None, "none"):
                yield Cause(
                    "a bitmap",
                    "slower",
                    f"{volume['name']} has a write-intent bitmap ({place}): before the first write to a region its bit "
                    "is written to every member. The twin has none.",
                    "mdadm --grow --bitmap=none takes it away for a trial; --bitmap-chunk=128M writes it less often.",
                )


def suspended(evidence: Evidence) -> Iterator[Cause]:
    """Writes to a part of an array are held back."""
    for member in evidence.live if evidence.slower_writes else ():
        for volume in member.get("volumes", []):
            part = volume.get("details", {}).get("suspended_sectors")
            if part is not None:
                sentence = f"{volume['name']} holds back writes to its sectors {part} (suspend_lo, suspend_hi)."
                yield Cause("suspended writes", "slower", sentence, "Whoever set this is to take it back.")


def found_by_checks(evidence: Evidence) -> Iterator[Cause]:
    """What the checks have found already: resync, limits, caches, what else was at work."""
    for finding in evidence.findings:
        kind, direction = _BY_CHECK.get(finding.check, ("", "slower"))
        if kind and finding.verdict in (WARN, INVALID) and finding.target in (evidence.target, "run"):
            yield Cause(kind, direction, finding.evidence, finding.remedy)


def faster_members(evidence: Evidence) -> Iterator[Cause]:
    """A request takes less time at the members than the mechanics of the model allow: they answer from a cache."""
    own, model = evidence.members, _predicted_members(evidence)
    if not own or not model:
        return
    took = sum(one.busy_ms for one in own) / max(sum(one.requests for one in own), 1)
    predicted = sum(one.busy_ms for one in model) / max(sum(one.requests for one in model), 1)
    if took < predicted / 2:
        yield Cause(
            "quicker members",
            "faster",
            f"A request took {_ms(took)} at the members and takes {_ms(predicted)} at the twin's: they answer from "
            "caches of their own, or are other disks than the model's.",
            "Name the model of the disks that are there (raidlab device list), or ask for more than their caches hold.",
        )


CAUSES: tuple[Callable[[Evidence], Iterator[Cause]], ...] = (
    slow_member,
    uneven_members,
    misaligned,
    bitmap,
    suspended,
    shared_disks,
    found_by_checks,
    faster_members,
)


def _predicted_members(evidence: Evidence) -> list[MemberWork]:
    return members_of_points(evidence.analysis, evidence.predicted)


def _largest_share(works: list[MemberWork]) -> tuple[str, float] | None:
    """The busiest member and its share of all requests; None where there are too few."""
    total = sum(one.requests for one in works)
    if len(works) < 2 or total < _LEAST_REQUESTS:
        return None
    most = max(works, key=lambda one: one.requests)
    return most.name, most.requests / total


def _ms(value: float) -> str:
    return f"{format_number(value)} ms"

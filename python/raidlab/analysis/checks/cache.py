"""Was it the target that answered, or a cache in front of it?

A cache shows in four ways: less moves at the device than is asked for; reading again is faster than reading; random
requests are faster than sequential ones; and the kernel says that there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, PASS, SEVERITY, WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, is_stored, merged, moved_below, name_of, passed, unknown
from raidlab.analysis.metrics import Analysis, Point
from raidlab.results.facts import Member
from raidlab.study.units import format_bytes

NAME = "cache"
_WARN_SHARE = 0.95
_INVALID_SHARE = 0.5
_FASTER_AGAIN = 1.5
_RANDOM_FASTER = 1.1
# Two windows' edges of a few requests are no cache.
_LEAST_BYTES = 4 << 20
_REMEDY = (
    "Take the cache out of the way (losetup --direct-io=on, O_DIRECT, no --buffered), or ask for much more than it "
    "holds: at least twice its size, four times memory where it may be memory."
)

_TELLS = "echo 1 > /sys/block/NAME/queue/iostats makes it count; raidlab check tells by reading again."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a cache stands before a target; INVALID when less than half of what was read moved at the devices."""
    points = [point for point in analysis.points if point.target == "live"]
    members = [member for member in analysis.run.live_members() if is_stored(member)]
    if not points or not members:
        return
    found = [answer for member in members if (answer := judge(member)) is not None]
    buffered = any(member["io"] == "buffered" for member in members)
    found += _by_counters(points, buffered=buffered)
    found += [answer for member in members if (answer := _between_layers(member)) is not None]
    uncounted = _uncounted(analysis, members)
    if uncounted:
        found.append(unknown(f"the kernel keeps no counters of {', '.join(uncounted)}", _TELLS))
    found += _by_order(analysis, points)
    if found:
        yield merged(NAME, "live", sorted(found, key=lambda answer: -SEVERITY[answer.verdict]), members)


def _between_layers(member: Member) -> MemberVerdict | None:
    """WARN where much less was read at the disks of a target than at its uppermost device, over the whole run."""
    stack = member.get("stack", [])
    if len(stack) < 2 or _has_holes(member):
        return None
    read = {name: counts["read_bytes"] for name, counts in moved_below(member)[0].items()}
    top, disks = stack[0]["name"], [disk for disk in member["disks"] if disk in read]
    below = sum(read[disk] for disk in disks)
    if top in disks or not disks or read.get(top, 0) <= _LEAST_BYTES or below >= _INVALID_SHARE * read[top]:
        return None
    evidence = (
        f"Of {format_bytes(read[top])} read at {top} {format_bytes(below)} were read at {', '.join(disks)} below: "
        "a cache lies between."
    )
    return MemberVerdict(WARN, evidence, _REMEDY)


def _uncounted(analysis: Analysis, members: list[Member]) -> list[str]:
    """The devices of direct targets for which the kernel counts nothing, so that a cache above them may go unseen."""
    counted = set(analysis.run.devices["device"])
    names = {device["name"] for member in members if member["io"] == "direct" and (device := member.get("device"))}
    kinds = {system["kind"] for member in members if (system := member.get("filesystem"))}
    return [] if "btrfs" in kinds else sorted(name for name in names if name and name not in counted)


def _by_counters(points: list[Point], *, buffered: bool) -> Iterator[MemberVerdict]:
    """What moved at the devices against what was asked of them."""
    for operation, done in (("read", "read"), ("write", "written")):
        shares = [
            ((moved + point.edge_bytes()) / asked, moved, asked, point)
            for point in points
            for moved, asked in [point.device_bytes(operation)]
            if asked > _LEAST_BYTES
        ]
        if not shares:
            continue
        share, moved, asked, point = min(shares, key=lambda entry: entry[0])
        evidence = (
            f"Of {format_bytes(int(asked))} {done} {format_bytes(int(moved))} moved at the devices "
            f"({moved / asked:.0%}; {point.array}, {point.workload}, {point.level})."
        )
        if share >= _WARN_SHARE:
            yield MemberVerdict(PASS, evidence)
        # Whoever asks for the page cache is warned of it and knows; what else answers in silence is worse.
        elif share < _INVALID_SHARE and operation == "read" and not buffered:
            yield MemberVerdict(INVALID, evidence, _REMEDY)
        else:
            yield MemberVerdict(WARN, evidence, _REMEDY)


def _by_order(analysis: Analysis, points: list[Point]) -> Iterator[MemberVerdict]:
    """Nothing but a cache makes random requests faster than sequential ones of the same kind."""
    workloads = {workload.name: workload for workload in analysis.run.study.workload}

    def alike(one: Point, other: Point) -> bool:
        a, b = workloads[one.workload], workloads[other.workload]
        place = (one.array, one.load, one.depth) == (other.array, other.load, other.depth)
        return place and (a.read, a.size, a.task) == (b.read, b.size, b.task)

    for point in points:
        workload = workloads[point.workload]
        drawn = workload.trace is None and workload.streams is None
        if point.load != "closed" or not drawn or workload.address.kind != "uniform":
            continue
        for other in points:
            if workloads[other.workload].address.kind != "sequential" or not alike(point, other):
                continue
            ratio = point.per_s("all_bytes") / max(other.per_s("all_bytes"), 1.0)
            if ratio > _RANDOM_FASTER:
                evidence = (
                    f"{point.workload} was {ratio:.2f} times as fast as {other.workload} ({point.array}, "
                    f"{point.level}): random requests are faster than sequential ones only from a cache."
                )
                yield MemberVerdict(WARN, evidence, _REMEDY)


def judge(member: Member) -> MemberVerdict | None:
    """WARN or INVALID by reading again what was read before, watching the counters of the disks below."""
    if not is_stored(member) or "stack" not in member:
        return None
    name, again = name_of(member), member.get("read_again")
    again_moved = None if again is None else again["moved_share"]
    if again is not None and again_moved is not None and again_moved < _INVALID_SHARE:
        if _has_holes(member):
            return unknown(f"most of {name} was never stored, and is read from nowhere as if from a cache (see sparse)")
        evidence = (
            f"Reading {format_bytes(again['bytes'])} of {name} again moved {again_moved:.0%} of it through "
            f"{', '.join(again['disks'])}: the rest came from a cache."
        )
        return MemberVerdict(INVALID, evidence, _REMEDY)
    if again is not None and again["low"] > _FASTER_AGAIN:
        evidence = (
            f"Reading {name} again was {again['ratio']:.2f} times as fast as reading it first ({again['low']:.2f} to "
            f"{again['high']:.2f} at 95 %, {again['pairs']} parts of {format_bytes(again['part_bytes'])})."
        )
        return MemberVerdict(WARN, evidence, _REMEDY)
    for layer in member["stack"]:
        if layer.get("through_page_cache") and not in_memory(member):
            evidence = f"{layer['name']} below {name} reads and writes its file through the page cache."
            return MemberVerdict(WARN, evidence, _REMEDY)
    if in_memory(member):
        evidence = f"{name} lies in memory ({', '.join(member['disks'])}): no disk answers."
        return MemberVerdict(WARN, evidence, "Name a target that lies on a disk.")
    if again is None:
        return passed(f"Nothing below {name} is known to cache what O_DIRECT passes by.")
    moved = "" if again_moved is None else f", and {again_moved:.0%} of it moved at the disks"
    return passed(f"Reading {name} again was {again['ratio']:.2f} times as fast as reading it first{moved}.")


def _has_holes(member: Member) -> bool:
    """Whether so little of a target is stored that reading it again says nothing of caches."""
    found = member.get("allocation")
    places = [] if found is None or "unknown" in found else found["places"]
    known = [(stored, place["size_bytes"]) for place in places if (stored := place["stored_bytes"]) is not None]
    return any(stored < _INVALID_SHARE * size for stored, size in known)


def in_memory(member: Member) -> bool:
    """Whether what a target lies on is memory: tmpfs, ramfs, zram or a RAM disk."""
    disks = member["disks"]
    return bool(disks) and all(disk.startswith(("tmpfs", "ramfs", "zram", "ram", "pmem")) for disk in disks)

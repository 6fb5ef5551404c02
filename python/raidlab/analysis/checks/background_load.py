"""Did anybody else use the devices meanwhile?

The kernel counts what moved at a device, whoever asked for it. What exceeds raidlab's own requests is somebody else's,
and was in the way.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, moved_below, name_of, passed, unknown
from raidlab.analysis.metrics import Analysis, Point
from raidlab.results.facts import Member
from raidlab.study.units import format_bytes

NAME = "background_load"
_MOST_SHARE = 0.05
# A file system's journal, and requests in flight when the window opened or closed, are nobody else's.
_SLACK_BYTES = 1 << 20
# On a device that should be idle.
_IDLE_BYTES_PER_S = 1 << 20
# They write more than they are asked to: copies, parity, checksums.
_WRITE_MORE = ("btrfs", "zfs")
_REMEDY = "Stop what else uses the device (iotop, fuser -m), and measure again."


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a device moved over 5 % more than raidlab asked of it."""
    points = [point for point in analysis.points if point.target == "live"]
    members = [member for member in analysis.run.live_members() if member.get("device")]
    if not points or not members:
        return
    if any(member["io"] == "buffered" for member in members):
        why = "the page cache moves other blocks than are asked for, and at other times"
        yield Finding(NAME, "live", UNKNOWN, f"Could not be determined, because {why}.", "Leave out --buffered.")
        return
    below = _below(members)
    if below is not None:
        yield Finding(NAME, "live", WARN, below, _REMEDY)
        return
    found = [(over, device, point) for point in points for device, over in _more(analysis, point)]
    if not found:
        counted = not analysis.run.devices.is_empty()
        why = "the devices moved nothing" if counted else "the kernel keeps no counters of the devices"
        yield Finding(NAME, "live", UNKNOWN, f"Could not be determined, because {why}.")
        return
    (share, more, asked), device, point = max(found, key=lambda entry: entry[0])
    over = sum(1 for (share, _, _), _, _ in found if share > _MOST_SHARE)
    if not over:
        evidence = f"No device moved more than {max(share, 0.0):.1%} beyond what was asked of it."
        yield Finding(NAME, "live", PASS, evidence)
        return
    evidence = (
        f"{device} moved {format_bytes(int(more))} more than the {format_bytes(int(asked))} asked of it, while "
        f"{point.array}, {point.workload}, {point.level} was measured ({over} of {len(found)} readings of its kind)."
    )
    yield Finding(NAME, "live", WARN, evidence, _REMEDY)


def _below(members: list[Member]) -> str | None:
    """What moved at a device further down beyond what came from above, over the whole run; None where it is little.

    Only where one device lies below another: what an array or a file system adds is not somebody else's.
    """
    for member in members:
        stack = member.get("stack", [])
        if len(stack) < 2 or member.get("volumes") or any(layer.get("through_page_cache") for layer in stack):
            continue
        moved, seconds = moved_below(member)
        top = stack[0]["name"]
        if top not in moved or _share(members, stack[-1]["name"]) > 1:
            continue
        above = moved[top]
        asked = above["read_bytes"] + above["write_bytes"]
        for name in [layer["name"] for layer in stack[1:] if layer["name"] in moved]:
            more = max(0, moved[name]["read_bytes"] - above["read_bytes"])
            more += max(0, moved[name]["write_bytes"] - above["write_bytes"])
            if more > _MOST_SHARE * asked and more > _IDLE_BYTES_PER_S * seconds + _SLACK_BYTES:
                return (
                    f"{name}, below {top}, moved {format_bytes(more)} more than the {format_bytes(asked)} that did at "
                    f"{top} in {seconds:.0f} s."
                )
    return None


def _share(members: list[Member], device: str) -> int:
    """How many members lie on a device."""
    return sum(any(layer["name"] == device for layer in member.get("stack", [])) for member in members)


def _more(analysis: Analysis, point: Point) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Of each device: the share, and the bytes, that moved beyond what was asked, less what needs no explanation."""
    kinds = {
        system["kind"] for member in analysis.run.live_members(point.array) if (system := member.get("filesystem"))
    }
    ways = ("read",) if kinds & set(_WRITE_MORE) else ("read", "write")
    rows = point.rows_of("devices")
    slack = len(point.rows) * _SLACK_BYTES + point.edge_bytes()
    for (device,), part in rows.partition_by(["device"], as_dict=True).items():
        moved = sum(float(part[f"{way}_bytes"].sum()) for way in ways)
        asked = sum(float(part[f"asked_{way}_bytes"].sum()) for way in ways)
        if moved:
            more = max(0.0, moved - asked - slack)
            yield str(device), (more / max(asked, 1.0), more, asked)


def judge(member: Member) -> MemberVerdict | None:
    """WARN when a device that should be idle moves more than 1 MiB a second."""
    watched = member.get("watched")
    if watched is None:
        return None
    if not watched["devices"]:
        return unknown(f"the kernel keeps no counters of what lies below {name_of(member)}")
    seconds = watched["seconds"]
    rates = [
        ((device["read_bytes"] + device["write_bytes"]) / seconds, device["name"]) for device in watched["devices"]
    ]
    rate, device = max(rates)
    evidence = f"{device} moved {format_bytes(int(rate))} a second while raidlab asked nothing of it ({seconds:.1f} s)."
    return MemberVerdict(WARN, evidence, _REMEDY) if rate > _IDLE_BYTES_PER_S else passed(evidence)

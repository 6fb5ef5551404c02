"""Arrays of Linux md: level, chunk, members, state and what the array is busy with.

The state of an array here is raidlab's: ``optimal`` (all members in sync), ``degraded`` (some are not), ``failed`` (it
takes no I/O). The kernel's own word stands beside it (``kernel_state``).

Reference: the kernel's Documentation/admin-guide/md.rst.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict, cast

from raidlab.results.facts import Volume, VolumeMember
from raidlab.run.kernel_facts.sources import FactReader, Sources

KIND = "md"
# After what an array has yet to do and does not do now.
PENDING = "pending"

_NO_IO = {"clear", "inactive", "suspended", "broken"}
# Levels without redundancy have neither of these files, and need none.
_WITHOUT_REDUNDANCY = {"raid0", "linear", "multipath"}
_LAYOUTS = {0: "left_asymmetric", 1: "right_asymmetric", 2: "left_symmetric", 3: "right_symmetric"} | {
    4: "parity_first",
    5: "parity_last",
}
_PROGRESS = re.compile(r"(?P<what>resync|recovery|reshape|check|repair)\s*=\s*(?P<percent>[\d.]+)%")
_MEMBER = re.compile(r"(?P<name>\S+?)\[(?P<number>\d+)\](?P<marks>(?:\([A-Z]\))*)")


def is_here(node: Path) -> bool:
    """Whether a block device is an md array."""
    return (node / "md").is_dir()


def facts(node: Path, sources: Sources) -> Volume:
    """What an md array is.

    ``node``: its directory in sysfs.
    """
    here, reading = node / "md", FactReader()
    level = reading.text("level", here / "level")
    raid_disks = reading.number("raid_disks", here / "raid_disks")
    kernel_state = reading.text("kernel_state", here / "array_state")
    redundant = level not in _WITHOUT_REDUNDANCY
    missing = reading.number("missing_members", here / "degraded") if redundant else 0
    members = [_member(entry) for entry in sorted(here.glob("dev-*"))]
    activity = _activity(reading, here, members) if redundant else "idle"
    volume: Volume = {
        "kind": KIND,
        "name": node.name,
        "level": level,
        "chunk_bytes": _chunk(reading, here, level),
        "raid_disks": raid_disks,
        "missing_members": missing,
        "kernel_state": kernel_state,
        "activity": activity,
        "activity_share": _share(here / "sync_completed") if activity not in (None, "idle") else None,
        "members": members,
        "details": _details(here, level),
        "state": None,
        "unknown": reading.unknown,
    }
    _fill_from_mdstat(volume, sources)
    volume["state"] = _state(volume)
    if volume["state"] is None:
        reading.unknown["state"] = "neither the array's state nor the number of missing members could be read"
    return volume


def _chunk(reading: FactReader, here: Path, level: str | None) -> int | None:
    # A mirror has no chunk, nor has an array that is not assembled: md says 0.
    if level in ("raid1", "linear", "multipath"):
        return None
    return reading.number("chunk_bytes", here / "chunk_size") or None


def _activity(reading: FactReader, here: Path, members: list[VolumeMember]) -> str | None:
    """What it is busy with; what it has yet to do and does not, frozen or read-only as it is, is pending."""
    action = reading.text("activity", here / "sync_action")
    if action not in ("idle", "frozen"):
        return action
    begun = FactReader().text("resync_start", here / "resync_start")
    if begun is not None and begun.isdigit():
        return f"resync {PENDING}"
    is_unfinished = action == "frozen" and any(member["state"] == "rebuilding" for member in members)
    return f"recover {PENDING}" if is_unfinished else "idle"


def _member(entry: Path) -> VolumeMember:
    reading = FactReader()
    words = reading.text("state", entry / "state")
    slot = reading.text("slot", entry / "slot")
    errors = reading.number("read_errors", entry / "errors")
    member: VolumeMember = {
        "name": entry.name.removeprefix("dev-"),
        "state": None if words is None else _member_state(words.split(","), slot),
        "kernel_state": words,
        "slot": int(slot) if slot is not None and slot.isdigit() else None,
        "read_errors": errors,
    }
    if reading.unknown:
        member["unknown"] = reading.unknown
    return member


def _member_state(words: list[str], slot: str | None) -> str:
    """A member in the words of the glossary: online, failed, rebuilding or spare."""
    if "faulty" in words or "blocked" in words:
        return "failed"
    if "in_sync" in words or "journal" in words:
        return "online"
    return "spare" if slot in (None, "none", "") else "rebuilding"


def _share(file: Path) -> float | None:
    """How far a resync is, from ``N / M`` sectors; None when there is none or it waits for another array."""
    try:
        done, _, total = file.read_text(encoding="utf-8").partition("/")
        return int(done) / int(total)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _details(here: Path, level: str | None) -> dict[str, str | int | float | None]:
    """What else decides how fast it is; a file that this level does not have is left out."""
    reading = FactReader()
    files = ("metadata_version", "consistency_policy", "mismatch_cnt", "stripe_cache_size", "group_thread_count")
    found = {name: reading.text(name, here / name) for name in files}
    found["bitmap"] = reading.text("bitmap", here / "bitmap" / "location")
    suspended = [reading.number(name, here / name) or 0 for name in ("suspend_lo", "suspend_hi")]
    if suspended[1] > suspended[0]:
        # Writes to this part of it wait.
        found["suspended_sectors"] = f"{suspended[0]} to {suspended[1]}"
    layout = reading.number("layout", here / "layout")
    if layout is not None and level in ("raid5", "raid6"):
        found["rotation"] = _LAYOUTS.get(layout, f"md layout {layout}")
    if layout is not None and level == "raid10":
        far = "offset" if layout & (1 << 16) else "far"
        # Sets of members that far copies stay within: a layout that mdadm does not make.
        in_sets = " in sets" if layout >> 17 else ""
        found["copies"] = f"{layout & 255} near, {layout >> 8 & 255} {far}{in_sets}"
    return {key: value for key, value in found.items() if value is not None}


def _state(volume: Volume) -> str | None:
    if volume.get("kernel_state") in _NO_IO:
        return "failed"
    if volume["missing_members"] is None:
        return None
    # A journal is no member that counts as missing; without it the array is less safe than it was made to be.
    has_lost = any(member["state"] == "failed" and _is_journal(member) for member in volume["members"])
    return "degraded" if volume["missing_members"] or has_lost else "optimal"


def _is_journal(member: VolumeMember) -> bool:
    return "journal" in (member.get("kernel_state") or "").split(",")


class MdstatArray(TypedDict):
    """What ``/proc/mdstat`` says of an array."""

    active: str
    level: str | None
    chunk_bytes: int | None
    missing_members: int | None
    activity: str
    activity_share: float | None
    members: list[VolumeMember]


def _fill_from_mdstat(volume: Volume, sources: Sources) -> None:
    """What sysfs does not say, ``/proc/mdstat`` may: it has been there for longer, and knows first what is broken."""
    unknown = volume["unknown"]
    try:
        text = (sources.proc / "mdstat").read_text(encoding="utf-8")
    except OSError:
        return
    found = parse_mdstat(text).get(volume["name"])
    if found is None:
        return
    if found["active"] == "broken":
        volume["kernel_state"] = "broken"
    if volume["members"] and not {"level", "chunk_bytes", "missing_members", "activity"} & set(unknown):
        return
    wanted = {key: value for key, value in found.items() if key in unknown and value is not None}
    volume.update(cast(Volume, wanted))
    for key in wanted:
        del unknown[key]
    volume["members"] = volume["members"] or found["members"]
    volume["activity_share"] = volume["activity_share"] or found["activity_share"]


def parse_mdstat(text: str) -> dict[str, MdstatArray]:
    r"""The arrays that ``/proc/mdstat`` lists, by name, with what it says of each.

    Examples
    --------
    >>> found = parse_mdstat("md0 : active raid1 sdb1[1] sda1[0]\n      1024 blocks [2/2] [UU]\n")
    >>> found["md0"]["level"], found["md0"]["missing_members"]
    ('raid1', 0)
    """
    arrays: dict[str, MdstatArray] = {}
    for block in re.split(r"\n(?=md\S* : )", text):
        head = re.match(r"(md\S*) : (\S+)(?: \((?:auto-)?read-only\))? ?(.*)", block)
        if head is None:
            continue
        name, active, rest = head.groups()
        level = next((word for word in rest.split() if "[" not in word), None)
        counts = re.search(r"\[(\d+)/(\d+)\]", block)
        progress = _PROGRESS.search(block)
        # RAID 10 says it with a large K.
        chunk = re.search(r"(\d+)[kK] chunk", block.split("bitmap:")[0])
        waiting = re.search(r"(resync|recovery|reshape)\s*=\s*(DELAYED|PENDING)", block)
        what = progress["what"] if progress else waiting[1] if waiting else "idle"
        # sysfs says "recover" where mdstat says "recovery".
        what = "recover" if what == "recovery" else what
        arrays[name] = {
            "active": active,
            "level": level,
            "chunk_bytes": int(chunk[1]) * 1024 if chunk else None,
            "missing_members": int(counts[1]) - int(counts[2]) if counts else 0 if active == "active" else None,
            "activity": f"{what} {PENDING}" if waiting and waiting[2] == "PENDING" else what,
            "activity_share": float(progress["percent"]) / 100 if progress else None,
            "members": [_mdstat_member(match) for match in _MEMBER.finditer(rest)],
        }
    return arrays


def _mdstat_member(match: re.Match[str]) -> VolumeMember:
    marks = match["marks"]
    # A replacement (R) is being filled while the member that it replaces still serves.
    words = {"(F)": "failed", "(S)": "spare", "(R)": "rebuilding"}
    state = next((state for mark, state in words.items() if mark in marks), "online")
    return {"name": match["name"], "state": state, "kernel_state": marks or None, "slot": None, "read_errors": None}

"""Volumes of the device mapper: LVM, LUKS, multipath and the like, from sysfs and, where it may be asked, ``dmsetup``.

Sysfs knows a volume's name, its maker and what lies below. What it does with them (striped, mirrored, RAID) and how it
is, only ``dmsetup`` says, and only to root.

Reference: the kernel's Documentation/admin-guide/device-mapper/ (dm-raid.rst, striped.rst, linear.rst).
"""

from __future__ import annotations

from pathlib import Path

from raidlab.results.facts import Volume, VolumeMember
from raidlab.run.kernel_facts.sources import FactReader, Sources, new_volume, slaves

KIND = "dm"

_SECTOR_BYTES = 512
_MAKERS = {"LVM": "lvm", "CRYPT": "crypt", "mpath": "multipath", "DMRAID": "dmraid", "part": "partition"}
_HEALTH = {"A": "online", "a": "rebuilding", "D": "failed", "-": "missing"}
# They pass requests on and have no redundancy to lose.
_WITHOUT_REDUNDANCY = {"linear", "striped", "crypt", "zero", "error", "flakey", "delay", "verity", "integrity"}


def is_here(node: Path) -> bool:
    """Whether a block device is one of the device mapper's."""
    return (node / "dm").is_dir()


def facts(node: Path, sources: Sources) -> Volume:
    """What a volume of the device mapper is.

    ``node``: its directory in sysfs.
    """
    here, reading = node / "dm", FactReader()
    name = reading.text("name", here / "name") or node.name
    uuid = reading.text("uuid", here / "uuid") or ""
    suspended = reading.number("suspended", here / "suspended")
    volume = new_volume(KIND, name, reading.unknown)
    volume["kernel_state"] = None if suspended is None else "suspended" if suspended else "active"
    volume["members"] = [{"name": slave.name, "state": None, "kernel_state": None} for slave in slaves(node)]
    volume["details"] = {"made_by": _MAKERS.get(uuid.partition("-")[0], "device mapper"), "device": node.name}
    asked = ("level", "chunk_bytes", "state")
    table = reading.tool(asked, sources, ["dmsetup", "table", name])
    status = reading.tool(("state",), sources, ["dmsetup", "status", name]) if table is not None else None
    if table is not None:
        _read_table(volume, reading, table)
    if status is not None:
        _read_status(volume, reading, status)
    if suspended:
        volume["state"] = "failed"
        reading.unknown.pop("state", None)
    return volume


def _read_table(volume: Volume, reading: FactReader, table: str) -> None:
    """The level and the chunk: a line a segment, ``start length target arguments``."""
    segments = [line.split() for line in table.splitlines() if len(line.split()) >= 3]
    targets = list(dict.fromkeys(words[2] for words in segments))
    if not targets:
        reading.unknown["level"] = "its table is empty"
        return
    if len(targets) > 1:
        volume["level"] = " and ".join(targets)
        reading.unknown["chunk_bytes"] = "its segments are of several kinds"
        return
    first = segments[0]
    # A raid target: its type, then how many parameters follow, the chunk first.
    volume["level"] = first[3] if targets == ["raid"] and len(first) > 3 else targets[0]
    chunk = first[5] if targets == ["raid"] and len(first) > 5 else first[4] if targets == ["striped"] else None
    if chunk is not None and chunk.isdigit():
        volume["chunk_bytes"] = int(chunk) * _SECTOR_BYTES or None


def _read_mirror(volume: Volume, segments: list[list[str]]) -> None:
    """``start length mirror N DEVICE... DONE/TOTAL 1 HEALTH ...``: a letter for each copy; copies in sync are done."""
    found: list[VolumeMember] = []
    done = total = 0
    for words in segments:
        count = int(words[3])
        first = 4 + count
        done, total = (was + int(now) for was, now in zip((done, total), words[first].split("/"), strict=True))
        found += [
            {
                "name": words[4 + slot],
                "state": "online" if mark == "A" else "failed",
                "kernel_state": mark,
                "slot": slot,
            }
            for slot, mark in enumerate(words[first + 2])
        ]
    bad = sum(1 for member in found if member["state"] != "online")
    is_busy = done < total
    volume["members"], volume["missing_members"] = found, bad
    volume["activity"], volume["activity_share"] = ("resync", done / total) if is_busy else ("idle", None)
    volume["state"] = "degraded" if bad else "optimal"


def _read_status(volume: Volume, reading: FactReader, status: str) -> None:
    """The state: only a raid target tells of health; those without redundancy are optimal while they are there."""
    segments = [line.split() for line in status.splitlines() if len(line.split()) >= 3]
    targets = {words[2] for words in segments}
    if targets == {"mirror"}:
        _read_mirror(volume, segments)
        return
    dead = sum(words[-1].count("D") for words in segments if words[2] == "striped")
    if dead:
        volume["state"], volume["missing_members"] = "failed", dead
        return
    if targets and targets <= _WITHOUT_REDUNDANCY:
        volume["state"], volume["activity"], volume["missing_members"] = "optimal", "idle", 0
        return
    if targets != {"raid"}:
        reading.unknown["state"] = f"the target '{', '.join(sorted(targets))}' says nothing of redundancy"
        return
    # start length raid TYPE DEVICES HEALTH DONE/TOTAL ACTION MISMATCHES ...
    health = "".join(words[5] for words in segments if len(words) > 5)
    found: list[VolumeMember] = [
        {"name": f"member {slot}", "state": _HEALTH.get(mark), "kernel_state": mark, "slot": slot}
        for slot, mark in enumerate(health)
    ]
    bad = sum(1 for mark in health if mark != "A")
    words = segments[0]
    volume["members"] = found or volume["members"]
    volume["missing_members"] = sum(1 for mark in health if mark in "D-")
    volume["activity"] = words[7] if len(words) > 7 else None
    done, _, total = (words[6] if len(words) > 6 else "").partition("/")
    if volume["activity"] not in (None, "idle") and done.isdigit() and total.isdigit() and int(total):
        volume["activity_share"] = int(done) / int(total)
    volume["state"] = "degraded" if bad else "optimal"

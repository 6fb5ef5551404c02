"""Volumes and file systems of ZFS: ``zfs get`` and ``zpool status`` are the only ones who know.

Reference: zfsprops(7), zpool-status(8).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict, cast

from raidlab.results.facts import Volume, VolumeMember
from raidlab.run.kernel_facts.sources import FactReader, Sources, new_volume

KIND = "zfs"

_PROPERTIES = ("volblocksize", "recordsize", "compression", "checksum", "copies", "sync", "logbias", "primarycache")
_STATES = {"ONLINE": "optimal", "DEGRADED": "degraded"}
_MEMBERS = {"ONLINE": "online", "DEGRADED": "online", "AVAIL": "spare", "REMOVED": "missing", "UNAVAIL": "missing"}
_GROUP = re.compile(r"(mirror|raidz\d?|draid\S*)-\d+")
_OUTSIDE = {"logs", "cache", "spares", "special", "dedup"}


def is_here(node: Path) -> bool:
    """Whether a block device is a volume of ZFS: its driver names them zd0, zd16, ..."""
    return re.fullmatch(r"zd\d+", node.name) is not None


def facts(node: Path, sources: Sources) -> Volume:
    """What a volume of ZFS is, from its node in sysfs: the links in ``/dev/zvol`` know the name of its data set."""
    folder = sources.dev / "zvol"
    links = sorted(folder.rglob("*")) if folder.is_dir() else []
    dataset = next((link for link in links if link.is_symlink() and link.resolve().name == node.name), None)
    if dataset is None:
        why = f"no link in {folder} leads to {node.name}"
        return new_volume(KIND, node.name, {"level": why, "state": why, "properties": why})
    return facts_of_dataset(str(dataset.relative_to(folder)), sources, node.name)


def facts_of_dataset(dataset: str, sources: Sources, device: str | None = None) -> Volume:
    """What a data set of ZFS and its pool are.

    ``dataset``: such as ``tank/volume``. ``device``: the kernel's name of it, for a volume.
    """
    reading = FactReader()
    volume = new_volume(KIND, dataset, reading.unknown)
    words = ["zfs", "get", "-Hp", "-o", "property,value", ",".join(_PROPERTIES), dataset]
    properties = reading.tool(("properties",), sources, words)
    pairs = [line.split("\t", 1) for line in (properties or "").splitlines() if "\t" in line]
    volume["details"].update({key: value for key, value in pairs if value not in ("-", "")})
    if device is not None:
        volume["details"]["device"] = device
    pool = dataset.partition("/")[0]
    status = reading.tool(("level", "state", "members"), sources, ["zpool", "status", "-P", pool])
    if status is not None:
        volume.update(cast(Volume, parse_status(status)))
    return volume


class PoolStatus(TypedDict):
    """What ``zpool status`` says of a pool."""

    level: str
    state: str | None
    kernel_state: str | None
    activity: str
    activity_share: float | None
    members: list[VolumeMember]
    missing_members: int


def parse_status(text: str) -> PoolStatus:
    """State, activity, groups and members from ``zpool status -P``."""
    state = re.search(r"^\s*state: (\S+)", text, re.M)
    scan = re.search(r"^\s*scan: (scrub|resilver) in progress", text, re.M)
    share = re.search(r"([\d.]+)% done", text)
    groups: list[str] = []
    members: list[VolumeMember] = []
    for line in _config_lines(text):
        words = line.split()
        if words[0] in _OUTSIDE:
            break
        if group := _GROUP.fullmatch(words[0]):
            groups.append(group[1])
        elif len(words) >= 2 and not words[0].startswith(("replacing-", "spare-")):
            state_of = _MEMBERS.get(words[1], "failed")
            members.append({"name": words[0], "state": state_of, "kernel_state": words[1]})
    word = state[1] if state else None
    kinds = list(dict.fromkeys(groups))
    return {
        "level": f"{len(groups)} x {' and '.join(kinds)}" if groups else "stripe",
        "state": None if word is None else _STATES.get(word, "failed"),
        "kernel_state": word,
        "activity": scan[1] if scan else "idle",
        "activity_share": float(share[1]) / 100 if scan and share else None,
        "members": members,
        "missing_members": sum(1 for member in members if member["state"] in ("missing", "failed")),
    }


def _config_lines(text: str) -> list[str]:
    """The lines of the pool's devices: below the heading, without the pool itself."""
    lines = text.partition("config:")[2].splitlines()
    heading = next((index for index, line in enumerate(lines) if line.split()[:2] == ["NAME", "STATE"]), None)
    if heading is None:
        return []
    found = []
    for line in lines[heading + 2 :]:
        if not line.strip():
            break
        found.append(line)
    return found

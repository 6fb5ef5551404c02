"""Arrays of a study that stand already, in the words of what was found: md's, btrfs's, a controller's.

Invariant: what the kernel tells is said as its own, what the owner tells as his; where neither does, that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from raidlab.results.facts import Member, Volume
from raidlab.study.schema import Array
from raidlab.study.units import format_bytes

# What of a volume's details decides which array it is: the key, and the word before it.
_DETAILS = {"rotation": "", "copies": "", "metadata": "metadata ", "metadata_version": "metadata ", "bitmap": "bitmap "}
# Policies that are a device or a place of their own; the others follow from the bitmap.
_POLICIES = ("journal", "ppl")


def main_volume(members: Sequence[Member]) -> Volume | None:
    """The uppermost array below a volume that is made of several; the uppermost of all where none is."""
    volumes = [volume for member in members for volume in member.get("volumes", [])]
    return next((one for one in volumes if len(one["members"]) > 1), volumes[0] if volumes else None)


def disk_count(array: Array, members: Sequence[Member]) -> int:
    """How many disks a volume has: as many as the kernel knows, unless that is one and its owner says more."""
    known = len({disk for member in members for disk in member["disks"]})
    return array.disks if array.disks is not None and known <= 1 else max(known, 1)


def member_count(array: Array, members: Sequence[Member]) -> int:
    """How many members a volume has; where the kernel tells of none, its disks."""
    volume = main_volume(members)
    if volume is None:
        return disk_count(array, members)
    return volume.get("raid_disks") or len(volume["members"]) or 1


def volume_words(array: Array, members: Sequence[Member]) -> str:
    """What a volume is, in a line: what the kernel tells, from the uppermost layer down, and what its owner says."""
    volumes = [volume for member in members for volume in member.get("volumes", [])]
    layers = [layer["namespace"] for member in members for layer in member.get("stack", []) if "namespace" in layer]
    plain = ", ".join(["no array that the kernel knows", *layers])
    place = (array.volume or "").rstrip("/").rpartition("/")[2]
    known = ", on ".join(_one(volume, place) for volume in volumes) or plain
    count = [f"{array.disks} disks"] if array.disks is not None else []
    said = ", ".join([*([array.says] if array.says else []), *count])
    return f"{array.volume}: {known}" + (f"; its owner says: {said}" if said else "")


def _one(volume: Volume, place: str) -> str:
    name = volume["name"]
    words = f"{volume['kind']} {volume['level'] or 'of a level that is not known'}"
    count = volume.get("raid_disks") or len(volume["members"])
    words += f" of {count}" if count else ""
    chunk = volume["chunk_bytes"]
    details = volume["details"]
    parts = [f"chunk {format_bytes(chunk)}"] if chunk else []
    told = {name: str(details[name]).replace("_", " ") for name in _DETAILS if details.get(name) not in (None, "none")}
    parts += [f"{_DETAILS[name]}{word}" for name, word in told.items()]
    parts += [f"with {details['consistency_policy']}"] if details.get("consistency_policy") in _POLICIES else []
    parts += [word for word in (volume["state"], volume["activity"]) if word not in (None, "idle")]
    # What it is called stands before it already, where it is what the user has named.
    return ", ".join([words if name.rpartition("/")[2] == place else f"{name}, {words}", *parts])

"""Arrays of a study that stand already, in the words of what was found: md's, btrfs's, a controller's.

Invariant: what the kernel tells is said as its own, what the owner tells as his; where neither does, that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from raidlab.results.facts import Member, Volume
from raidlab.study.schema import Array
from raidlab.study.units import format_bytes

# What of a volume's details decides which array it is.
_DETAILS = ("rotation", "copies", "metadata_version", "bitmap", "consistency_policy")


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
    """What a volume is, in a line."""
    volumes = [volume for member in members for volume in member.get("volumes", [])]
    layers = [layer["namespace"] for member in members for layer in member.get("stack", []) if "namespace" in layer]
    plain = ", ".join(["no array that the kernel knows", *layers])
    known = ", on ".join(_one(volume) for volume in volumes) or plain
    said = [f"its owner says: {array.says}"] if array.says else []
    said += [f"{array.disks} disks, its owner says"] if array.disks is not None else []
    return "; ".join([f"{array.volume}: {known}", *said])


def _one(volume: Volume) -> str:
    words = f"{volume['kind']} {volume['level'] or 'of a level that is not known'}"
    count = volume.get("raid_disks") or len(volume["members"])
    words += f" of {count}" if count else ""
    chunk = volume["chunk_bytes"]
    details = volume["details"]
    parts = [f"chunk {format_bytes(chunk)}"] if chunk else []
    parts += [f"{name.replace('_', ' ')} {details[name]}" for name in _DETAILS if details.get(name) is not None]
    state = [word for word in (volume["state"], volume["activity"]) if word not in (None, "idle")]
    return f"{volume['name']} ({', '.join([words, *parts, *state])})"

"""A parameter of the modelled device, or what follows from it: of an idle read of 4 KiB, and the rate of its medium."""

from __future__ import annotations

from raidlab.published.quantities.kind import Kind, NotThereError, Reading, Source
from raidlab.study.device import medium_mb_s, revolution_of
from raidlab.study.words import Line, Table

# What only disks have, whichever keys of theirs it follows from.
_OF_MEDIUM = {"medium_mb_s": medium_mb_s, "revolution_ms": revolution_of}
_IDLE = ("idle_overhead_ns", "idle_seek_ns", "idle_rotation_ns", "idle_transfer_ns")


class Keys(Table):
    """What a measure of this kind says."""

    key: Line
    """A key of the device file (``revolution_ms``, ``seek.avg_ms``), an idle mean in ns such as ``idle_seek_ns``, or
    ``medium_mb_s``, the highest rate of a disk's medium."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number."""
    device = source.run.facts["devices"].get(source.target)
    if device is None:
        return None
    if keys.key in _OF_MEDIUM:
        value = _OF_MEDIUM[keys.key](device)
        return None if value is None else Reading(value)
    found: object = source.device_facts(device) if keys.key in _IDLE else device
    for step in keys.key.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    if not isinstance(found, int | float):
        raise NotThereError(f"the device has no number '{keys.key}'")
    return Reading(float(found))


KIND = Kind("device", "a parameter of the device", Keys, read, is_run=False)

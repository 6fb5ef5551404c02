"""Settings of the block devices and mounts below a target that are not what the kernel chooses by itself.

Only settings whose default is the same everywhere are judged; how far a device reads ahead or how many requests it
queues differ from driver to driver, and say nothing here.

Reference: the kernel's Documentation/ABI/stable/sysfs-block, section queue; ext4(5), btrfs(5), xfs(5).
"""

from __future__ import annotations

from pathlib import Path

from raidlab.results.facts import Setting, Settings
from raidlab.run.kernel_facts import Sources, mount_of
from raidlab.run.kernel_facts.sources import read_word
from raidlab.run.kernel_facts.stack import StackedDevice

_DEFAULTS = {"nomerges": "0", "rq_affinity": "1", "iostats": "1"}
# A kernel without hints takes one of these by itself.
_SCHEDULERS = ("none", "mq-deadline")
# Transfers up to this size pass in one piece by default, if the hardware can.
_DEFAULT_MAX_SECTORS_KB = 1280
_DEFAULT_STRIPE_CACHE = 256
# Options that trade safety or order for speed, or the other way round; each with what is the default.
_MOUNT_OPTIONS = {
    "nobarrier": "barriers",
    "barrier=0": "barriers",
    "data=writeback": "data=ordered",
    "data=journal": "data=ordered",
    "sync": "async",
    "dirsync": "async",
    "nodatacow": "datacow",
    "nodatasum": "datasum",
    "notreelog": "treelog",
}


def fact(path: Path, stack: list[StackedDevice], sources: Sources) -> Settings:
    """``changed``: a list of ``place``, ``name``, ``value`` and ``default``."""
    changed = [found for layer in stack for found in _of_layer(layer)]
    mount = None if path.is_block_device() else mount_of(path, sources)
    if mount is not None:
        changed += [
            {"place": mount.point, "name": "mount option", "value": option, "default": _MOUNT_OPTIONS[option]}
            for option in mount.options
            if option in _MOUNT_OPTIONS
        ]
    return {"changed": changed}


def _of_layer(layer: StackedDevice) -> list[Setting]:
    found: list[Setting] = []

    def differs(name: str, value: str | None, default: str) -> None:
        if value is not None and value != default:
            found.append({"place": layer.name, "name": name, "value": value, "default": default})

    for name, default in _DEFAULTS.items():
        # Devices without a queue of requests (zram, md) keep no statistics unless told to.
        if layer.setting("scheduler") is not None:
            differs(name, layer.setting(name), default)
    scheduler = layer.setting("scheduler")
    if scheduler not in (None, *_SCHEDULERS):
        differs("scheduler", scheduler, " or ".join(_SCHEDULERS))
    now, most = layer.setting("max_sectors_kb"), layer.setting("max_hw_sectors_kb")
    if now is not None and most is not None and now.isdigit() and most.isdigit():
        least = min(int(most), _DEFAULT_MAX_SECTORS_KB)
        if int(now) < least:
            differs("max_sectors_kb", now, f"{least} or more")
    cache = read_word(layer.disk / "md" / "stripe_cache_size")
    differs("stripe_cache_size", cache, str(_DEFAULT_STRIPE_CACHE))
    return found

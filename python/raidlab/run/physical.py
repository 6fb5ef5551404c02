"""Which physical disks a live member really lies on.

Invariants:

- Everything is read from ``stat`` and ``/sys``; nothing is opened for writing and no privilege is needed.
- A partition is resolved to its disk, a loop device to the disk of its backing file, a device-mapper or md device to
  the disks below it, btrfs to those of all its devices. What cannot be resolved keeps its own number, so that two
  things are never taken for one.
"""

from __future__ import annotations

import os
from pathlib import Path

from raidlab.run.kernel_facts import Sources, btrfs, mount_of

_SYS_BLOCK = Path("/sys/dev/block")
_DEEPEST = 8


def disks_below(path: Path) -> list[str]:
    """The physical disks below a file or a block device, by name where they have one, in alphabetical order."""
    status = path.stat()
    number = status.st_rdev if path.is_block_device() else status.st_dev
    return sorted(_btrfs_disks(path) if _node(number) is None else _below(number)) or [_written(number)]


def _written(number: int) -> str:
    return f"{os.major(number)}:{os.minor(number)}"


def _node(number: int) -> Path | None:
    entry = _SYS_BLOCK / _written(number)
    return entry.resolve() if entry.exists() else None


def _btrfs_disks(path: Path) -> set[str]:
    """A btrfs has a number of no device; sysfs lists those it is made of."""
    mount = mount_of(path)
    folder = btrfs.folder_of(mount.source, Sources()) if mount is not None and mount.kind == btrfs.KIND else None
    found: set[str] = set()
    for device in btrfs.devices(folder) if folder is not None else []:
        found |= _below(_number_of(device))
    return found


def _number_of(node: Path) -> int:
    major, minor = (node / "dev").read_text(encoding="utf-8").split(":")
    return os.makedev(int(major), int(minor))


def _below(number: int, depth: int = 0) -> set[str]:
    node = _node(number)
    if node is None or depth >= _DEEPEST:
        return {_written(number)}
    if (node / "partition").exists():
        node = node.parent
    backing = node / "loop" / "backing_file"
    if backing.exists():
        try:
            return _below(Path(backing.read_text(encoding="utf-8").strip()).stat().st_dev, depth + 1)
        except OSError:
            return {node.name}
    lower = sorted((node / "slaves").iterdir()) if (node / "slaves").is_dir() else []
    found: set[str] = set()
    for slave in lower:
        found |= _below(_number_of(slave), depth + 1)
    return found or {node.name}

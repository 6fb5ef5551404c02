"""Which physical disks a live member really lies on.

Invariants:

- Everything is read from ``stat`` and ``/sys``; nothing is opened for writing and no privilege is needed.
- A partition is resolved to its disk, a loop device to the disk of its backing file, a device-mapper or md device to
  the disks below it, btrfs to those of all its devices. What has no device is called by its mount point or its number,
  so that two things are never taken for one.
"""

from __future__ import annotations

import os
from pathlib import Path

from raidlab.run.kernel_facts import Sources, btrfs, mount_of

_SYS_BLOCK = Path("/sys/dev/block")
_DEEPEST = 8


def disks_below(path: Path) -> list[str]:
    """The physical disks below a file or a block device, by name where they have one, in alphabetical order."""
    if path.is_block_device():
        return sorted(_below(path.stat().st_rdev, path))
    return sorted(_below(path.stat().st_dev, path))


def _node(number: int) -> Path | None:
    entry = _SYS_BLOCK / f"{os.major(number)}:{os.minor(number)}"
    return entry.resolve() if entry.exists() else None


def _below(number: int, path: Path | None = None, depth: int = 0) -> set[str]:
    """The disks below a device by its number; ``path`` is a file that lies on it, where one is known."""
    node = _node(number)
    if node is None or depth >= _DEEPEST:
        return _without_device(number, path, depth)
    if (node / "partition").exists():
        node = node.parent
    backing = node / "loop" / "backing_file"
    if backing.exists():
        try:
            file = Path(backing.read_text(encoding="utf-8").strip())
            return _below(file.stat().st_dev, file, depth + 1)
        except OSError:
            return {node.name}
    lower = sorted((node / "slaves").iterdir()) if (node / "slaves").is_dir() else []
    found: set[str] = set()
    for slave in lower:
        found |= _below(_number_of(slave), None, depth + 1)
    return found or {node.name}


def _without_device(number: int, path: Path | None, depth: int) -> set[str]:
    """A file system that has the number of no device: btrfs lists its devices elsewhere, tmpfs has none."""
    written = f"{os.major(number)}:{os.minor(number)}"
    mount = mount_of(path) if path is not None else None
    if mount is None or depth >= _DEEPEST:
        return {written}
    folder = btrfs.folder_of(mount.source, Sources()) if mount.kind == btrfs.KIND else None
    found: set[str] = set()
    for device in btrfs.devices(folder) if folder is not None else []:
        found |= _below(_number_of(device), None, depth + 1)
    return found or {f"{mount.kind} at {mount.point}"}


def _number_of(node: Path) -> int:
    major, minor = (node / "dev").read_text(encoding="utf-8").split(":")
    return os.makedev(int(major), int(minor))

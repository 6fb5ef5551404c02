"""Which physical disks a live member really lies on.

Invariants:

- Everything is read from ``stat`` and ``/sys``; nothing is opened for writing and no privilege is needed.
- A partition is resolved to its disk, a loop device to the disk of its backing file, a device-mapper or md device to
  the disks below it. What cannot be resolved keeps its own number, so that two things are never taken for one.
"""

from __future__ import annotations

import os
from pathlib import Path

_SYS_BLOCK = Path("/sys/dev/block")
_DEEPEST = 8


def disks_below(path: Path) -> list[str]:
    """The physical disks below a file or a block device, by name where they have one, in alphabetical order."""
    status = path.stat()
    return sorted(_below(status.st_rdev if path.is_block_device() else status.st_dev))


def _below(number: int, depth: int = 0) -> set[str]:
    written = f"{os.major(number)}:{os.minor(number)}"
    entry = _SYS_BLOCK / written
    if not entry.exists() or depth >= _DEEPEST:
        return {written}
    node = entry.resolve()
    if (node / "partition").exists():
        node = node.parent
    backing = node / "loop" / "backing_file"
    if backing.exists():
        try:
            return _below(Path(backing.read_text().strip()).stat().st_dev, depth + 1)
        except OSError:
            return {node.name}
    lower = sorted((node / "slaves").iterdir()) if (node / "slaves").is_dir() else []
    found: set[str] = set()
    for slave in lower:
        major, minor = (slave / "dev").read_text().split(":")
        found |= _below(os.makedev(int(major), int(minor)), depth + 1)
    return found or {node.name}

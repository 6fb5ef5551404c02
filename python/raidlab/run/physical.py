"""Which physical devices live members really lie on.

Invariants:

- Everything is read from ``stat`` and ``/sys``; nothing is opened for writing and no privilege is needed.
- A partition is resolved to its disk, a loop device to the disk of its backing file, a device-mapper or md device to
  the disks below it. What cannot be resolved keeps its own number, so that two things are never taken for one.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

_SYS_BLOCK = Path("/sys/dev/block")
_DEEPEST = 8


def describe_member(member: dict[str, Any]) -> dict[str, Any]:
    """Facts of one live member: kind, path, the physical disks below it, their scheduler and whether they rotate.

    Parameters
    ----------
    member : dict
        A member as the engine takes it.

    Returns
    -------
    dict
    """
    facts: dict[str, Any] = {"kind": member["kind"]}
    if member["kind"] == "memory":
        return {**facts, "size_bytes": member["size_bytes"], "disks": []}
    path = Path(member["path"])
    status = path.stat()
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    disks = sorted(_disks_below(number))
    return {
        **facts,
        "path": str(path),
        "size_bytes": member.get("size_bytes"),
        "device_number": _written(number),
        "disks": disks,
        "rotational": [_queue(disk, "rotational") == "1" for disk in disks],
        "scheduler": [_chosen(_queue(disk, "scheduler")) for disk in disks],
        "write_cache": [_queue(disk, "write_cache") for disk in disks],
        "filesystem": _filesystem(path) if member["kind"] == "file" else None,
    }


def _disks_below(number: int, depth: int = 0) -> set[str]:
    entry = _SYS_BLOCK / _written(number)
    if not entry.exists() or depth >= _DEEPEST:
        return {_written(number)}
    node = entry.resolve()
    if (node / "partition").exists():
        node = node.parent
    backing = node / "loop" / "backing_file"
    if backing.exists():
        try:
            return _disks_below(Path(backing.read_text().strip()).stat().st_dev, depth + 1)
        except OSError:
            return {node.name}
    lower = sorted((node / "slaves").iterdir()) if (node / "slaves").is_dir() else []
    if not lower:
        return {node.name}
    found: set[str] = set()
    for slave in lower:
        major, minor = (slave / "dev").read_text().split(":")
        found |= _disks_below(os.makedev(int(major), int(minor)), depth + 1)
    return found


def _written(number: int) -> str:
    return f"{os.major(number)}:{os.minor(number)}"


def _queue(disk: str, key: str) -> str | None:
    try:
        return (Path("/sys/block") / disk / "queue" / key).read_text().strip()
    except OSError:
        return None


def _chosen(schedulers: str | None) -> str | None:
    """The scheduler in use stands in brackets: ``none [mq-deadline]``."""
    if schedulers is None:
        return None
    marked = [word for word in schedulers.split() if word.startswith("[")]
    return marked[0].strip("[]") if marked else schedulers


def _filesystem(path: Path) -> str | None:
    """The type of the file system a path lies on: that of the longest mount point above it."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return None
    resolved = str(path.resolve())
    best, kind = "", None
    for line in lines:
        _, mount, filesystem, *_ = line.split()
        mount = mount.replace("\\040", " ")
        inside = mount in ("/", resolved) or resolved.startswith(mount + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, filesystem
    return kind

"""What arrays and volumes of the kernel lie below a path: md, the device mapper, btrfs, ZFS; one file a kind.

A result measured on an array says little without the array's level, chunk, members and state; so these are read before
and after a measurement and stand beside it.

Adding a kind of block device: a file with ``KIND``, ``is_here(node)`` and ``facts(node, sources)``, a line in
`BLOCK_KINDS`, a test with a tree of files in place of sysfs.

Invariants:

- Nothing is opened for writing and nothing is changed. Without privilege some facts are missing, and said to be.
- Every volume has the same keys: ``kind``, ``name``, ``level``, ``chunk_bytes``, ``state`` (``optimal``, ``degraded``,
  ``failed`` or None), ``kernel_state``, ``activity``, ``activity_share``, ``missing_members``, ``members``,
  ``details``, and ``unknown``: the reason for each fact that could not be determined.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raidlab.results.facts import Volume
from raidlab.run.kernel_facts import btrfs, dm, md, zfs
from raidlab.run.kernel_facts.sources import Sources, slaves

BLOCK_KINDS = (md, dm, zfs)
_DEEPEST = 8


@dataclass(frozen=True)
class Mount:
    """A line of ``/proc/self/mountinfo``."""

    point: str
    kind: str
    source: str


def volumes_below(path: Path, sources: Sources | None = None) -> list[Volume]:
    """The arrays and volumes that a file, a directory or a block device lies on, the uppermost first.

    Parameters
    ----------
    path : pathlib.Path
    sources : Sources, optional
        This system's, if left out.

    Returns
    -------
    list of dict
        Empty where there is no array: a plain disk, memory.
    """
    sources = sources or Sources()
    status = path.stat()
    if path.is_block_device():
        node = sources.block(status.st_rdev)
        return [] if node is None else _below(node, sources)
    node = sources.block(status.st_dev)
    if node is not None:
        return _below(node, sources)
    # btrfs and ZFS have numbers of no device: what is mounted tells.
    mount = mount_of(path, sources)
    if mount is not None and mount.kind == zfs.KIND:
        return [zfs.facts_of_dataset(mount.source, sources)]
    folder = btrfs.folder_of(mount.source, sources) if mount is not None and mount.kind == btrfs.KIND else None
    if mount is None or folder is None:
        return []
    found = [btrfs.facts(folder, mount.point, sources)]
    for device in btrfs.devices(folder):
        found += _below(device, sources)
    return found


def mount_of(path: Path, sources: Sources | None = None) -> Mount | None:
    """The mount that a path lies in: the longest mount point that is above it, and of equals the last."""
    sources = sources or Sources()
    try:
        lines = (sources.proc / "self" / "mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    resolved, best = str(path.resolve()), None
    for line in lines:
        head, _, tail = line.partition(" - ")
        point = _unescaped(head.split()[4])
        inside = point in ("/", resolved) or resolved.startswith(point + "/")
        if inside and (best is None or len(point) >= len(best.point)):
            kind, source = tail.split()[:2]
            best = Mount(point, kind, _unescaped(source))
    return best


def _unescaped(text: str) -> str:
    """Blanks and the like are octal there."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _below(node: Path, sources: Sources, depth: int = 0) -> list[Volume]:
    if depth >= _DEEPEST:
        return []
    whole = node.parent if (node / "partition").exists() else node
    found = [kind.facts(whole, sources) for kind in BLOCK_KINDS if kind.is_here(whole)]
    below = [slave for slave in slaves(whole) if slave.exists()]
    backing = whole / "loop" / "backing_file"
    if not below and backing.exists():
        return found + _below_file(Path(backing.read_text(encoding="utf-8").strip()), sources, depth + 1)
    for slave in below:
        found += _below(slave, sources, depth + 1)
    return _each_once(found)


def _below_file(file: Path, sources: Sources, depth: int) -> list[Volume]:
    """Below a loop device lies whatever its file lies on."""
    try:
        number = file.stat().st_rdev if file.is_block_device() else file.stat().st_dev
    except OSError:
        return []
    node = sources.block(number)
    return [] if node is None else _below(node, sources, depth)


def _each_once(volumes: list[Volume]) -> list[Volume]:
    """Two members on one volume are two ways to it, not two volumes."""
    return list({(volume["kind"], volume["name"]): volume for volume in volumes}.values())


__all__ = ["BLOCK_KINDS", "Mount", "Sources", "mount_of", "volumes_below"]

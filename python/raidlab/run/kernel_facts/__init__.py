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

from pathlib import Path

from raidlab.results.facts import Volume
from raidlab.run.kernel_facts import btrfs, dm, md, zfs
from raidlab.run.kernel_facts.sources import Sources
from raidlab.run.kernel_facts.stack import mount_of, stack_below

BLOCK_KINDS = (md, dm, zfs)


def volumes_below(path: Path, sources: Sources | None = None) -> list[Volume]:
    """The arrays and volumes that a file, a directory or a block device lies on, the uppermost first.

    Empty where there is no array: a plain disk, memory.
    """
    sources = sources or Sources()
    found: list[Volume] = []
    if not path.is_block_device() and sources.block(path.stat().st_dev) is None:
        # btrfs and ZFS have numbers of no device: what is mounted tells.
        mount = mount_of(path, sources)
        if mount is not None and mount.kind == zfs.KIND:
            return [zfs.facts_of_dataset(mount.source, sources)]
        folder = btrfs.folder_of(mount.source, sources) if mount is not None and mount.kind == btrfs.KIND else None
        if mount is not None and folder is not None:
            found.append(btrfs.facts(folder, mount.point, sources))
    for layer in stack_below(path, sources):
        found += [kind.facts(layer.disk, sources) for kind in BLOCK_KINDS if kind.is_here(layer.disk)]
    # Two members on one volume are two ways to it, not two volumes.
    return list({(volume["kind"], volume["name"]): volume for volume in found}.values())


__all__ = ["BLOCK_KINDS", "Sources", "mount_of", "volumes_below"]

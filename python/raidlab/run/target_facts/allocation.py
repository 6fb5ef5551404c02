"""How much of a target is really stored.

Holes of a file, blocks that were reserved and never written, and pages that a zram never got read as zeros for free.

Reference: stat(2), st_blocks; lseek(2), SEEK_DATA; the kernel's Documentation/filesystems/fiemap.rst
(FIEMAP_EXTENT_UNWRITTEN) and Documentation/admin-guide/blockdev/zram.rst, mm_stat.
"""

from __future__ import annotations

import os
from pathlib import Path

from raidlab.results.facts import Allocation, StoredPlace
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice
from raidlab.run.placement import unwritten_bytes

_COUNTED_BYTES = 512


def fact(path: Path, stack: list[StackedDevice], _sources: Sources) -> Allocation:
    """``places``: ``name``, ``size_bytes`` and ``stored_bytes`` of the file or zram that holds all of the target.

    ``stored_bytes`` is None where a file system does not count; ``unwritten_bytes`` says how much of a file is reserved
    and was never written.
    """
    if not path.is_block_device():
        found = [_of_file(path)]
    else:
        # What holds the whole of the device. Further down a file system decides what lies where.
        top = stack[0] if stack and stack[0].node == stack[0].disk else None
        found = [] if top is None else [_of_zram(top), _of_file(top.backing) if top.backing is not None else None]
    return {"places": [place for place in found if place is not None]}


def _of_file(file: Path) -> StoredPlace | None:
    try:
        status = file.stat()
    except OSError:
        return None
    if not file.is_file() or not status.st_size:
        return None
    # File systems in user space may leave st_blocks at 0. Where there is data all the same, it says nothing.
    if status.st_blocks == 0 and _has_data(file):
        return {"name": str(file), "size_bytes": status.st_size, "stored_bytes": None}
    unwritten = min(unwritten_bytes(file) or 0, status.st_size)
    stored = min(status.st_blocks * _COUNTED_BYTES, status.st_size - unwritten)
    return {"name": str(file), "size_bytes": status.st_size, "stored_bytes": stored, "unwritten_bytes": unwritten}


def _has_data(file: Path) -> bool:
    """Whether the file system says that some of a file is no hole; one that knows no holes says so too."""
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.lseek(opened, 0, os.SEEK_DATA)
        return True
    except OSError:
        return False
    finally:
        os.close(opened)


def _of_zram(layer: StackedDevice) -> StoredPlace | None:
    """The original size of what is kept; pages of one repeated word are counted in it, though they take no memory."""
    try:
        size = int((layer.disk / "disksize").read_text())
        original = int((layer.disk / "mm_stat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return {"name": layer.name, "size_bytes": size, "stored_bytes": min(original, size)} if size else None

"""Where files lie on their device: by the extents that the file system tells (FIEMAP).

Disks are faster at their front, and an arm that need not go far is faster too. So a study of file sizes spreads each
size over all portions of a volume; on a mounted file system that is not raidlab's to decide, but it can be looked at.

Reference: Documentation/filesystems/fiemap.rst of the Linux kernel.
"""

from __future__ import annotations

import array
import fcntl
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from raidlab.results.facts import Placement, Unknown

# _IOWR('f', 11, struct fiemap): the structure without extents has 32 bytes.
_FIEMAP = 0xC020660B
_HEAD = struct.Struct("=QQLLLL")
_EXTENT = struct.Struct("=QQQQQLLLL")
_MOST_EXTENTS = 64
# Of a longer list of extents than this many calls tell, the rest is not looked at.
_MOST_CALLS = 1000
_SYNC = 0x1
_LAST_FLAG, _UNKNOWN_FLAG, _UNWRITTEN_FLAG = 0x1, 0x2, 0x800
PARTS = 10


def extents_of(file: Path) -> list[tuple[int, int]] | None:
    """Where a file lies: (offset on the device, length) of its extents; None where the file system does not tell."""
    found = _mapped(file, 1)
    if found is None or any(flags & _UNKNOWN_FLAG for _, _, flags in found):
        return None
    return [(start, length) for start, length, _ in found]


def unwritten_bytes(file: Path) -> int | None:
    """How much of a file has room on its device that was never written, and so reads as zeros without any disk.

    Such are the blocks that fallocate(2) reserves; what the page cache still holds is written out first. None where
    the file system does not tell.
    """
    found = _mapped(file, _MOST_CALLS, _SYNC)
    return None if found is None else sum(length for _, length, flags in found if flags & _UNWRITTEN_FLAG)


def _mapped(file: Path, calls: int, flags: int = 0) -> list[tuple[int, int, int]] | None:
    """(offset on the device, length, flags) of the extents that so many calls tell of; None where none does."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    found: list[tuple[int, ...]] = []
    try:
        for _ in range(calls):
            begin = found[-1][0] + found[-1][2] if found else 0
            more = _extents_from(opened, begin, flags)
            found += more
            if len(more) < _MOST_EXTENTS or more[-1][5] & _LAST_FLAG:
                break
    except OSError:
        return None
    finally:
        os.close(opened)
    return [(extent[1], extent[2], extent[5]) for extent in found]


def _extents_from(opened: int, begin: int, flags: int) -> list[tuple[int, ...]]:
    """The extents of a file from a place on, as many as one call tells."""
    size = _HEAD.size + _MOST_EXTENTS * _EXTENT.size
    asked = array.array("B", _HEAD.pack(begin, 2**64 - 1 - begin, flags, 0, _MOST_EXTENTS, 0))
    asked.frombytes(bytes(size - _HEAD.size))
    fcntl.ioctl(opened, _FIEMAP, asked)
    answer = asked.tobytes()
    count = _HEAD.unpack_from(answer)[3]
    return [_EXTENT.unpack_from(answer, _HEAD.size + number * _EXTENT.size) for number in range(count)]


def placement(files: Sequence[Path]) -> Placement | Unknown:
    """Which part of its device some files lie on, how broken they are, and whether each size is all over it.

    ``files``: on one file system. Returns ``first_bytes``, ``last_bytes`` of what they cover, ``volume_bytes`` of the
    file system; ``extents`` a file; ``tenths``: of that stretch, those in which files of every size begin; or
    ``unknown`` with the reason.
    """
    places: list[tuple[int, int]] = []
    ends: list[int] = []
    pieces = 0
    for file in files:
        extents = extents_of(file)
        if extents:
            places.append((extents[0][0], file.stat().st_size))
            ends.append(max(start + length for start, length in extents))
            pieces += len(extents)
    if not places:
        return {"unknown": "the file system does not tell where files lie"}
    first, last = min(start for start, _ in places), max(ends)
    sizes = {size for _, size in places}
    held: list[set[int]] = [set() for _ in range(PARTS)]
    for start, size in places:
        held[min(PARTS - 1, (start - first) * PARTS // max(last - first, 1))].add(size)
    status = os.statvfs(files[0])
    return {
        "volume_bytes": status.f_blocks * status.f_frsize,
        "first_bytes": first,
        "last_bytes": last,
        "extents": pieces / len(places),
        "sizes": len(sizes),
        "tenths": sum(1 for found in held if found == sizes),
        "tenths_used": sum(1 for found in held if found),
    }

"""Where a job's requests go: its files as fio would name them, how large they are, and the part of each it uses.

Invariants:

- Nothing is opened or made here; names are looked at.
- The part used is as fio takes it: ``size`` is shared out over the files of ``filename``, a percentage is of what is
  there, ``offset`` is left alone below the part, and a file that is not there is made as long as the part reaches.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from raidlab.errors import Problem
from raidlab.formats.fio.options import Job

FILE, BLOCK, MISSING, DIRECTORY, OTHER = "file", "block", "missing", "directory", "other"
_DEVICE_SECTOR_BYTES = 512
_SIZE_ACCEPTED = "size=..., as fio asks for too, or a file that is there"


@dataclass(frozen=True)
class FileStatus:
    """What a name leads to: ``file``, ``block``, ``missing``, ``directory`` or ``other``, and its length."""

    kind: str
    bytes: int = 0


@dataclass(frozen=True)
class FilePart:
    """The part of a file that a job uses."""

    path: str
    kind: str
    offset_bytes: int
    size_bytes: int


Look = Callable[[str], FileStatus]


def look_at(path: str) -> FileStatus:
    """What a name leads to."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return FileStatus(MISSING)
    except (OSError, ValueError):
        return FileStatus(OTHER)
    if stat.S_ISREG(found.st_mode):
        return FileStatus(FILE, found.st_size)
    if stat.S_ISDIR(found.st_mode):
        return FileStatus(DIRECTORY)
    if not stat.S_ISBLK(found.st_mode):
        return FileStatus(OTHER)
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    try:
        sectors = int(Path(f"/sys/dev/block/{number}/size").read_text())
    except (OSError, ValueError):
        return FileStatus(BLOCK)
    return FileStatus(BLOCK, sectors * _DEVICE_SECTOR_BYTES)


def names_of(job: Job, look: Look, directory: str | None) -> tuple[list[str], bool]:
    """The files of a job (``directory`` in place of its own), and whether its clones share them, else have one each."""
    directories = (directory,) if directory is not None else job.directory or (".",)
    if job.filename:
        # fio looks for given names in the first of several directories.
        return [_below(directories[0], name) for name in job.filename], True
    if not job.directory and look(job.title).kind in (BLOCK, OTHER):
        return [job.title], True
    titled = (f"{job.title}.{clone}.0" for clone in range(job.numjobs))
    return [_below(directories[clone % len(directories)], name) for clone, name in enumerate(titled)], False


def part_of(
    job: Job, path: str, files: int, block_bytes: int, look: Look, most_bytes: int | None
) -> FilePart | Problem:
    """The part of one of a job's ``files`` files that it uses, cut short at ``most_bytes``.

    An offset in per cent is rounded up to a multiple of ``block_bytes``, the job's least request.
    """
    found = look(path)
    option = "filename" if job.filename else "directory"
    if found.kind in (DIRECTORY, OTHER):
        what = "is a directory" if found.kind == DIRECTORY else "is neither a file nor a block device"
        return job.problem(option, f"{path} {what}", "a file or a block device")
    if found.kind == MISSING and not Path(path).parent.is_dir():
        return job.problem(option, f"there is no directory {Path(path).parent}", "a directory that is there")
    if found.kind == MISSING and (job.size is None or job.size.percent is not None or job.offset.percent):
        return job.problem("size", f"{path} is not there, so its size must be said", _SIZE_ACCEPTED)
    offset = job.offset.of(found.bytes)
    if job.offset.percent is not None:
        offset = -(-offset // block_bytes) * block_bytes
    size = _size(job, found.bytes, offset, files) * job.adjoining
    if found.kind == BLOCK and offset + size > found.bytes:
        return job.problem("size", f"{path} has only {found.bytes} bytes", "a size within the device")
    if most_bytes is not None:
        size = min(size, most_bytes)
    return FilePart(path, BLOCK if found.kind == BLOCK else FILE, offset, size)


def null_part(job: Job, most_bytes: int | None) -> FilePart | Problem:
    """The part of nothing that ``ioengine=null`` uses."""
    if job.size is None or job.size.bytes is None:
        return job.problem("size", "ioengine=null has no size of its own", "size=...")
    size = job.size.bytes if most_bytes is None else min(job.size.bytes, most_bytes)
    return FilePart("null", "null", 0, size)


def _size(job: Job, whole_bytes: int, offset_bytes: int, files: int) -> int:
    if job.size is None:
        return max(whole_bytes - offset_bytes, 0)
    if job.size.percent is not None:
        return min(job.size.of(whole_bytes), max(whole_bytes - offset_bytes, 0))
    return job.size.of(whole_bytes) // files


def _below(directory: str, name: str) -> str:
    return str(Path(directory) / name)

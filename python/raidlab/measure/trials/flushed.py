"""Flush scattered blocks: how long a device takes to say that they are safe.

A few blocks are written here and there past the page cache, and flushed; several times. A disk that turns cannot do
that in less than a part of a revolution, whatever it says.
"""

from __future__ import annotations

import mmap
import os
import random
import statistics
import time

from raidlab.directory import Directory
from raidlab.measure.trials.target import TrialTarget
from raidlab.results.facts import Trials

KEY = "flushed"

BLOCKS = 32
_ROUNDS = 5
_BLOCK_BYTES = 4096


def tried(target: TrialTarget) -> Trials:
    """``blocks`` a flush and the ``median_ns`` of it; nothing of a target that may not be written."""
    count = target.size_bytes // _BLOCK_BYTES - 1
    if not target.writable or count < BLOCKS:
        return {}
    # The last page says that raidlab made the file.
    places = random.Random(1).sample(range(count), BLOCKS)
    with mmap.mmap(-1, _BLOCK_BYTES) as block:
        opened = _opened(target)
        try:
            times = []
            for _ in range(_ROUNDS):
                block[:] = os.urandom(_BLOCK_BYTES)
                for place in places:
                    os.pwrite(opened, block, place * _BLOCK_BYTES)
                begun = time.monotonic_ns()
                os.fsync(opened)
                times.append(time.monotonic_ns() - begun)
        finally:
            os.close(opened)
    return {"flushed": {"blocks": BLOCKS, "median_ns": int(statistics.median(times))}}


def _opened(target: TrialTarget) -> int:
    """Open the device that was given up, or raidlab's file: not what a link or a second name of it leads to by now."""
    if target.member["kind"] == "block":
        # It may have been named by a link, as in `/dev/disk/by-id`; the kernel refuses one that is in use (O_EXCL).
        how = os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECT
        return os.open(target.path.resolve(), how)
    with Directory.open(target.path.parent) as folder:
        return folder.open_file(target.path.name, os.O_WRONLY | os.O_DIRECT)

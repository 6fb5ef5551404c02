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
from typing import Any

from raidlab.probe.target import Probed

KEY = "flushed"

BLOCKS = 32
_ROUNDS = 5
_BLOCK_BYTES = 4096


def tried(target: Probed) -> dict[str, Any]:
    """``blocks`` a flush and the ``median_ns`` of it; nothing of a target that may not be written."""
    count = target.size_bytes // _BLOCK_BYTES - 1
    if not target.writable or count < BLOCKS:
        return {}
    # The last page says that raidlab made the file.
    places = random.Random(1).sample(range(count), BLOCKS)
    with mmap.mmap(-1, _BLOCK_BYTES) as block:
        opened = os.open(target.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECT)
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
    return {KEY: {"blocks": BLOCKS, "median_ns": int(statistics.median(times))}}

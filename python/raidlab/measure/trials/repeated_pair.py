"""Write one block again and again, and blocks that are all different, in turn: where one is faster, something dedupes.

The engine repeats no sector, so this writes files of its own, which only a directory has room for.

Invariants:

- Files are made, never opened; each is removed before the next is made.
- Which of a pair comes first alternates. What is written is made beforehand.
"""

from __future__ import annotations

import mmap
import os
import time

from raidlab.directory import Directory
from raidlab.measure.trials.target import TrialTarget, compared
from raidlab.results.facts import Trials

KEY = "repeated_pair"

PAIRS = 5
_PART_BYTES = 16 << 20
_BLOCK_BYTES = 128 << 10
_FILE = "member-pair.dat"


def tried(target: TrialTarget) -> Trials:
    """How many times as fast repeated data were written, with an interval."""
    part = min(_PART_BYTES, target.size_bytes // _BLOCK_BYTES * _BLOCK_BYTES)
    if not target.writable or target.member["kind"] != "file" or not part:
        return {}
    rates: dict[bool, list[float]] = {True: [], False: []}
    for number in range(PAIRS):
        for same in (True, False) if number % 2 else (False, True):
            with Directory.open(target.path.parent) as folder:
                rates[same].append(_written(folder, part, same=same))
    pair = compared(rates[True], rates[False])
    return {} if pair is None else {"repeated_pair": pair}


def _written(folder: Directory, part: int, *, same: bool) -> float:
    """Write a new file past the page cache and remove it; bytes a second, the last sync included."""
    # Anonymous memory begins on a page, as O_DIRECT wants it.
    with mmap.mmap(-1, part) as buffer:
        buffer.write(os.urandom(_BLOCK_BYTES) * (part // _BLOCK_BYTES) if same else os.urandom(part))
        descriptor = folder.create_file(_FILE, 0o600, os.O_DIRECT)
        try:
            with memoryview(buffer) as view:
                begun = time.monotonic()
                for offset in range(0, part, _BLOCK_BYTES):
                    with view[offset : offset + _BLOCK_BYTES] as block:
                        os.pwrite(descriptor, block, offset)
                os.fdatasync(descriptor)
                return part / (time.monotonic() - begun)
        finally:
            os.close(descriptor)
            folder.remove(_FILE)

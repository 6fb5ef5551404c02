"""Read single blocks of a target twice: what comes back otherwise the second time was wrong once, whoever wrote it.

Blocks all over the target are read in drawn order, then in the same order again. What is wrong both times in the same
way cannot be seen; nor can anything be said where somebody wrote meanwhile.
"""

from __future__ import annotations

import mmap
import os
import random
import time
from typing import Any

from raidlab.measure.trials.target import TrialTarget
from raidlab.results.facts import Trials
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import counters, stack_below

KEY = "read_twice"

_MOST_BLOCKS = 16_384
_BLOCK_BYTES = 4096
# Of the first reading; the second takes about as long.
_MOST_S = 2.0
_FIRST_KEPT = 4


def tried(target: TrialTarget) -> Trials:
    """How many blocks were read twice, and which of them came back otherwise; nothing without O_DIRECT."""
    try:
        descriptor = os.open(target.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        return _read_twice(descriptor, target)
    finally:
        os.close(descriptor)


def _read_twice(descriptor: int, target: TrialTarget) -> Trials:
    there = target.size_bytes // _BLOCK_BYTES
    blocks = random.Random(1).sample(range(there), min(there, _MOST_BLOCKS))
    written = _written(descriptor, target)
    until = time.monotonic() + _MOST_S
    with mmap.mmap(-1, _BLOCK_BYTES) as buffer:
        first = []
        for block in blocks:
            first.append(_read(descriptor, block, buffer))
            if time.monotonic() > until:
                break
        different = [
            block for block, sum_ in zip(blocks, first, strict=False) if _read(descriptor, block, buffer) != sum_
        ]
    return {
        "read_twice": {
            "blocks": len(first),
            "block_bytes": _BLOCK_BYTES,
            "different": len(different),
            "first": different[:_FIRST_KEPT],
            "written_meanwhile": _written(descriptor, target) != written,
        }
    }


def _read(descriptor: int, block: int, buffer: mmap.mmap) -> int:
    if os.preadv(descriptor, [buffer], block * _BLOCK_BYTES) != _BLOCK_BYTES:
        raise OSError(f"reading block {block} ended early")
    return hash(buffer[:])


def _written(descriptor: int, target: TrialTarget) -> tuple[Any, ...]:
    """What changes when somebody writes to the target."""
    status = os.fstat(descriptor)
    below = (
        [counters(layer) for layer in stack_below(target.path, Sources())[:1]] if target.path.is_block_device() else []
    )
    return (status.st_mtime_ns, status.st_size, [pair[1] for pair in below if pair is not None])

"""What a target holds, from a sample: zeros, what compresses, what repeats.

Content decides how fast a target is where something below compresses, deduplicates or never wrote what reads as zeros.

Invariants:

- 64 blocks of 4 KiB are read at places drawn from a fixed seed over the whole of the target, and 64 at the beginnings
  of mebibytes: what repeats every so many of them, up to some hundred, repeats there.
- They do not stay in the page cache, and nothing is read ahead.
"""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path

from raidlab.results.facts import Content, Unknown
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice

BLOCK_BYTES = 4096
_BLOCKS = 64
_COARSE_BYTES = 1 << 20
# In fewer mebibytes the places that are drawn find what repeats.
_LEAST_COARSE = 8
_SEED = 20
# A block that shrinks to less than this is one that a compressing target stores for less.
_COMPRESSED_SHARE = 0.75


def fact(path: Path, _stack: list[StackedDevice], _sources: Sources) -> Content | Unknown:
    """``blocks`` sampled, and how many of them are ``zero``, ``compressible`` (zeros included) and ``repeated``."""
    if not (path.is_file() or path.is_block_device()):
        return {"unknown": "it is neither a file nor a block device"}
    blocks = sample(path)
    if not blocks:
        return {"unknown": f"it holds less than {BLOCK_BYTES} bytes"}
    return {"block_bytes": BLOCK_BYTES, **counted(blocks)}


def sample(path: Path) -> list[bytes]:
    """Blocks at drawn places."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        count = os.lseek(descriptor, 0, os.SEEK_END) // BLOCK_BYTES
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        rng = random.Random(_SEED)
        drawn = set(rng.sample(range(count), min(_BLOCKS, count)))
        coarse = range(0, count, _COARSE_BYTES // BLOCK_BYTES)
        if len(coarse) >= _LEAST_COARSE:
            drawn |= set(rng.sample(coarse, min(_BLOCKS, len(coarse))))
        places = sorted(drawn)
        found = [os.pread(descriptor, BLOCK_BYTES, place * BLOCK_BYTES) for place in places]
        for place in places:
            os.posix_fadvise(descriptor, place * BLOCK_BYTES, BLOCK_BYTES, os.POSIX_FADV_DONTNEED)
        return found
    finally:
        os.close(descriptor)


def counted(blocks: list[bytes]) -> Content:
    """Count the blocks that are zeros, that compress, and that are like one before (zeros apart).

    Examples
    --------
    >>> counted([bytes(4096), b"ab" * 2048, b"ab" * 2048])
    {'blocks': 3, 'zero': 1, 'compressible': 3, 'repeated': 1}
    """
    seen: set[bytes] = set()
    zero = compressible = repeated = 0
    for block in blocks:
        zero += not any(block)
        compressible += len(zlib.compress(block, 1)) < _COMPRESSED_SHARE * len(block)
        repeated += block in seen and any(block)
        seen.add(block)
    return {"blocks": len(blocks), "zero": zero, "compressible": compressible, "repeated": repeated}

"""Read parts of a target twice: what a cache keeps is read faster again, and moves nothing at the disks below.

Several parts, spread over the target, are each read from front to back and at once again; the ratios of the pairs have
an interval. The counters of the disks below say how much of what was read again really moved there.
"""

from __future__ import annotations

from raidlab.measure.trials.target import TrialTarget, compared, scan
from raidlab.results.facts import Trials
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice, counters, stack_below

KEY = "read_again"

PARTS = 5
_PART_BYTES = 16 << 20
_BLOCK_BYTES = 64 << 10


def tried(target: TrialTarget) -> Trials:
    """How many times as fast it was again, and the share of that which moved at the disks (None: not counted)."""
    part = min(_PART_BYTES, target.size_bytes // PARTS // _BLOCK_BYTES * _BLOCK_BYTES)
    if part < _BLOCK_BYTES:
        return {}
    # The bottom of the stack: what moves there has been through every cache above.
    bottom = [layer for layer in stack_below(target.path, Sources()) if layer.name in target.disks]
    first, again, moved = [], [], []
    for number in range(PARTS):
        offset = number * (target.size_bytes - part) // (PARTS - 1) // _BLOCK_BYTES * _BLOCK_BYTES
        first.append(scan(target, offset, part, block=_BLOCK_BYTES))
        before = read_bytes(bottom)
        again.append(scan(target, offset, part, block=_BLOCK_BYTES))
        after = read_bytes(bottom)
        moved.append(None if before is None or after is None else after - before)
    ratio = compared(again, first)
    if ratio is None:
        return {}
    counted = [count for count in moved if count is not None]
    return {
        "read_again": {
            **ratio,
            "bytes": PARTS * part,
            "part_bytes": part,
            "moved_share": sum(counted) / (PARTS * part) if len(counted) == PARTS else None,
            "disks": [layer.name for layer in bottom],
        }
    }


def read_bytes(layers: list[StackedDevice]) -> int | None:
    """What some devices have read so far, together; None where one of them does not count, or there is none."""
    found = [counters(layer) for layer in layers]
    counted = [pair[0] for pair in found if pair is not None]
    return sum(counted) if counted and len(counted) == len(found) else None

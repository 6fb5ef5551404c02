"""Which tests there are: periods that bring every array of a size back to one member, and what tells the rest apart.

Invariant: a pool is a function of what may be, of the target's size and of what may be written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raidlab.measure.probe.ask import PAGE, ProbeTest, position_words
from raidlab.measure.probe.hypotheses import CHUNKS, Hypothesis
from raidlab.study.units import format_bytes

# Fewer places than these are soon known to every buffer.
LEAST_PLACES = 96


def periods_of(count: int) -> int:
    """After so many chunks every level over so many members is where it began: RAID 0, RAID 5 and RAID 6."""
    return count * (count - 1) * max(1, count - 2)


def first_tests(largest: Mapping[int, int], depth: int) -> list[ProbeTest]:
    """The reference, and one period for each number of members, whose largest chunk is given."""
    found = [ProbeTest("anywhere", PAGE, depth=depth)]
    for count, chunk_bytes in largest.items():
        period = periods_of(count) * chunk_bytes
        found.append(ProbeTest(f"every {format_bytes(period)} (all of {count})", period, depth=depth))
    return found


def pool_of(
    found: Sequence[Hypothesis], capacity_bytes: int, largest: Mapping[int, int], depth: int
) -> list[ProbeTest]:
    """Reads that may tell these apart: positions within the periods of those that are left.

    ``largest``: the largest chunk of arrays of each number of members.
    """
    periods: dict[int, None] = {}
    offsets: dict[int, None] = dict.fromkeys(chunk for chunk in CHUNKS if chunk <= max(largest.values()))
    for one in found:
        if not one.shape.has_chunks:
            continue
        count, chunk = one.shape.members, one.chunk_bytes
        for times in (count, count - 1, count - 2, count * (count - 1), count // 2):
            if times > 1:
                periods[times * largest[count]] = None
                periods[times * chunk] = None
        periods[periods_of(count) * largest[count]] = None
        for number in range(1, 2 * count + 1):
            offsets[number * chunk] = None
    usable = [period for period in periods if capacity_bytes // period >= LEAST_PLACES][:_MOST_PERIODS]
    tests = [_reads(period, (0,), depth) for period in usable]
    for period in usable:
        tests += [_reads(period, (0, offset), depth) for offset in list(offsets)[:_MOST_OFFSETS] if offset < period]
    return tests


_MOST_PERIODS, _MOST_OFFSETS = 8, 24


def _reads(period: int, positions: tuple[int, ...], depth: int) -> ProbeTest:
    at = f", at {position_words(positions)}" if len(positions) > 1 else ""
    return ProbeTest(f"every {format_bytes(period)}{at}", period, positions, depth=depth)


def write_tests(found: Sequence[Hypothesis], capacity_bytes: int, depth: int) -> list[ProbeTest]:
    """Writes that may tell these apart: small ones, and so many chunks as fill a stripe, or part of one."""
    sizes = {PAGE} | {
        number * one.chunk_bytes for one in found if one.shape.has_chunks for number in range(1, one.shape.members)
    }
    return [
        ProbeTest(f"writes of {format_bytes(size)}", size, op="write", size_bytes=size, depth=depth)
        for size in sorted(sizes)[:_MOST_SIZES]
        if size <= _LARGEST_WRITE and capacity_bytes // size >= LEAST_PLACES
    ]


_MOST_SIZES, _LARGEST_WRITE = 16, 4 * 1024**2

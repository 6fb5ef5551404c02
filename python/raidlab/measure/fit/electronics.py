"""The electronics of a disk: what it keeps in its buffer, how it takes writes, and in which order it serves.

What can be seen directly is which reads are answered at once, and how many writes in a row are. In which order
requests are served is found by trying: of the orders that the model has, the one that gives the times that were
measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from raidlab.measure.fit.held_out import as_long
from raidlab.measure.fit.rotation import Turntable
from raidlab.measure.fit.table import Measured
from raidlab.measure.fit.timed import Numbers, TimedSubject
from raidlab.reading import Plain

KIB = 1024
# What takes less of a revolution was answered from memory: a place that is read again comes by a revolution later.
_AT_ONCE_TURNS = 0.25
_TRIES = 9
_MOST_SEGMENTS = 1024
# Places are so far apart, and so far from the end.
_APART_BYTES, _ROOM_BYTES = 64 * KIB, 32 * 1024 * KIB
_WRITES, _LONG_BYTES, _LONG_WRITES = 3000, 512 * KIB, 600
_ORDERS: tuple[Plain, ...] = (
    "fifo",
    "sptf",
    *({"aged_sptf": {"percent": percent}} for percent in (1, 2, 5, 10, 20)),
    "clook",
    "look",
)


@dataclass(frozen=True)
class FoundBuffer:
    """What of reads and writes is answered from memory."""

    segments: int
    """Reads that may come between two of the same place, of which the second is answered at once, and one; 0: never."""
    streams: bool
    """Whether reads on end, one after another, are answered at once: they wait for what is just being read ahead."""
    ahead_sectors: int
    """How far it has read on when it had time to; 0 where it does not read ahead."""
    hit_ns: float
    ns_per_byte: float
    """Of the way to the host, from reads answered at once."""
    cached_writes: int | None
    """Short writes in a row that are answered at once, after which one is not; None where none may be made."""
    cached_bytes: int
    """Bytes of long writes in a row; 0 where none is."""
    write_ns: float | None = None
    """How long a write of one sector takes to which nothing comes in the way, where it is answered at once."""

    @property
    def in_order(self) -> bool:
        """Whether a write is kept in a segment until the medium has it: no more at a time than there are segments."""
        return 0 < (self.cached_writes or 0) <= self.segments


def found_buffer(table: Turntable, *, writes: bool) -> FoundBuffer:
    """Ask for what tells."""
    drawn = np.random.default_rng([table.seed, 11])
    subject, sector_bytes = table.subject, table.sector_bytes
    at_once_ns = _AT_ONCE_TURNS * table.rotation.period_ns

    def places(count: int) -> Numbers:
        room = (subject.capacity_bytes - _ROOM_BYTES) // _APART_BYTES
        return drawn.integers(0, room, count) * _APART_BYTES

    def after(others: int) -> float:
        """How long it takes to read a place again with so many others between, in the median."""
        took = []
        for _ in range(_TRIES):
            place = places(1)
            asked = np.concatenate([place, places(others), place])
            took.append(subject.ask_each(asked, "read", sector_bytes).took_ns[-1])
        return float(np.median(took))

    hit_ns = after(0)
    caches = hit_ns < at_once_ns
    segments = 1 + _last_that(lambda others: after(others) < at_once_ns, _MOST_SEGMENTS) if caches else 0
    ns_per_byte = _ns_per_byte(subject, places) if caches else 0.0
    begin = int(places(1)[0])
    stream = subject.ask_each(begin + 4 * KIB * np.arange(400), "read", 4 * KIB)
    streams = float(np.median(stream.took_ns)) < at_once_ns + 4 * KIB * ns_per_byte
    count, size = _cached(table, places, at_once_ns, ns_per_byte) if writes else (None, 0)
    return FoundBuffer(
        segments=segments,
        streams=streams,
        ahead_sectors=_ahead(table, places, at_once_ns, hit_ns) if caches else 0,
        hit_ns=hit_ns,
        ns_per_byte=ns_per_byte,
        cached_writes=count,
        cached_bytes=size,
        write_ns=_write_ns(table, places) if count else None,
    )


def _ns_per_byte(subject: TimedSubject, places: Callable[[int], Numbers]) -> float:
    """What a byte takes that is read again, by the longest read that takes as much for each as one of half its length.

    A read that does not fit into a segment is no read from the buffer.
    """

    def again(size: int) -> float:
        return float(np.median(subject.ask_each(np.repeat(places(1), 9), "read", size).took_ns[1:]))

    least = again(_SIZES[0])
    slopes = [(again(size) - least) / (size - _SIZES[0]) for size in _SIZES[1:]]
    for (slope, shorter), size in zip(pairwise(slopes), _SIZES[1:], strict=False):
        if abs(slope - shorter) * size < max(_ALIKE_NS, _ALIKE * abs(slope) * size):
            return max(0.0, slope)
    return max(0.0, slopes[-1])


_SIZES = (4 * KIB, 64 * KIB, 32 * KIB, 16 * KIB, 8 * KIB)
_ALIKE, _ALIKE_NS = 0.3, 50_000.0


def _ahead(table: Turntable, places: Callable[[int], Numbers], at_once_ns: float, hit_ns: float) -> int:
    """How far beyond a read of one sector the disk has read when that was asked for again and again, for some turns."""
    again = math.ceil(_AHEAD_TURNS * table.rotation.period_ns / hit_ns)

    def is_there(sectors: int) -> bool:
        took = []
        for _ in range(_AHEAD_TRIES):
            place = places(1)
            asked = np.concatenate([np.repeat(place, again), place + sectors * table.sector_bytes])
            took.append(table.subject.ask_each(asked, "read", table.sector_bytes).took_ns[-1])
        return float(np.median(took)) < at_once_ns

    return _last_that(is_there, _MOST_AHEAD_BYTES // table.sector_bytes)


_AHEAD_TURNS, _AHEAD_TRIES, _MOST_AHEAD_BYTES = 6, 3, 8 * 1024 * KIB


def _last_that(holds: Callable[[int], bool], most: int) -> int:
    """The greatest number up to `most` for which it holds, if it does for all below."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _cached(
    table: Turntable, places: Callable[[int], Numbers], at_once_ns: float, ns_per_byte: float
) -> tuple[int, int]:
    """How many short writes, and how many bytes of long ones, are answered before one has to wait."""
    short = table.subject.ask_each(places(_WRITES), "write", max(4 * KIB, table.sector_bytes))
    long = table.subject.ask_each(places(_LONG_WRITES), "write", _LONG_BYTES)
    waits = [
        int(np.argmax(np.append(one.took_ns > late, True)))
        for one, late in (
            (short, at_once_ns + 4 * KIB * ns_per_byte),
            (long, 2 * at_once_ns + _LONG_BYTES * ns_per_byte),
        )
    ]
    return waits[0], waits[1] * _LONG_BYTES


def _write_ns(table: Turntable, places: Callable[[int], Numbers]) -> float:
    took = []
    for _ in range(_TRIES):
        table.subject.rest(_EMPTIED_NS)
        took.append(table.subject.ask_each(places(1), "write", table.sector_bytes).took_ns[0])
    return float(np.median(took))


# So soon what was written last is on the medium.
_EMPTIED_NS = 200_000_000


def ordered(device: Mapping[str, Plain], fitted: Sequence[Measured], seed: int) -> tuple[Plain, float]:
    """The order of service that gives the times of random reads, and how far it is off, as a mean logarithm."""
    loops = [one for one in fitted if _tells_order(one)]
    found = []
    for place, order in enumerate(_ORDERS):
        found.append((_log_error(dict(device) | {"scheduler": order}, loops, seed), place))
    error, place = min(found)
    return _ORDERS[place], error


def settled(device: Mapping[str, Plain], fitted: Sequence[Measured], seed: int, least_ms: float) -> float | None:
    """How much longer a write's seek is, in ms, by the rate at which random writes go on when memory is full.

    It may be shorter by ``least_ms`` at most, where their commands take less. None where none were measured.
    """
    loops = [one for one in fitted if one.situation.op == "write" and one.situation.is_anywhere]
    loops = [one for one in loops if not one.situation.arrivals and one.situation.depth in _SETTLE_DEPTHS]
    # Of long ones, more is to be known: how data and medium overlap.
    loops = [one for one in loops if one.situation.size_bytes == 4 * KIB]
    if not loops:
        return None

    def faster(settle_ms: float) -> float:
        tried = dict(device) | {"write_settle_ms": settle_ms}
        rates = [as_long(tried, one, seed, turns=2).rate_per_s / one.rate_per_s for one in loops]
        return float(np.median(np.log(rates)))

    low, high = -least_ms, _MOST_SETTLE_MS
    if faster(low) <= 0:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if faster(middle) > 0 else (low, middle)
    return round((low + high) / 2, 3)


def longer_after_writes_ms(device: Mapping[str, Plain], fitted: Sequence[Measured], seed: int) -> float:
    """How much longer a read takes that comes after a write than one after a read: by reads in mixes, one at a time.

    Of a disk whose writes are on the medium when they are answered: elsewhere a read waits for the one before it.
    """
    found = []
    for one in fitted:
        asked = one.situation
        if asked.reads is not None and (asked.op, asked.size_bytes, asked.depth) == ("read", 4 * KIB, 1):
            longer_ns = one.mean_ns - as_long(device, one, seed).mean_ns
            found.append(longer_ns / 1e6 / (1 - asked.reads))
    return float(np.median(found)) if found else 0.0


_SETTLE_DEPTHS, _MOST_SETTLE_MS, _HALVINGS = (1, 8), 2.0, 6


def _tells_order(one: Measured) -> bool:
    asked = one.situation
    return (asked.op, asked.is_anywhere, asked.size_bytes, asked.arrivals) == ("read", True, 4 * KIB, False)


def _log_error(device: Mapping[str, Plain], loops: Sequence[Measured], seed: int) -> float:
    """Of throughput and of two percentiles, on average."""
    return float(np.mean([abs(one) for loop in loops for one in _logs(as_long(device, loop, seed), loop)]))


def _logs(modelled: Measured, measured: Measured) -> Iterator[float]:
    yield math.log(modelled.rate_per_s / measured.rate_per_s)
    for percentile in (90, 99):
        one, other = (some.times.percentile_ns(percentile) for some in (modelled, measured))
        yield math.log((one or 1) / (other or 1))

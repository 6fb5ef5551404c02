"""How long the arm takes, from the times between completions.

From the completion of one read to that of the next pass the least time that fits both the angle between the sectors and
what command and arm take, ``s``: anything from ``s`` to a revolution more, as the angles happen to be. Of many pairs of
tracks equally far apart, ``s`` is where a window of one revolution begins that holds the most of them.

Reference: B. Worthington et al., SIGMETRICS 1995 (their minimal time between request completions).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raidlab.measure.fit.rotation import Turntable
from raidlab.measure.fit.timed import Figures, Numbers
from raidlab.measure.fit.tracks import TrackMap

DISTANCES = 31
_PAIRS = 240
_GRID_NS = 2000.0
# A command takes less of a revolution.
_NEAR_TURNS = 0.2
# Wider than so much of a revolution is not known.
WIDEST_SHARE = 0.125


@dataclass(frozen=True)
class SeekPoint:
    """What command and arm take over so many tracks, from one completion to the next."""

    tracks: int
    took_ns: float
    width_ns: float
    """Anything within so much fits as well."""


@dataclass(frozen=True)
class SeekCurve:
    """The seeks of a disk."""

    overhead_ns: float
    """What a read takes that moves nothing."""
    points: tuple[SeekPoint, ...]
    head_switch_ns: float | None
    """From track to track of a cylinder; None where it is not seen which those are."""

    def table(self, tracks_per_cylinder: int) -> list[list[float]]:
        """``[cylinders, ms]``, not falling."""
        rows: dict[int, float] = {}
        took = _rising(np.array([one.took_ns - self.overhead_ns for one in self.points]))
        for one, ns in zip(self.points, took, strict=True):
            rows.setdefault(max(1, one.tracks // tracks_per_cylinder), round(max(0.0, float(ns)) / 1e6, 4))
        return [[cylinders, ms] for cylinders, ms in rows.items()]


def seek_curve(table: Turntable, found: TrackMap, op: Literal["read", "write"] = "read") -> SeekCurve:
    """Measure pairs of reads at distances that grow evenly on a logarithmic scale, and within a track."""
    drawn = np.random.default_rng([table.seed, 7])
    # In whole cylinders, where they are known.
    most = found.tracks // found.heads - 1
    cylinders = sorted({round(most ** (i / (DISTANCES - 1))) for i in range(DISTANCES)})
    distances = [found.heads * one for one in cylinders]
    pairs = [(0, *_within_a_track(found, drawn))]
    # What was seen of tracks are the first of cylinders: the next is under another head.
    pairs += [(1, *_apart(table, found, drawn, 1))] if found.heads_seen else []
    pairs += [(distance, *_apart(table, found, drawn, distance)) for distance in distances]
    kinds = np.concatenate([np.full(len(first), kind) for kind, first, _ in pairs])
    first = np.concatenate([one for _, one, _ in pairs])
    second = np.concatenate([one for _, _, one in pairs])
    order = drawn.permutation(len(kinds))
    asked = np.stack([first[order], second[order]], axis=1).ravel()
    ends, _ = table.asked(asked, op)
    between = (ends[1::2] - ends[0::2])[np.argsort(order, kind="stable")]
    period_ns = table.rotation.period_ns
    windows = {kind: _window(between[kinds == kind], period_ns) for kind, _, _ in pairs}
    points = tuple(SeekPoint(kind, *windows[kind]) for kind in distances)
    overhead_ns = windows[0][0]
    return SeekCurve(overhead_ns, points, max(0.0, windows[1][0] - overhead_ns) if found.heads_seen else None)


def waited_share(table: Turntable, found: TrackMap, bus_sector_ns: float) -> float:
    """The share of a read that is in the buffer before any of it is sent; 0 where the bus is faster than the medium.

    There the last sector goes out as it comes by, whatever was sent before. Over a slower bus a long read takes so much
    longer than a short one; what command and arm take is the same for both. On the longest tracks, which are the
    fastest, it is seen best. A disk with so slow a bus has a small buffer, which these few tracks do not fit into.
    """
    length = max(track.sectors for track in found.seen)
    sector_ns, count = table.rotation.period_ns / length, length // 2
    if bus_sector_ns <= sector_ns:
        return 0.0
    longest = replace(found, seen=tuple(track for track in found.seen if track.sectors == length))
    distance = found.heads * max(1, round((found.tracks // found.heads) ** 0.5))
    places = _apart(table, longest, np.random.default_rng([table.seed, 13]), distance, room=count)
    asked = np.stack(places, axis=1).ravel() * table.sector_bytes

    def took_ns(sectors: int) -> float:
        ends = table.subject.ask_each(asked, "read", sectors * table.sector_bytes).end_ns
        return _window(ends[1::2] - ends[::2], table.rotation.period_ns)[0]

    waited_ns = took_ns(count) - took_ns(1) + sector_ns - (count - 1) * bus_sector_ns
    return float(np.clip(waited_ns / sector_ns / count, 0.0, 1.0))


def _within_a_track(found: TrackMap, drawn: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Pairs whose second sector lies before the first in the same track, where no reading ahead has it.

    Half of them end at the track's first sector, which comes by when the command might just be too late. By then what
    is read ahead of the first has not left the track; elsewhere it may have, and the head must be brought back.
    """
    one = drawn.integers(0, len(found.seen), _PAIRS)
    begins, lengths = (np.array([getattr(track, key) for track in found.seen])[one] for key in ("first", "sectors"))
    is_near = drawn.random(_PAIRS) < 0.5
    shares = np.where(is_near, 1 - _NEAR_TURNS * drawn.random(_PAIRS), drawn.random(_PAIRS))
    back = np.clip((shares * lengths).astype(np.int64), 1, lengths - 1)
    low = np.where(is_near, 0, drawn.integers(0, lengths - back))
    return begins + low + back, begins + low


def _apart(
    table: Turntable, found: TrackMap, drawn: np.random.Generator, distance: int, room: int = 0
) -> tuple[Numbers, Numbers]:
    """Pairs so many tracks apart, in either direction: from a known track and in its zone, or to the nearest.

    ``room``: so many sectors from the end of a known track.
    """
    ends = [next(zone.end for zone in found.zones if zone.first <= one.first < zone.end) for one in found.seen]
    near = [one for one, end in zip(found.seen, ends, strict=True) if one.first + (distance + 2) * one.sectors < end]
    if near:
        at = drawn.integers(0, len(near), _PAIRS)
        begins, lengths = (np.array([getattr(track, key) for track in near])[at] for key in ("first", "sectors"))
        one, other = (begins + drawn.integers(0, lengths - room) for _ in range(2))
        other = other + distance * lengths
    else:
        low = drawn.integers(0, max(1, found.tracks - distance), _PAIRS)
        one, other = (_sector_of(table, found, drawn, track) for track in (low, low + distance))
    swapped = drawn.random(_PAIRS) < 0.5
    return np.where(swapped, other, one), np.where(swapped, one, other)


def _sector_of(table: Turntable, found: TrackMap, drawn: np.random.Generator, tracks: Numbers) -> Numbers:
    """A sector of each of these tracks."""
    before = np.concatenate([[0], np.cumsum([zone.tracks for zone in found.zones])[:-1]])
    at = np.searchsorted(before, tracks, side="right") - 1
    firsts, lengths = (
        np.array([getattr(zone, key) for zone in found.zones])[at] for key in ("first", "sectors_per_track")
    )
    sectors: Numbers = firsts + (tracks - before[at]) * lengths + drawn.integers(0, lengths)
    return np.minimum(sectors, table.sectors - 1)


def _window(between: Figures, period_ns: float) -> tuple[float, float]:
    """Where the revolution begins that holds the most of these times, and within what it could as well."""
    rising = np.sort(between)
    begins = np.arange(max(0.0, rising[0] - period_ns), rising[-1], _GRID_NS)
    inside = np.searchsorted(rising, begins + period_ns) - np.searchsorted(rising, begins)
    best = np.flatnonzero(inside == inside.max())
    # Of several stretches the longest: between two times of a few pairs there is always another.
    stretches = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(stretches, key=len)
    return float(begins[longest].mean()), float(_GRID_NS * len(longest))


def _rising(values: Figures) -> Figures:
    """The nearest values that do not fall (pools of neighbours that do)."""
    pools: list[list[float]] = []
    for value in values:
        pools.append([float(value), 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [[(a * m + b * n) / (m + n), m + n]]
    return np.concatenate([np.full(int(count), mean) for mean, count in pools])

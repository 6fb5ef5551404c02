"""Where the tracks of a disk are: how long they are, in which zones, and how they are turned against one another.

Within a track the angle grows evenly with the address; at its end it jumps by the skew. From one jump to the next is a
track, to the sector.

Invariants:

- The length of a track is a count of sectors, never an average.
- Where jumps cannot be told from noise there is no map, and no disk is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, mode

import numpy as np

from raidlab.measure.fit.rotation import Turntable, wrapped
from raidlab.measure.fit.timed import Figures, Numbers

PLACES = 48
# Steps of so many sectors at most, and of so much of a revolution: a track is seen in many of them.
_STEPS, _MOST_STEP, _STEP_TURNS = 128, 64, 1 / 32
# A jump of fewer standard deviations of an angle is none.
_JUMP_DEVIATIONS = 8.0
_LEAST_JUMP = 0.01
# Tracks on end whose skews are compared, so that cylinders of up to a third as many heads are seen three times.
_TRACKS_ON_END = 81
_SKEW_PLACES = 6
_SHIFTS = (0.0, 1 / 3, 2 / 3)
_MOST_ROUNDS = 40
# Short tracks have many jumps, of which two are enough; one may have been none.
_MOST_EDGES = 4
# A track is a revolution by its slope, too, which is known so well.
_LENGTH_ALIKE = 0.05
# A zone's end is known well enough: of a modern disk's tracks, one in ten thousand.
_NEAR_TRACKS = 64


@dataclass(frozen=True)
class Track:
    """A track that was found: its first sector, how many it has, and the skew from the track before it."""

    first: int
    sectors: int
    skew: float
    """In revolutions."""


@dataclass(frozen=True)
class FoundZone:
    """Addresses with tracks of one length, and what was found of them."""

    first: int
    end: int
    sectors_per_track: int
    skew: float

    @property
    def tracks(self) -> int:
        """How many there are, to the nearest."""
        return max(1, round((self.end - self.first) / self.sectors_per_track))


@dataclass(frozen=True)
class TrackMap:
    """A disk's addresses as tracks."""

    zones: tuple[FoundZone, ...]
    heads: int
    """1 where no head's skew differs: which tracks share a cylinder is then not to be seen."""
    cylinder_skew: float
    """In revolutions; that of all tracks where there is one skew only."""
    heads_seen: bool
    seen: tuple[Track, ...]
    """Tracks whose first sector is known; the first of a cylinder each, where heads are seen."""

    @property
    def tracks(self) -> int:
        """How many there are."""
        return sum(zone.tracks for zone in self.zones)


def track_map(table: Turntable) -> TrackMap | None:
    """The map of a disk; None where tracks cannot be told apart."""
    room = table.sectors - 2 * _STEPS * _MOST_STEP
    places = [int(room * (i + 0.5) / PLACES) for i in range(PLACES)]
    step = _step(table, places)
    found = _tracks_at(table, [0, *places, room + _STEPS * _MOST_STEP // 2], step)
    known = {track.first: track for track in found if track is not None}
    if len(known) < PLACES * 3 // 4:
        return None
    seen = sorted(known.values(), key=lambda one: one.first)
    ends = sorted(_zone_ends(table, known, step).values(), key=lambda one: one.first)
    return _with_heads(table, _zones(ends, table.sectors), seen)


def _step(table: Turntable, places: Sequence[int]) -> int:
    """Sectors from step to step: a small part of a track, long or short."""
    begins, step = np.array(places), 1
    before = table.angles(begins)
    while step < _MOST_STEP:
        turns = np.nanmedian(wrapped(table.angles(begins + 2 * step) - before))
        if turns > _STEP_TURNS:
            break
        step *= 2
    return step


def _tracks_at(table: Turntable, places: Sequence[int], step: int) -> list[Track | None]:
    """The track after each place."""
    offsets = step * np.arange(_STEPS)
    angles = np.empty((_STEPS, len(places)))
    # Step by step over all places, so that no two reads in a row are near each other.
    for begin in range(0, _STEPS, 16):
        several = [np.array(places) + offset for offset in offsets[begin : begin + 16]]
        angles[begin : begin + 16] = _by_rows(table, several, repeats=1)
    brackets = [_jumps(angles[:, i], table.rotation.noise) for i in range(len(places))]
    edges = [
        _Edge(i, places[i] + step * jump, places[i] + step * (jump + 1), bracket[0] / step)
        for i, bracket in enumerate(brackets)
        if bracket is not None
        for jump in bracket[1][:_MOST_EDGES]
    ]
    if not edges:
        return [None] * len(places)
    _bisect(table, edges)
    least = max(_LEAST_JUMP, _JUMP_DEVIATIONS * table.rotation.noise) / 2
    real = [one for one in edges if abs(wrapped(np.array(one.jump - one.slope))) > least]
    return [_first_track([one for one in real if one.place == i]) for i in range(len(places))]


def _first_track(edges: Sequence[_Edge]) -> Track | None:
    """Between the first two edges that are a revolution apart."""
    for first, second in pairwise(edges):
        sectors = second.high - first.high
        if abs(sectors * first.slope - 1) < _LENGTH_ALIKE:
            return Track(first.high, sectors, float(wrapped(np.array(first.jump - 1 / sectors))) % 1.0)
    return None


def _by_rows(table: Turntable, rows: Sequence[Numbers], repeats: int = 3) -> Figures:
    return table.angles(np.concatenate(rows), repeats).reshape(len(rows), -1)


def _jumps(angles: Figures, noise: float) -> tuple[float, list[int]] | None:
    """The slope of angle over steps, and after which steps the angle jumps; None where too little was seen."""
    steps = wrapped(np.diff(angles))
    seen = steps[~np.isnan(steps)]
    if len(seen) < _STEPS // 2:
        return None
    middle = float(np.median(seen % 1.0))
    away = np.nan_to_num(wrapped(steps - middle))
    least = max(_LEAST_JUMP, _JUMP_DEVIATIONS * noise)
    # There and back again is a completion that was seen late.
    back = np.flatnonzero((np.abs(away[:-1]) > least) & (np.abs(away[:-1] + away[1:]) < least))
    away[back], away[back + 1] = 0.0, 0.0
    return middle, [int(i) for i in np.flatnonzero(np.abs(away) > least)]


@dataclass
class _Edge:
    """The first sector of a track is after `low` and at most `high`."""

    place: int
    low: int
    high: int
    slope: float
    low_angle: float = np.nan
    high_angle: float = np.nan

    @property
    def jump(self) -> float:
        """From the last sector of a track to the first of the next."""
        return self.high_angle - self.low_angle


def _bisect(table: Turntable, edges: Sequence[_Edge]) -> None:
    """Narrow each down to two neighbouring sectors."""
    ends = _by_rows(table, [np.array([one.low for one in edges]), np.array([one.high for one in edges])])
    for one, low, high in zip(edges, ends[0], ends[1], strict=True):
        one.low_angle, one.high_angle = float(low), float(high)
    while wide := [one for one in edges if one.high - one.low > 1]:
        middles = np.array([(one.low + one.high) // 2 for one in wide])
        for one, middle, angle in zip(wide, middles, table.angles(middles), strict=True):
            as_low = abs(wrapped(angle - one.low_angle - one.slope * (middle - one.low)))
            as_high = abs(wrapped(angle - one.high_angle + one.slope * (one.high - middle)))
            if as_low < as_high:
                one.low, one.low_angle = int(middle), float(angle)
            else:
                one.high, one.high_angle = int(middle), float(angle)


def _zone_ends(table: Turntable, known: dict[int, Track], step: int) -> dict[int, Track]:
    """Narrow down where the length changes, until it is known to a few tracks.

    Sectors a track's length apart lie a skew apart. Which of the two lengths fits says on which side the middle is;
    where neither does, there is another zone between, and its tracks are measured.
    """
    for _ in range(_MOST_ROUNDS):
        tracks = sorted(known.values(), key=lambda one: one.first)
        gaps = [
            (left, right)
            for left, right in pairwise(tracks)
            if left.sectors != right.sectors and right.first - left.first > _NEAR_TRACKS * left.sectors
        ]
        if not gaps:
            break
        middles = [(left.first + right.first) // 2 for left, right in gaps]
        sides = _sides(table, gaps, middles)
        for (left, right), middle, side in zip(gaps, middles, sides, strict=True):
            if side is not None:
                known[middle] = Track(middle, (left, right)[side].sectors, (left, right)[side].skew)
        others = [middle for middle, side in zip(middles, sides, strict=True) if side is None]
        for middle, track in zip(others, _tracks_at(table, others, step) if others else [], strict=True):
            known[middle] = track or Track(middle, 0, 0.0)
        known = {first: one for first, one in known.items() if one.sectors}
        if others and all(middle not in known for middle in middles):
            break
    return known


def _sides(table: Turntable, gaps: Sequence[tuple[Track, Track]], middles: Sequence[int]) -> list[int | None]:
    """On which side of each gap its middle is: as the track before it (0), after it (1), or neither."""
    rows = []
    for shift in _SHIFTS:
        begins = np.array([m + int(shift * left.sectors) for m, (left, _) in zip(middles, gaps, strict=True)])
        rows += [begins, *(begins + np.array([pair[side].sectors for pair in gaps]) for side in (0, 1))]
    angles = _by_rows(table, rows, repeats=1)
    found: list[int | None] = []
    for i, gap in enumerate(gaps):
        away = [
            float(
                np.median([abs(wrapped(angles[3 * k + 1 + s, i] - angles[3 * k, i] - gap[s].skew)) for k in range(3)])
            )
            for s in (0, 1)
        ]
        side = int(away[1] < away[0])
        found.append(side if away[side] < max(_LEAST_JUMP, _JUMP_DEVIATIONS * table.rotation.noise) / 2 else None)
    return found


def _zones(tracks: Sequence[Track], sectors: int) -> list[FoundZone]:
    groups: list[list[Track]] = []
    for one in tracks:
        if groups and groups[-1][0].sectors == one.sectors:
            groups[-1].append(one)
        else:
            groups.append([one])
    ends = [(a[-1].first + b[0].first) // 2 for a, b in pairwise(groups)]
    return [
        FoundZone(first, end, group[0].sectors, median(one.skew for one in group))
        for group, first, end in zip(groups, [0, *ends], [*ends, sectors], strict=True)
    ]


def _with_heads(table: Turntable, zones: Sequence[FoundZone], tracks: Sequence[Track]) -> TrackMap:
    """Of tracks on end those whose skew differs begin a cylinder, and there are as many heads between."""
    some = list(tracks)[:: max(1, len(tracks) // _SKEW_PLACES)][:_SKEW_PLACES]
    rows = [np.array([one.first + one.sectors * i + one.sectors // 2 for one in some]) for i in range(_TRACKS_ON_END)]
    skews = wrapped(np.diff(_by_rows(table, rows), axis=0)) % 1.0
    usual = float(np.nanmedian(skews))
    least = max(_JUMP_DEVIATIONS * table.rotation.noise, 0.003)
    heads, cylinder, first = [], [], []
    for i, one in enumerate(some):
        differs = np.flatnonzero(np.abs(wrapped(skews[:, i] - np.nanmedian(skews[:, i]))) > least)
        if len(differs) >= 3:
            heads.append(mode(int(gap) for gap in np.diff(differs)))
            cylinder.append(float(np.median(skews[differs, i])))
            first.append(Track(one.first + one.sectors * (int(differs[0]) + 1), one.sectors, one.skew))
    if len(heads) <= len(some) // 2 or mode(heads) < 2:
        return TrackMap(tuple(zones), 1, usual, heads_seen=False, seen=tuple(tracks))
    right = [i for i, count in enumerate(heads) if count == mode(heads)]
    even = tuple(FoundZone(one.first, one.end, one.sectors_per_track, usual) for one in zones)
    begins = tuple(first[i] for i in right)
    return TrackMap(even, mode(heads), median(cylinder[i] for i in right), heads_seen=True, seen=begins)

"""The angle of a sector: when its read is complete, modulo a revolution.

Reference: B. Worthington, G. Ganger, Y. Patt and J. Wilkes, *On-line extraction of SCSI disk drive parameters*,
SIGMETRICS 1995: completions of one sector come whole revolutions apart.

Invariants:

- An angle is that of the sector's end, with all that comes after it (the bus, the host): the same for every read.
- Lists of requests have clocks of their own; the sectors of reference with which each begins say how they are apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raidlab.measure.fit.timed import Figures, Numbers, TimedSubject

# From 15,000 revolutions a minute and some more down to 3,600.
SHORTEST_NS, LONGEST_NS = 3.0e6, 17.0e6
PERIODIC = 0.5
# More than buffers of disks have segments, so that a read of one is not answered from the last.
REFERENCES = 96
_ROUNDS = 40
# A read that took less was not made.
_HIT_NS = 1.0e6
_ALIGNING = 8


@dataclass(frozen=True)
class Rotation:
    """How long a revolution is, and how sure that is."""

    period_ns: float
    coherence: float
    """The mean length of the sum of directions in which one sector ends: 1 where all are the same."""
    noise: float
    """The standard deviation of an angle, in revolutions, without the farthest."""
    angles: dict[int, float]
    """Of the sectors of reference."""


def wrapped(turns: Figures) -> Figures:
    """Differences of angles, from -1/2 to 1/2."""
    return (turns + 0.5) % 1.0 - 0.5


def rotation_of(subject: TimedSubject, sector_bytes: int, seed: int, rounds: int = _ROUNDS) -> Rotation:
    """Read sectors of reference again and again, and find the period at which all are complete."""
    drawn = random.Random(f"{seed}/rotation")
    sectors = subject.capacity_bytes // sector_bytes
    references = [drawn.randrange(sectors) * sector_bytes for _ in range(REFERENCES)]
    order: list[int] = []
    for _ in range(rounds):
        # Halves by themselves: no sector is asked for again before half of the others were.
        for half in (references[: REFERENCES // 2], references[REFERENCES // 2 :]):
            order += drawn.sample(half, len(half))
    seen = subject.ask_each(np.array(order, dtype=np.int64), "read", sector_bytes)
    made = seen.took_ns > _HIT_NS
    visits = [seen.end_ns[made & (seen.offset_bytes == one)] for one in references]
    pairs = [(one, ends) for one, ends in zip(references, visits, strict=True) if len(ends) > rounds // 2]
    if len(pairs) < REFERENCES // 2:
        return Rotation(0.0, 0.0, 0.0, {})
    period_ns = _period_ns([ends for _, ends in pairs], rounds)
    angles = {one: _mean_angle(ends / period_ns) for one, ends in pairs}
    away = np.concatenate([wrapped(ends / period_ns - angles[one]) for one, ends in pairs])
    noise = float(np.subtract(*np.percentile(away, [84, 16])) / 2)
    return Rotation(period_ns, _coherence([ends for _, ends in pairs], 1 / period_ns), noise, angles)


def _coherence(visits: list[Figures], per_ns: float) -> float:
    return float(np.mean([abs(np.exp(2j * np.pi * per_ns * ends).mean()) for ends in visits]))


def _period_ns(visits: list[Figures], rounds: int) -> float:
    """The longest period at which sectors come again: over a short time, which many periods fit, then over all."""
    begin, end = min(ends[0] for ends in visits), max(ends[-1] for ends in visits)
    least, most = 1 / LONGEST_NS, 1 / SHORTEST_NS
    span = (end - begin) / rounds * 5
    grid = np.arange(least, most, 0.2 / span)
    few = [ends[ends < begin + span] for ends in visits[:24]]
    few = [ends for ends in few if len(ends) > 2]
    sums = np.array([_coherence(few, per_ns) for per_ns in grid])
    best = float(grid[np.flatnonzero(sums >= 0.9 * sums.max())[0]])
    # The first that is near the most is on the slope of its peak.
    while True:
        width = 0.5 / span
        near = np.linspace(best - width, best + width, 41)
        some = [ends[ends < begin + span] for ends in visits]
        best = float(near[int(np.argmax([_coherence(some, per_ns) for per_ns in near]))])
        if span >= end - begin:
            break
        span = min(2 * span, end - begin)
    for _ in range(2):
        width /= 20
        near = np.linspace(best - width, best + width, 41)
        best = float(near[int(np.argmax([_coherence(visits, per_ns) for per_ns in near]))])
    return 1 / best


def _mean_angle(turns: Figures) -> float:
    middle = np.angle(np.exp(2j * np.pi * turns).mean()) / (2 * np.pi)
    return float((middle + np.median(wrapped(turns - middle))) % 1.0)


@dataclass
class Turntable:
    """A disk whose period is known: the angles at which sectors end."""

    subject: TimedSubject
    sector_bytes: int
    rotation: Rotation
    seed: int
    requests: int = 0
    spent_ns: float = 0.0

    @property
    def sectors(self) -> int:
        """How many there are."""
        return self.subject.capacity_bytes // self.sector_bytes

    def asked(self, lba: Numbers, op: Literal["read", "write"] = "read") -> tuple[Figures, Figures]:
        """Requests in this order: when each was complete on the clock of the references, and how long it took, in ns.

        Writes have a clock of their own: only what lies between them counts.
        """
        references = list(self.rotation.angles)[:: max(1, len(self.rotation.angles) // _ALIGNING)]
        asked = np.concatenate([np.array(references, dtype=np.int64), lba * self.sector_bytes])
        seen = self.subject.ask_each(asked, op, self.sector_bytes)
        self.requests += len(asked)
        self.spent_ns += float(seen.end_ns[-1] - seen.begin_ns[0])
        count = len(references)
        expected = np.array([self.rotation.angles[one] for one in references])
        made = seen.took_ns[:count] > _HIT_NS
        if not made.any():
            return seen.end_ns[count:], seen.took_ns[count:]
        apart = _mean_angle((seen.end_ns[:count] / self.rotation.period_ns - expected)[made])
        return seen.end_ns[count:] - apart * self.rotation.period_ns, seen.took_ns[count:]

    def angles(self, lba: Numbers, repeats: int = 3) -> Figures:
        """The angle of each of these sectors, in revolutions; not a number where a buffer answered.

        They are read in any order, among sectors anywhere: what was read before is out of the buffer then.
        """
        drawn = np.random.default_rng([self.seed, self.requests])
        several = lba[None, :].repeat(repeats, axis=0)
        filling = max(0, REFERENCES // 2 - len(lba))
        places, columns = [], []
        for row in several:
            order = drawn.permutation(len(row) + filling)
            padded = np.concatenate([row, drawn.integers(0, self.sectors, filling)])
            places.append(padded[order])
            columns.append(np.where(order < len(row), order, -1))
        ends, took = self.asked(np.concatenate(places))
        column = np.concatenate(columns)
        turns = ends / self.rotation.period_ns
        found = np.full(len(lba), np.nan)
        of_column = {index: turns[at] for index, at in _groups(column, took > _HIT_NS).items()}
        for index, some in of_column.items():
            found[index] = _mean_angle(some)
        return found


def _groups(column: Numbers, made: np.ndarray) -> dict[int, Numbers]:
    at = np.flatnonzero(made & (column >= 0))
    order = at[np.argsort(column[at], kind="stable")]
    values, starts = np.unique(column[order], return_index=True)
    return dict(zip((int(value) for value in values), np.split(order, starts[1:]), strict=True))

"""What a test would give, were the target such an array: simulated, once for all that load their members alike.

Invariants:

- A prediction is a run of the simulator. Where two arrays give their members the same shares of a test's reads, and the
  dies of flash drives theirs, one run serves both; writes are run for each array, but on members of the same shares of
  starts.
- The seed of a prediction is never that of the target, so that no draw is shared; but where requests begin may be what
  the target was asked for, which the probe has drawn itself (`Predictor.log_rate_at`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import NamedTuple, cast

import numpy as np

from raidlab.measure.probe.ask import AskedTest, ProbeTest, SimulatedBox, rate_in, rate_of, simulated_box
from raidlab.measure.probe.hypotheses import Hypothesis
from raidlab.reading import Plain

# A test's multiples before it begins on the same members again; of more, so many stand for all.
_MOST_MULTIPLES = 1024
_SEEDS = (1_000_003, 1_000_033)

# Shares are told apart to one in so many, and what a die has of its member to one in so many of an even share.
_PARTS, _PARTS_OF_EVEN = 64, 4
# Where members and dies come round again only after more multiples than these, all dies are met alike.
_MOST_OF_DIES = 4096

Signature = tuple[str, tuple[tuple[int, ...], ...]]


class Reach(NamedTuple):
    """Where a test's requests may begin."""

    period_bytes: int
    positions: tuple[int, ...]


@cache
def shares_of(test: Reach, one: Hypothesis) -> Signature:
    """How a test's starts are dealt to the members: what is the same loads them alike."""
    sets, places = one.shape.sets, one.shape.places
    if one.cycle_bytes:
        turns = one.cycle_bytes // math.gcd(one.cycle_bytes, test.period_bytes)
        step = max(1, turns // _MOST_MULTIPLES)
        # Not in step with anything that repeats in powers of two.
        step += step > 1 and step % 2 == 0
        starts = np.add.outer(np.arange(0, turns, step) * test.period_bytes, np.array(test.positions))
        counts = np.bincount(places[starts.ravel() // one.chunk_bytes % len(places)], minlength=len(sets))
    else:
        counts = np.ones(1, dtype=np.intp)
    shares = np.rint(_PARTS * counts / counts.sum()).astype(int)
    dealt = sorted((int(share), members) for share, members in zip(shares, sets, strict=True) if share)
    if not one.shape.has_copies:
        return "", tuple((share,) for share, _ in dealt)
    names: dict[int, int] = {}
    renamed = [(share, *(names.setdefault(member, len(names)) for member in members)) for share, members in dealt]
    return f"{one.shape.level} {one.shape.detail}", tuple(renamed)


class DieTurn(NamedTuple):
    """How a drive that was written in order deals its addresses to dies."""

    page_bytes: int
    """Of all planes of a die."""
    dies: int


def die_turn_of(member: Mapping[str, Plain]) -> DieTurn | None:
    """How a model of a flash drive deals them; nothing of other models."""
    if member["kind"] != "ssd":
        return None
    page, planes, channels, dies = (
        int(cast(float, member.get(key, 1))) for key in ("page_bytes", "planes_per_die", "channels", "dies_per_channel")
    )
    return DieTurn(page * planes, channels * dies)


@cache
def dies_of(test: Reach, one: Hypothesis, turn: DieTurn) -> tuple[tuple[int, ...], ...]:
    """How evenly a test's starts lie on the dies of each set of members, the busiest first; nothing where they do.

    What has never been overwritten lies where it was put first, and a period that comes back to one die finds it busy.
    """
    around = turn.page_bytes * turn.dies
    if one.cycle_bytes:
        around = one.cycle_bytes * around // math.gcd(around, one.shape.turn_rows * one.chunk_bytes)
    multiples = around // math.gcd(around, test.period_bytes)
    if multiples > _MOST_OF_DIES:
        return ()
    shape, chunk_bytes = one.shape, max(one.chunk_bytes, 1)
    starts = np.add.outer(np.arange(multiples) * test.period_bytes, np.array(test.positions)).ravel()
    place = shape.places[starts // chunk_bytes % len(shape.places)]
    die = shape.on_members(starts, chunk_bytes) // turn.page_bytes % turn.dies
    counts = np.bincount(place * turn.dies + die, minlength=len(shape.sets) * turn.dies).reshape(-1, turn.dies)
    parts = np.rint(_PARTS_OF_EVEN * turn.dies * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).astype(int)
    uneven = parts[(parts != _PARTS_OF_EVEN).any(axis=1) & parts.any(axis=1)]
    return tuple(sorted({tuple(sorted(map(int, row[row > 0]), reverse=True)) for row in uneven}))


def named_first(one: Hypothesis) -> Hypothesis:
    """Of two arrays that differ in the order of their members only, the one that stands for both."""
    if one.shape.detail != "parity_last":
        return one
    return replace(one, shape=replace(one.shape, detail="parity_first"))


@dataclass
class Predictor:
    """Predictions with members of one kind, each made once."""

    member: Mapping[str, Plain]
    rotating: bool
    stop: Callable[[], bool] = lambda: False
    """Asked before each run of the simulator, which may be thousands: where it says so, `KeyboardInterrupt`."""
    _known: dict[tuple[object, ...], float] = field(default_factory=dict)

    @cached_property
    def _die_turn(self) -> DieTurn | None:
        return die_turn_of(self.member)

    def log_rate(self, test: ProbeTest, one: Hypothesis) -> float:
        """The logarithm of the requests a second."""
        one, reach = named_first(one), Reach(test.period_bytes, test.positions)
        key: tuple[object, ...] = (test.op, test.size_bytes, test.depth, shares_of(reach, one))
        if self._die_turn is not None:
            key = (*key, dies_of(reach, one, self._die_turn))
        if test.op == "write":
            key = (*key, one, test.period_bytes, test.positions)
        if key not in self._known:
            self._known[key] = self._simulated(test, one)
        return self._known[key]

    def _simulated(self, test: ProbeTest, one: Hypothesis) -> float:
        seeds = _SEEDS[: 1 if self._die_turn is not None or test.op == "write" else 2]
        rates = [rate_of(self.box(one, seed), test, seed) for seed in seeds]
        return math.log(sum(rates) / len(rates))

    def log_rate_at(self, asked: AskedTest, one: Hypothesis) -> float:
        """The logarithm of the requests a second where those of a target began, and as many as were counted."""
        one = named_first(one)
        box, test = self.box(one), asked.test
        room, starts = box.capacity_bytes - test.size_bytes, asked.starts
        if max(starts) > room:
            # An array that is smaller is asked where it is the same to it.
            turn = math.lcm(max(one.cycle_bytes, 1), test.period_bytes)
            whole = room // turn * turn
            if not whole:
                # Of members so small that this is nowhere, any places must do.
                return self.log_rate(test, one)
            starts = [start % whole for start in starts]
        return math.log(rate_in(box.ask(test, starts, asked.counted)))

    def box(self, one: Hypothesis, seed: int = _SEEDS[0]) -> SimulatedBox:
        """The array itself, to be asked."""
        if self.stop():
            raise KeyboardInterrupt
        return simulated_box(one.tree, self.member, one.policy(rotating=self.rotating), seed)

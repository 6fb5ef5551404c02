"""What is asked of a device that is fitted: closed loops, some of which are held out, and requests at random times.

Sizes and depths are those of common sweeps (ezFIO, SNIA's performance test specification), thinned to what a minute
or two can hold. What is held out lies between them, in size and in depth, so that it tests what is interpolated and not
what was noted down.

Invariant: the plan depends on what may be done and on how long, never on what was found.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

from raidlab.errors import InputError
from raidlab.run.volumes import usable_bytes
from raidlab.study.units import format_bytes, format_time_ns
from raidlab.study.workload import DrawnRequests, FixedSize, SequentialAddress, Step, UniformAddress

KIB = 1024
ROUNDS = 2
# Less of one situation is a moment, not a measurement.
LEAST_SLOT_NS = 100_000_000
# A device that works in beats, such as one that is limited ten times a second, would otherwise begin and end every turn
# at the same point of a beat, and all be wrong by as much.
_UNEVEN, _WARM_UP_UNEVEN = 0.2, 0.5
# The last turn of random 4 KiB at depth 4 is so many times as long: what passes in a moment does not pass for good.
_SUSTAINED = 6
# The share of a slot that is not counted.
_WARM_UP_SHARE = 0.15

Op = Literal["read", "write", "mixed"]
Placing = Literal["random", "sequential", "rewrite"]
# Of the most that closed loops got: enough to queue, and not so much that it never ends.
ARRIVAL_SHARE = 0.6
# The share of reads where both are asked for to be predicted, as in most mixes that are published; and those that are
# fitted, on both sides of it.
MIXED_READS = 0.7
_FITTED_READS = (0.3, 0.8)

_SIZES = (4 * KIB, 32 * KIB, 256 * KIB)
_DEPTHS = (1, 2, 4, 8, 16, 32)
_LARGE = 1024 * KIB
_QUICK_SIZES, _QUICK_DEPTHS = (4 * KIB, 128 * KIB), (1, 4, 16, 32)
# How far requests go, as shares of the device, and at which sizes and depths: each also measured all over it.
_NEAR_SPANS, _QUICK_NEAR_SPANS = (1 / 4096, 1 / 256, 1 / 16), (1 / 256, 1 / 16)
_NEAR, _QUICK_NEAR = ((4 * KIB, 256 * KIB), (1, 8)), ((4 * KIB, 128 * KIB), (1, 16))
_NEAR_HELD_OUT = 1 / 64
_MIXED, _QUICK_MIXED = ((4 * KIB, 12 * KIB, 48 * KIB, 256 * KIB), (1, 4, 16, 32)), ((4 * KIB, 128 * KIB), (1, 8))
# As deep as the others: beyond the deepest, times grow no more.
_REWRITTEN = (4 * KIB, 64 * KIB), (1, 8, 32)
# So many requests of a loop fit into the part of a device to which it keeps.
_LEAST_APART = 4


@dataclass(frozen=True)
class Situation:
    """One kind of request, and how it is offered."""

    op: Op
    place: Placing
    size_bytes: int
    depth: int
    held_out: bool = False
    """Whether it is kept from the fit, to be predicted."""
    arrivals: bool = False
    """Whether requests come at random, at `ARRIVAL_SHARE` of what the device can do, instead of in a closed loop."""
    span: float = 1.0
    """The share of the device, from its front, to which requests keep: they are no farther from one another."""
    reads: float | None = None
    """The share of reads where both are asked for: ``op`` is then of which of them it is."""

    @property
    def name(self) -> str:
        """In words, such as ``random reads, 4 KiB, depth 8``."""
        what = {"read": "reads", "write": "writes", "mixed": "mix"}[self.op]
        of = f"{self.place} {what}" if self.place != "rewrite" else "writes of what was just read"
        of = of if self.reads is None else f"{of} among {100 * self.reads:.0f} % reads"
        how = "at random times" if self.arrivals else f"depth {self.depth}"
        within = f" in 1/{1 / self.span:.0f} of it" if self.span < 1 else ""
        return f"{of}{within}, {format_bytes(self.size_bytes)}, {how}"

    @property
    def is_anywhere(self) -> bool:
        """Whether requests of one kind go to random places all over the device."""
        return self.place == "random" and self.span == 1 and self.reads is None

    @property
    def read_share(self) -> float:
        """The share of reads."""
        return self.reads if self.reads is not None else {"read": 1.0, "write": 0.0, "mixed": MIXED_READS}[self.op]

    def requests(self) -> DrawnRequests:
        """What is asked for, as a cell has it."""
        sequential = self.place == "sequential"
        again = [Step(op="read"), Step(op="write", same_extent_as=0)] if self.place == "rewrite" else None
        return DrawnRequests(
            read=self.read_share,
            size=FixedSize(kind="fixed", bytes=self.size_bytes),
            address=SequentialAddress(kind="sequential") if sequential else UniformAddress(kind="uniform"),
            span=self.span,
            task=again,
        )


@dataclass(frozen=True)
class Slot:
    """One turn of a situation."""

    situation: Situation
    turn: int
    warmup_ns: int
    measure_ns: int
    rate_per_s: float | None = None
    """Of requests that come at random."""


def situations(*, writes: bool, quick: bool, size_bytes: int) -> list[Situation]:
    """All that are measured of a device of this size: those to fit by, then those held out."""
    ops: tuple[Op, ...] = ("read", "write") if writes else ("read",)
    found: list[Situation] = []
    for op in ops:
        found += [Situation(op, *at) for at in _of_one_kind(quick)]
        found += _near(op, quick, size_bytes)
    if writes:
        found += [Situation("write", "rewrite", size, depth) for size, depth in product(*_REWRITTEN)]
    for op in ops:
        found += [Situation(op, *at, held_out=True) for at in _held_out(quick)]
        held = Situation(op, "random", 16 * KIB, 1, held_out=True, span=_NEAR_HELD_OUT)
        found += [held] if any(one.span < 1 for one in found) and _is_apart(held, size_bytes) else []
    if writes:
        mixed = product(_FITTED_READS, *(_QUICK_MIXED if quick else _MIXED))
        found += [Situation("mixed", "random", size, depth, reads=reads) for reads, size, depth in mixed]
        between = ((4 * KIB, 6), (64 * KIB, 4)) if quick else ((4 * KIB, 1), (16 * KIB, 12), (64 * KIB, 6))
        found += [Situation("mixed", "random", size, depth, held_out=True) for size, depth in between]
    found += [Situation(op, "random", 4 * KIB, depth=0, arrivals=True) for op in ops]
    least = least_bytes(quick)
    if size_bytes < usable_bytes(least):
        message = f"holds {format_bytes(size_bytes)}: requests to it would be on one another"
        raise InputError.one("TARGET", message, accepted=f"at least {format_bytes(least)}")
    return found


def least_bytes(quick: bool) -> int:
    """How much a target holds at least, the last page of a file too, so that requests are not on one another."""
    return _LEAST_APART * max(size * depth for _, size, depth in (*_of_one_kind(quick), *_held_out(quick)))


def _of_one_kind(quick: bool) -> Iterator[tuple[Placing, int, int]]:
    if quick:
        yield from product(("random",), _QUICK_SIZES, _QUICK_DEPTHS)
        yield from product(("sequential",), _QUICK_SIZES, (1, 8))
        return
    yield from product(("random",), _SIZES, _DEPTHS)
    yield from product(("random",), (_LARGE,), (1, 4, 16))
    yield from product(("sequential",), (4 * KIB, 64 * KIB, _LARGE), (1, 4, 16))


def _near(op: Op, quick: bool, size_bytes: int) -> list[Situation]:
    """Requests that keep to a part of the device: every part in which they are not on one another."""
    (sizes, depths), spans = (_QUICK_NEAR, _QUICK_NEAR_SPANS) if quick else (_NEAR, _NEAR_SPANS)
    found = []
    for span in spans:
        near = [Situation(op, "random", size, depth, span=span) for size, depth in product(sizes, depths)]
        found += near if all(_is_apart(one, size_bytes) for one in near) else []
    return found


def _is_apart(one: Situation, size_bytes: int) -> bool:
    return size_bytes * one.span >= _LEAST_APART * one.size_bytes * one.depth


def _held_out(quick: bool) -> Iterator[tuple[Placing, int, int]]:
    yield from (("random", 16 * KIB, 1), ("random", 4 * KIB, 6), ("random", 64 * KIB, 3), ("sequential", 16 * KIB, 2))
    if not quick:
        yield from (("random", 16 * KIB, 24), ("random", 128 * KIB, 6), ("random", 512 * KIB, 2))
        yield from (("random", 8 * KIB, 12), ("sequential", 256 * KIB, 8))


def slots(asked: list[Situation], budget_ns: int, seed: int) -> list[Slot]:
    """Turns of every situation, each round in an order of its own; refuses a budget that is too short."""
    sustained = {one for one in asked if one.place == "random" and one.size_bytes == 4 * KIB and one.depth == 4}
    turns = ROUNDS * len(asked) + len(sustained) * (_SUSTAINED - 1)
    each_ns = budget_ns // turns
    if each_ns < LEAST_SLOT_NS:
        least = format_time_ns(LEAST_SLOT_NS * turns)
        message = f"{len(asked)} situations are measured twice, and this leaves {format_time_ns(each_ns)} for each turn"
        raise InputError.one("--budget", message, value=f"'{format_time_ns(budget_ns)}'", accepted=f"at least {least}")
    warmup_ns = int(each_ns * _WARM_UP_SHARE)
    found = []
    for turn in range(ROUNDS):
        drawn = random.Random(f"{seed}/{turn}")
        order = list(asked)
        drawn.shuffle(order)
        # Their rate is known when the loops are done.
        order.sort(key=lambda one: one.arrivals)
        for one in order:
            warmed_ns, measured_ns = (
                int(length * drawn.uniform(1 - uneven, 1 + uneven))
                for length, uneven in ((warmup_ns, _WARM_UP_UNEVEN), (each_ns - warmup_ns, _UNEVEN))
            )
            longer = _SUSTAINED if one in sustained and turn == ROUNDS - 1 else 1
            found.append(Slot(one, turn, warmed_ns, longer * measured_ns))
    return found

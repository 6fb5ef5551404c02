"""Limits on the rate at which a device takes requests: token buckets, as clouds and cgroups put them before a device.

What gives a limit away: the same rate at different sizes and depths, while most requests take far less than their share
of it would be. They pass on credit, and then one waits for all of them. A slow device gives the same rate too, but each
request takes its share.

Invariants:

- A limit is said only where several situations of different sizes or depths agree on it.
- What is left for the table are the times of requests that did not wait at the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np

from raidlab.histogram import Histogram
from raidlab.measure.fit.situations import Op
from raidlab.measure.fit.table import Measured
from raidlab.reading import Plain

Unit = Literal["ops_s", "mb_s"]

# Rates so near to each other are one; at least so many situations must agree.
_ALIKE = 0.06
_LEAST_SITUATIONS = 4
# A request that took less than this share of the mean passed at once; so many of them do where there is a credit.
_AT_ONCE = 0.5
_LEAST_AT_ONCE = 0.5
# Fewer are no distribution.
_LEAST_COUNT = 20


@dataclass(frozen=True)
class RateLimit:
    """A limit that was found."""

    op: Op
    unit: Unit
    per_s: float
    """Operations, or millions of bytes, a second."""
    interval: tuple[float, float]
    """The least and the most that situations at the limit had."""
    burst: int
    """Operations, or bytes, that pass on credit."""
    at: tuple[Measured, ...]
    """The situations at the limit."""
    after_rest: bool = False
    """Whether it was found by a burst after a rest."""
    full_per_s: float | None = None
    """Of credit that was used up in minutes: the rate while there was some."""

    def table(self) -> dict[str, Plain]:
        """As a device file has it."""
        burst = "burst_ops" if self.unit == "ops_s" else "burst_bytes"
        both: dict[str, Plain] = {self.unit: float(f"{self.per_s:.5g}"), burst: self.burst}
        return both if self.op == "mixed" else both | {"only": f"{self.op}s"}

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        low, high = self.interval
        if self.full_per_s is not None:
            return (
                f"{self.full_per_s:.5g} requests a second until {self.burst} had passed on credit, then "
                f"{self.per_s:.5g} ({low:.5g} to {high:.5g}); that reads and writes share it is assumed"
            )
        if self.after_rest:
            what = "reads and writes together" if self.op == "mixed" else f"{self.op}s"
            burst, rate = ("requests", "a second") if self.unit == "ops_s" else ("bytes", "MB/s")
            return f"{what}: {self.burst} {burst} passed at once after a rest, and from then on {self.per_s:.5g} {rate}"
        unit = "a second" if self.unit == "ops_s" else "MB/s"
        return (
            f"{self.op}s: {len(self.at)} situations had {low:.4g} to {high:.4g} {unit}, whatever their size and depth"
        )


def rate_limits(fitted: Sequence[Measured]) -> list[RateLimit]:
    """The limits that closed loops show, by operation."""
    found = []
    for op in ("read", "write"):
        loops = [one for one in fitted if one.situation.op == op and not one.situation.arrivals]
        # A rewrite's rate is that of its reads too.
        loops = [one for one in loops if one.situation.place != "rewrite"]
        for unit, value in _UNITS:
            limit = _limit(op, unit, loops, value)
            if limit is not None:
                found.append(limit)
                loops = [one for one in loops if one not in limit.at]
    return found


def relieved(fitted: Sequence[Measured], limits: Sequence[RateLimit]) -> list[Measured]:
    """The same situations with the times of requests that did not wait at a limit; those without such are left out."""
    held = {limit.op for limit in limits}
    found = [_passed(one) if one.situation.op in held and not one.situation.arrivals else one for one in fitted]
    return [one for one in found if one is not None]


def relieved_mixes(mixes: Sequence[Measured], limits: Sequence[RateLimit]) -> list[Measured]:
    """The same of mixes, of which those at a limit are left out.

    One kind that comes seldom enough waits all the same where the other is held: what a lump of it lets pass asks for
    more of both at once, and that is too many for the moment.
    """
    found = []
    for one in mixes:
        if is_held(one, limits):
            continue
        is_limited = any(limit.op in (one.situation.op, "mixed") for limit in limits)
        has_waited = is_limited and _share_at_once(one) >= _LEAST_AT_ONCE
        found.append(_passed(one) if has_waited else one)
    return [one for one in found if one is not None]


def _passed(one: Measured) -> Measured | None:
    """A situation of only those requests that passed at once; None of too few."""
    turns = [_passed_at_once(turn.times, one.mean_ns) for turn in one.turns]
    if any(times.total < _LEAST_COUNT for times in turns):
        return None
    parts = zip(one.turns, turns, strict=True)
    eased = [
        replace(turn, times=times, mean_ns=_mean_ns(times), mean_of_all_ns=_mean_ns(times)) for turn, times in parts
    ]
    return replace(one, turns=tuple(eased))


def is_held(mix: Measured, limits: Sequence[RateLimit]) -> bool:
    """Whether one of the two kinds in a mix, or both together, came as often as a limit lets them."""
    asked = mix.situation
    share = asked.read_share if asked.op == "read" else 1 - asked.read_share
    for limit in limits:
        value = dict(_UNITS)[limit.unit](mix)
        if limit.op == "mixed":
            value /= share
        if limit.op in (asked.op, "mixed") and value > (1 - _ALIKE) * limit.per_s:
            return True
    return False


_UNITS: tuple[tuple[Unit, Callable[[Measured], float]], ...] = (
    ("ops_s", lambda one: one.rate_per_s),
    ("mb_s", lambda one: one.rate_per_s * one.situation.size_bytes / 1e6),
)


def _limit(op: Op, unit: Unit, loops: Sequence[Measured], value: Callable[[Measured], float]) -> RateLimit | None:
    """The rate that most situations agree on, if they are held back by it."""
    if len(loops) < _LEAST_SITUATIONS:
        return None
    around = max(loops, key=lambda one: sum(_is_alike(value(one), value(other)) for other in loops))
    at = [one for one in loops if _is_alike(value(around), value(one))]
    kinds = {(one.situation.size_bytes, one.situation.depth) for one in at}
    shallow = [one for one in at if one.situation.depth == 1]
    if len(kinds) < _LEAST_SITUATIONS or len({size for size, _ in kinds}) < 2 or not shallow:
        return None
    waiting = median(1 - _share_at_once(one) for one in shallow)
    if waiting > 1 - _LEAST_AT_ONCE or waiting == 0:
        return None
    burst = round(1 / waiting)
    # A turn begins when a request ends, and most end in a burst: it holds half a burst too many.
    values = [value(one) * (1 - len(one.turns) * burst / 2 / one.requests) for one in at]
    per_s = float(np.average(values, weights=[sum(turn.elapsed_ns for turn in one.turns) for one in at]))
    if unit == "mb_s":
        burst *= int(median(one.situation.size_bytes for one in shallow))
    return RateLimit(op, unit, per_s, (min(values), max(values)), burst, tuple(at))


def _is_alike(one: float, other: float) -> bool:
    return abs(one / other - 1) < _ALIKE


def _share_at_once(one: Measured) -> float:
    return _passed_at_once(one.times, one.mean_ns).total / one.times.total


def _passed_at_once(times: Histogram, mean_ns: float) -> Histogram:
    at_once = times.value_ns < _AT_ONCE * mean_ns
    return Histogram(times.value_ns[at_once], times.count[at_once])


def _mean_ns(times: Histogram) -> float:
    return float(np.average(times.value_ns.astype(np.float64), weights=times.count.astype(np.float64)))

"""Token buckets of a device that was left alone: so many requests pass at once, and from then on a rate.

After the change, requests done over time are a straight line. Its slope is the rate, and where it meets the beginning
is how many passed on credit. Credit that lasts for minutes or an hour, as that of a cloud's volume, shows in the same
way when a device is asked on until it is used up (`Drain`).

Invariants:

- A bucket is said only where requests slowed down to a steady rate, and did so again after a rest (a machine whose
  processors are taken away slows down once), and where both sizes that were tried agree on what is counted, requests or
  bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from raidlab.histogram import Histogram
from raidlab.measure.fit.limits import RateLimit
from raidlab.measure.fit.situations import Op, Situation
from raidlab.measure.fit.table import Measured, Sample
from raidlab.measure.fit.timed import Figures, TimedSubject

KIB = 1024
# Size and number of requests.
_SMALL, _LARGE = (4 * KIB, 3000), (256 * KIB, 1600)
# Slower than this a device needs no bucket to be so.
_SLOW_NS, _FIRST = 3e6, 100
_SLOWER = 1.5
_ALIKE = 0.1
_MOST_REST_NS = 10_000_000_000
# What is dealt out in lumps is dealt out anew after that.
_LEAST_REST_NS = 1_000_000_000
# Fewer are no burst.
_FEW = 8
# So many bursts at most, of which two must agree.
_BURSTS = 3
# What took more than this share of the time between requests waited.
_WAITED = 0.5


@dataclass(frozen=True)
class TimedBurst:
    """Requests of one size, one after another: what the last half of them came to."""

    per_s: float
    on_credit: float
    """How many passed before the rate held."""
    at_a_time: float
    """How many passed between one that waited and the next: cgroups deal out what passes by the tenth of a second."""
    spread: float
    """How far the rates of the third and the last quarter are apart, from one that waited to another."""
    passed_ns: Figures
    """Times of those that passed; of all where none had to wait."""
    slowed: bool
    """Whether a rate held at last, and not from the beginning."""


@dataclass(frozen=True)
class FoundBuckets:
    """What holds an operation, and how long its requests take while nothing does."""

    op: Op
    limits: tuple[RateLimit, ...]
    passed_ns: dict[int, Figures]
    """By size."""

    def relieved(self) -> list[Measured]:
        """The requests that passed, as situations."""
        found = []
        for size, took_ns in self.passed_ns.items():
            values, counts = np.unique(took_ns.astype(np.uint64), return_counts=True)
            times = Histogram(values, counts.astype(np.uint64))
            mean_ns, count = float(took_ns.mean()), len(took_ns)
            situation = Situation(self.op, "random", size, 1)
            sample = Sample(situation, 0, count, int(took_ns.sum()), mean_ns, mean_ns, times)
            found.append(Measured(situation, (sample,)))
        return found


@dataclass(frozen=True)
class Drain:
    """How many requests were done in each second while a device was asked on, and before."""

    before: int
    """Requests since the fit began, which were paid for by the same credit."""
    before_ns: int
    """How long they took."""
    end_ns: tuple[int, ...]
    requests: tuple[int, ...]

    def limit(self) -> RateLimit | None:
        """What holds it when credit is used up; None where its rate did not fall from a steady one to another."""
        ends, done = np.array(self.end_ns, dtype=np.float64), np.array(self.requests, dtype=np.float64)
        rates = 1e9 * done / np.diff(ends, prepend=0.0)
        if len(rates) < 2 * _FEW_SECONDS:
            return None
        # The fall leaves the least of the squares on both sides of it.
        count, sums = np.arange(1, len(rates)), np.cumsum(rates)[:-1]
        explained = sums**2 / count + (rates.sum() - sums) ** 2 / (len(rates) - count)
        at = int(np.argmax(explained)) + 1
        parts = rates[:at], rates[at:]
        if min(map(len, parts)) < _FEW_SECONDS or not all(_is_steady(part) for part in parts):
            return None
        full, empty = (float(np.median(part)) for part in parts)
        if empty > (1 - _ALIKE) * full:
            return None
        earlier = max(0.0, self.before - empty * self.before_ns / 1e9)
        credit = earlier + float(done[:at].sum()) - empty * ends[at - 1] / 1e9
        interval = tuple(float(one) for one in np.percentile(parts[1], [5, 95]))
        return RateLimit("mixed", "ops_s", empty, (interval[0], interval[1]), round(credit), (), full_per_s=full)


# Fewer seconds on either side of a fall are a machine that stalls.
_FEW_SECONDS = 10


def _is_steady(rates: Figures) -> bool:
    halves = (float(np.median(part)) for part in np.array_split(rates, 2))
    return abs(next(halves) / next(halves) - 1) < _ALIKE


def rate_buckets(subject: TimedSubject, op: Op, seed: int) -> FoundBuckets | None:
    """The buckets that hold reads, or writes; None where there are none."""
    large = _confirmed_burst(subject, op, *_LARGE, seed)
    if large is None:
        return None
    subject.rest(_rest_ns(_refilled_ns(large)))
    small = _confirmed_burst(subject, op, *_SMALL, seed)
    if small is None:
        return None
    sizes = _LARGE[0] / _SMALL[0]
    found = []
    counts_bytes = large.slowed and small.per_s > (1 + _ALIKE) * large.per_s
    if small.slowed and not (counts_bytes and abs(small.per_s / large.per_s / sizes - 1) < _ALIKE):
        found.append(_limit(op, small, None))
    if counts_bytes:
        found.append(_limit(op, large, _LARGE[0]))
    if not found:
        return None
    passed = {_SMALL[0]: small.passed_ns, _LARGE[0]: large.passed_ns}
    return FoundBuckets(op, tuple(found), {size: took for size, took in passed.items() if len(took) >= _FEW})


def device_buckets(subject: TimedSubject, seed: int, *, writes: bool) -> list[FoundBuckets]:
    """All of them; where reads and writes have the same, a mix tells whether they share it."""
    ops: tuple[Op, ...] = ("read", "write") if writes else ("read",)
    found = [one for op in ops if (one := rate_buckets(subject, op, seed)) is not None]
    if len(found) < 2 or not _are_alike(found[0].limits, found[1].limits):
        return found
    first = found[0].limits[0]
    size, count = _SMALL if first.unit == "ops_s" else _LARGE
    alone_per_s = first.per_s if first.unit == "ops_s" else first.per_s * 1e6 / size
    credit = first.burst if first.unit == "ops_s" else first.burst / size
    subject.rest(_rest_ns(int(1.2e9 * credit / alone_per_s)))
    mixed = _burst(subject, "mixed", size, count, seed)
    if mixed is None or mixed.per_s > (1 + _ALIKE) * alone_per_s:
        return found
    together: tuple[RateLimit, ...] = tuple(replace(limit, op="mixed") for limit in found[0].limits)
    return [replace(found[0], limits=together), replace(found[1], limits=())]


def _are_alike(one: tuple[RateLimit, ...], other: tuple[RateLimit, ...]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a.unit == b.unit and abs(a.per_s / b.per_s - 1) < _ALIKE for a, b in pairs)


def _limit(op: Op, burst: TimedBurst, size_bytes: int | None) -> RateLimit:
    """What holds requests, or bytes where each has so many."""
    per_s, on_credit = burst.per_s, max(1.0, burst.on_credit - 1)
    if size_bytes is not None:
        per_s, on_credit = per_s * size_bytes / 1e6, on_credit * size_bytes
    apart = burst.spread / 2
    interval = (per_s * (1 - apart), per_s * (1 + apart))
    return RateLimit(
        op, "ops_s" if size_bytes is None else "mb_s", per_s, interval, round(on_credit), (), after_rest=True
    )


def _confirmed_burst(subject: TimedSubject, op: Op, size_bytes: int, count: int, seed: int) -> TimedBurst | None:
    """A burst that slowed down only if another after a rest does, to the same rate and after as many.

    Two of three must: on a busy machine one may not show it.
    """
    seen: list[TimedBurst] = []
    for turn in range(_BURSTS):
        if seen:
            subject.rest(_rest_ns(_refilled_ns(seen[-1])))
        burst = _burst(subject, op, size_bytes, count, seed + turn)
        if burst is None:
            continue
        if any(_agree(earlier, burst) for earlier in seen):
            return burst
        seen.append(burst)
        if sum(not one.slowed for one in seen) > _BURSTS - 2:
            break
    return replace(seen[0], slowed=False) if seen else None


def _agree(one: TimedBurst, other: TimedBurst) -> bool:
    """Whether both slowed down to the same rate after as many."""
    if not (one.slowed and other.slowed and abs(other.per_s / one.per_s - 1) < _ALIKE):
        return False
    # Less may be there again where the rest was cut short, or a lump more or less.
    apart = abs(other.on_credit - one.on_credit)
    return _refilled_ns(one) > _MOST_REST_NS or apart <= max(0.5 * one.on_credit, one.at_a_time)


def _refilled_ns(burst: TimedBurst) -> int:
    """How long a bucket takes to be full again, and a little longer; nothing where none was seen."""
    return int(1.2e9 * burst.on_credit / burst.per_s) if burst.slowed else 0


def _rest_ns(refilled_ns: int) -> int:
    return min(_MOST_REST_NS, max(_LEAST_REST_NS, refilled_ns))


def _burst(subject: TimedSubject, op: Op, size_bytes: int, count: int, seed: int) -> TimedBurst | None:
    """None where a device is so slow from the beginning that a burst would take minutes."""
    drawn = np.random.default_rng([seed, size_bytes])
    places = drawn.integers(0, subject.capacity_bytes // size_bytes, count) * size_bytes
    first = subject.ask_each(places[:_FIRST], op, size_bytes)
    # On a busy machine many of the first are late: of a slow device all are.
    if float(np.percentile(first.took_ns[: 2 * _FEW], 25)) > _SLOW_NS:
        return None
    subject.rest(_rest_ns(10 * int(first.end_ns[-1])))
    seen = subject.ask_each(places, op, size_bytes)
    done, ends = np.arange(1, count + 1), seen.end_ns - seen.begin_ns[0]
    half = count // 2
    slope = (count - half) / (ends[-1] - ends[half - 1])
    late = half + np.flatnonzero(seen.took_ns[half:] * slope > _WAITED)
    # Where what passes is dealt out in lumps, those that wait for one take far longer than what a busy machine delays.
    waited = late[seen.took_ns[late] > _WAITED * np.percentile(seen.took_ns[late], 75)] if len(late) else late
    if len(waited) < _FEW:
        waited = np.arange(half, count)
    slope = float(np.polyfit(ends[waited], done[waited], 1)[0])
    at_a_time = float(np.median(np.diff(waited)))
    # What a busy machine leaves unused is lost, and never is there more: the most is what there was.
    on_credit = max(0.0, float(np.max(done[:half] - slope * ends[:half])) - at_a_time / 2)
    rates = [float(np.ptp(part) / np.ptp(ends[part])) for part in np.array_split(waited, 2)]
    spread = abs(rates[0] / rates[1] - 1)
    before = seen.took_ns[: max(0, int(on_credit) - 1)]
    slowed = len(before) >= _FEW and spread < _ALIKE and float(np.median(before)) * _SLOWER * slope < 1
    passed_ns = before if slowed else seen.took_ns
    return TimedBurst(1e9 * slope, on_credit, at_a_time, spread, passed_ns, slowed)

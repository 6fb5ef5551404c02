"""From what was measured to a device: quantiles by situation, and how many requests it serves at a time.

Invariants:

- A row has the mean that was measured, to the last digit that is written, however it is interpolated; with distances,
  requests all over the device, or over a part of it, have it together, near ones and far ones.
- What was not measured is in no row.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import numpy.typing as npt

from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.measure.fit.situations import ROUNDS, Op, Situation
from raidlab.reading import Plain
from raidlab.results.answer import CellAnswer, times_of_all

PROBABILITIES = (0.0, 0.01, 0.05, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
# A throughput so near to the most is the most: more at a time than that gives nothing.
_KNEE_SHARE = 0.96
# Requests near one another that take so nearly what others take, in the median, are not told apart from them.
ALIKE_SHARE = 0.05
# What is left of a time that was nearly all waiting.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Sample:
    """What one turn of a situation gave."""

    situation: Situation
    turn: int
    requests: int
    elapsed_ns: int
    mean_ns: float
    """Of the requests that the situation is about: of a rewrite, its writes."""
    mean_of_all_ns: float
    """Of all requests of the situation."""
    times: Histogram
    processor_share: float = 0.0
    """How much of the time the meter's threads were at work, in the kernel too."""
    warmup_ns: int = 0
    """What went before it and is not counted."""

    @property
    def rate_per_s(self) -> float:
        """Requests a second."""
        return 1e9 * self.requests / self.elapsed_ns


def samples_of(situation: Situation, turn: int, answer: CellAnswer) -> list[Sample]:
    """What an answer says of a situation; of a mix that is fitted, of its reads and of its writes."""
    if situation.op == "mixed" and situation.reads is not None:
        return [sample_of(replace(situation, op=op), turn, answer) for op in ("read", "write")]
    return [sample_of(situation, turn, answer)]


def sample_of(situation: Situation, turn: int, answer: CellAnswer) -> Sample:
    """What an answer says of a situation."""
    op = situation.op
    totals = answer["all"] if op == "mixed" else answer[op]
    # The virtual clock costs none.
    spent = answer.get("accounting")
    worked_ns = spent["user_ns"] + spent["system_ns"] if spent is not None else 0
    return Sample(
        situation,
        turn,
        requests=totals["requests"],
        elapsed_ns=answer["elapsed_ns"],
        mean_ns=totals["response_mean_ns"],
        mean_of_all_ns=answer["all"]["response_mean_ns"],
        times=times_of_all(answer) if op == "mixed" else Histogram.of(answer[op]["response"]),
        processor_share=worked_ns / answer["elapsed_ns"],
    )


@dataclass(frozen=True)
class Measured:
    """All turns of a situation together."""

    situation: Situation
    turns: tuple[Sample, ...]

    @property
    def requests(self) -> int:
        """How many were counted."""
        return sum(turn.requests for turn in self.turns)

    @property
    def mean_ns(self) -> float:
        """Of all requests."""
        return sum(turn.mean_ns * turn.requests for turn in self.turns) / self.requests

    @property
    def processor_share(self) -> float:
        """The greatest of its turns."""
        return max(turn.processor_share for turn in self.turns)

    @property
    def mean_of_all_ns(self) -> float:
        """Of all requests of the situation, not only of those that it is about."""
        return sum(turn.mean_of_all_ns * turn.requests for turn in self.turns) / self.requests

    @property
    def rate_per_s(self) -> float:
        """Requests a second, over all turns."""
        return 1e9 * self.requests / sum(turn.elapsed_ns for turn in self.turns)

    @property
    def times(self) -> Histogram:
        """All times."""
        return Histogram.merged(turn.times for turn in self.turns)


def together(samples: Sequence[Sample]) -> list[Measured]:
    """The turns of each situation, in the order in which situations were first met; of three the two that are alike."""
    turns: dict[Situation, list[Sample]] = defaultdict(list)
    for one in samples:
        turns[one.situation].append(one)
    for situation, found in turns.items():
        if not all(one.requests for one in found):
            message = f"is too short: no request was done in a turn of '{situation.name}'"
            raise InputError.one("--budget", message, accepted="a longer one")
    return [Measured(situation, _alike(found)) for situation, found in turns.items()]


def _alike(turns: Sequence[Sample]) -> tuple[Sample, ...]:
    """Without the one that stands apart, of three."""
    if len(turns) != ROUNDS + 1:
        return tuple(turns)
    low, middle, high = sorted(turns, key=lambda one: one.rate_per_s)
    apart = high if high.rate_per_s * low.rate_per_s > middle.rate_per_s**2 else low
    return tuple(one for one in turns if one is not apart)


def quantiles_us(times: Histogram, mean_ns: float) -> list[float]:
    """The times at `PROBABILITIES`, in us, of which the mean (linear between them) is the one given."""
    probabilities = np.array(PROBABILITIES)
    raw = [times.percentile_ns(100 * p) for p in PROBABILITIES]
    found = np.array([float(value or 0) for value in raw])
    widths = np.diff(probabilities)
    # The last point takes what it can of the difference: the tail is where the interpolation is farthest off.
    missing = mean_ns - _mean(found, widths)
    found[-1] = np.clip(found[-1] + 2 * missing / widths[-1], found[-2], max(found[-1], found[-2]))
    found *= mean_ns / _mean(found, widths)
    return [float(f"{value / 1e3:.5g}") for value in np.maximum.accumulate(found)]


def _mean(points: npt.NDArray[np.float64], widths: npt.NDArray[np.float64]) -> float:
    return float(np.sum(widths * (points[:-1] + points[1:]) / 2))


def rows(measured: Sequence[Measured], servers: int, capacity_bytes: int) -> list[dict[str, Plain]]:
    """The rows of a device that serves so many at a time: times in service, by how many are there."""
    near = _near_shares(measured)
    found = []
    for one in measured:
        asked = one.situation
        if asked.arrivals or (asked.span < 1 and asked.op not in near):
            continue
        within = {"within_bytes": int(asked.span * capacity_bytes)} if asked.span < 1 else {}
        among = {} if asked.reads is None else {"read": asked.reads}
        shares = near.get(asked.op, {}) if asked.place == "random" and asked.reads is None else {}
        found.append(_row(one, servers, _beyond(asked, shares)) | within | among)
    return found


_Shares = dict[float, dict[tuple[int, int], float]]


def _near_shares(measured: Sequence[Measured]) -> dict[Op, _Shares]:
    """By operation, what requests in a part of the device take as a share of what they take all over it.

    Only of operations that take another time near one another: a device without an arm knows no distances.
    """
    means: dict[Op, _Shares] = defaultdict(lambda: defaultdict(dict))
    for one in measured:
        asked = one.situation
        if asked.place == "random" and asked.reads is None and not asked.arrivals:
            means[asked.op][asked.span][asked.size_bytes, asked.depth] = one.mean_ns
    found: dict[Op, _Shares] = {}
    for op, by_span in means.items():
        anywhere = by_span.pop(1.0, {})
        shares = {
            span: {at: mean / anywhere[at] for at, mean in near.items() if at in anywhere}
            for span, near in by_span.items()
        }
        all_of = [share for near in shares.values() for share in near.values()]
        if all_of and abs(median(all_of) - 1) > ALIKE_SHARE:
            found[op] = {1.0: dict.fromkeys(anywhere, 1.0), **{span: near for span, near in shares.items() if near}}
    return found


def _beyond(asked: Situation, shares: _Shares) -> float:
    """By how much longer than all of a situation's requests those take that are beyond the next shorter distance.

    Two random places in a part of length 1 are no more than x apart with 2 x - x^2.
    """
    shorter = max((span for span in shares if span < asked.span), default=None)
    if shorter is None:
        return 1.0
    x = shorter / asked.span
    apart = x * (2 - x)
    near = _nearest(shares[shorter], asked) / _nearest(shares[asked.span], asked)
    return max(1 - apart * near, _LEAST_SHARE) / (1 - apart)


def _nearest(shares: Mapping[tuple[int, int], float], asked: Situation) -> float:
    """The share at the size and the depth that are nearest to those of a situation."""

    def away(at: tuple[int, int]) -> float:
        return abs(math.log(at[0] / asked.size_bytes)) + abs(math.log(at[1] / asked.depth))

    return shares[min(shares, key=away)]


def _row(one: Measured, servers: int, longer: float) -> dict[str, Plain]:
    """A situation's times, less what its requests waited; so many times as long.

    Of a closed loop with ``n`` there and ``c`` served, the share ``1 - c / n`` waits, and so long does each of them
    wait on average (Little's law).
    """
    asked = one.situation
    waited_ns = one.mean_of_all_ns * max(0.0, 1 - servers / asked.depth)
    share = longer * max((one.mean_ns - waited_ns) / one.mean_ns, _LEAST_SHARE)
    return {
        "op": asked.op,
        "place": asked.place,
        "bytes": asked.size_bytes,
        "depth": asked.depth,
        "us": [float(f"{share * us:.5g}") for us in quantiles_us(one.times, one.mean_ns)],
    }


def most_served(measured: Sequence[Measured]) -> int:
    """The least depth at which every kind of random request is nearly as fast as it gets."""
    series: dict[tuple[Op, int], list[tuple[int, float]]] = defaultdict(list)
    for one in measured:
        asked = one.situation
        if asked.is_anywhere and not asked.arrivals:
            series[asked.op, asked.size_bytes].append((asked.depth, asked.depth / one.mean_ns))
    knees = []
    for points in series.values():
        most = max(rate for _, rate in points)
        knees.append(min(depth for depth, rate in points if rate >= _KNEE_SHARE * most))
    return max(knees)


def least_served(measured: Sequence[Measured]) -> int:
    """How many must be served at a time for requests of either kind in a mix to wait no longer than they took.

    With ``n`` there and ``c`` served, each waits the share ``1 - c / n`` of the mean of all (`_row`).
    """
    mixes = [one for one in measured if one.situation.reads is not None]
    return max((math.ceil(one.situation.depth * (1 - one.mean_ns / one.mean_of_all_ns)) for one in mixes), default=1)


def most_rates(samples: Sequence[Sample], op: Op, size_bytes: int) -> float:
    """The most random requests a second that closed loops got."""
    rates = [
        one.rate_per_s
        for one in samples
        if (one.situation.op, one.situation.is_anywhere, one.situation.size_bytes) == (op, True, size_bytes)
        and not one.situation.arrivals
    ]
    return max(rates)

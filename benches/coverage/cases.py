"""What the grid asks: the product's own functions, on values whose truth is known.

Invariants:

- A case calls what `raidlab measure` and the report call, never a copy of it.
- A case draws, asks and compares one at a time: None where no interval was given, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from models import MODELS, Model, Rows, autoregressive

from raidlab.analysis.metrics.result_rows import PERCENTILES, times_of
from raidlab.histogram import Histogram
from raidlab.measure.warm_up import found_by_pilot
from raidlab.stats import (
    MOST_REPEATS,
    compare_unpaired,
    mean_so_far,
    ratio_interval,
    student,
    taken_for_granted,
    wants_more,
)

REPEATS = (3, 5, 10, 30)
# A tick of the histograms, in shares of a value: such is the resolution of the engine's.
_TICK = 0.002
_NS = 1e6
_VALUES_AT_ONCE = 1_000_000
_SECOND_NS = 1_000_000_000

Answered = tuple[float, float] | str


@dataclass(frozen=True)
class Case:
    """One line of the grid.

    Attributes
    ----------
    table, model : str
        Under which heading, and what is drawn.
    size : str
        The column, such as the number of repeats.
    ask : callable
        Takes a generator, draws and asks; for each figure of the table an interval or the reason why there is none,
        and the truth.
    cost : int
        Values drawn, by which the dearest are begun first.
    claimed : bool
        False of what an interval says that it takes for granted (`taken_for_granted`) and is not so here: how often it
        holds all the same is shown, and no verdict depends on it.
    """

    table: str
    model: str
    size: str
    ask: Callable[[np.random.Generator], Iterator[tuple[str, Answered, float]]]
    cost: int
    claimed: bool = True


def _ticks(values: Rows) -> Rows:
    return np.ceil(np.log(values * _NS) / _TICK)


def _ns(ticks: Rows) -> Rows:
    return np.exp(ticks * _TICK)


def _histogram(values: Rows) -> Histogram:
    ticks, counts = np.unique(_ticks(values), return_counts=True)
    return Histogram.of({"value_ns": _ns(ticks), "count": counts})


def _times(model: Model, repeats: int) -> Case:
    """Response times of several repeats, as the result's rows have them."""
    drawn: list[Rows] = []

    def ask(rng: np.random.Generator) -> Iterator[tuple[str, Answered, float]]:
        if not drawn:
            # Many at once: some models go from value to value.
            many = max(1, _VALUES_AT_ONCE // (repeats * model.length))
            drawn.extend(model.draw(rng, many * repeats, model.length).reshape(many, repeats, -1))
        rows = drawn.pop()
        row = times_of(
            [_histogram(values) for values in rows], (_NS * rows.mean(axis=1)).tolist(), [model.length] * repeats
        )
        for name in ("mean", *(f"p{percentile:g}" for percentile in PERCENTILES[:3])):
            key = f"response_time_ns_{name}"
            truth = _NS * model.mean
            if name != "mean":
                # Down to the nanosecond, as histograms are.
                truth = float(np.uint64(_ns(_ticks(np.array([model.quantile(float(name[1:]) / 100)])))[0]))
            low, high, why = row[f"{key}_low"], row[f"{key}_high"], row[f"{key}_no_interval"]
            yield f"{name} of response times", why if low is None else (low, high), truth

    return Case("response times", model.name, str(repeats), ask, repeats * model.length)


@dataclass(frozen=True)
class Rates:
    """Throughputs of repeats, 100 in the mean of those that are not slowed."""

    name: str
    spread_percent: float
    slowed: float = 0.0
    likeness: float = 0.0
    skewed: bool = False

    @property
    def mean(self) -> float:
        """The truth: slow repeats, by 30 %, included."""
        return 100 * (1 - 0.3 * self.slowed)

    @property
    def is_plain(self) -> bool:
        """Whether they are independent and normal."""
        return not (self.likeness or self.slowed or self.skewed)

    def draw(self, rng: np.random.Generator, count: int) -> Rows:
        """So many repeats in their order."""
        noise = autoregressive(self.likeness)(rng, 1, count)[0] - 100 if self.likeness else rng.standard_normal(count)
        if self.skewed:
            noise = rng.standard_exponential(count) - 1
        return 100 * (1 + self.spread_percent / 100 * noise) * np.where(rng.random(count) < self.slowed, 0.7, 1.0)


RATES = (
    Rates("normal, 0.5 %", 0.5),
    Rates("normal, 5 %", 5.0),
    Rates("exponential, 5 %", 5.0, skewed=True),
    Rates("exponential, 10 %", 10.0, skewed=True),
    Rates("one in ten slow, 0.5 %", 0.5, slowed=0.1),
    Rates("one in ten slow, 2 %", 2.0, slowed=0.1),
    Rates("one in five slow, 2 %", 2.0, slowed=0.2),
    Rates("correlated 0.7, 2 %", 2.0, likeness=0.7),
    Rates("correlated 0.9, 2 %", 2.0, likeness=0.9),
)


def _fixed(rates: Rates, repeats: int) -> Case:
    """A fixed number of repeats, as the table of a measurement has them."""

    def ask(rng: np.random.Generator) -> Iterator[tuple[str, Answered, float]]:
        answer = student(rates.draw(rng, repeats).tolist())
        yield figure, answer.interval or str(answer.reason), rates.mean

    claimed = rates.is_plain or taken_for_granted(repeats) is None
    figure = "throughput" if claimed else "throughput of few repeats that are not independent and normal"
    return Case("throughput", rates.name, str(repeats), ask, repeats, claimed)


def _until_narrow(rates: Rates, percent: float) -> Case:
    """`--precision`: one more repeat until the interval is narrow."""

    def ask(rng: np.random.Generator) -> Iterator[tuple[str, Answered, float]]:
        values = rates.draw(rng, MOST_REPEATS).tolist()
        count = next(n for n in range(3, MOST_REPEATS + 1) if not wants_more(values[:n], percent))
        answer = mean_so_far(values[:count])
        yield "throughput, --precision", answer.interval or str(answer.reason), rates.mean

    return Case("--precision", rates.name, f"{percent:g} %", ask, 2000)


def _compared(rates: Rates, repeats: int, *, paired: bool) -> Case:
    """Two arrays beside one another, the second 5 % slower; in pairs they share what slows a repeat down."""

    def ask(rng: np.random.Generator) -> Iterator[tuple[str, Answered, float]]:
        own, other = rates.draw(rng, repeats), 0.95 * rates.draw(rng, repeats)
        if paired:
            shared = np.exp(0.1 * (autoregressive(0.7)(rng, 1, repeats)[0] - 100))
            interval = ratio_interval((own * shared).tolist(), (other * shared).tolist())
        else:
            interval = compare_unpaired(own.tolist(), other.tolist()).ratio.interval
        yield figure, interval or "refused", 1 / 0.95

    name = "ratio of pairs" if paired else "ratio"
    # A few slow or skewed ones hold all the same: of related ones alone is nothing claimed.
    claimed = not rates.likeness or taken_for_granted(repeats) is None
    figure = name if claimed else f"{name} of few repeats that are not independent"
    return Case(name, rates.name, str(repeats), ask, repeats, claimed)


def _pilot(amplitude: float, seconds: int) -> Case:
    """A pilot whose rate falls slowly to 1,000 while noise hides it: the mean of what is left of it."""

    def ask(rng: np.random.Generator) -> Iterator[tuple[str, Answered, float]]:
        values = 1000 + 10 * (rng.standard_normal(seconds) + amplitude * np.exp(-np.arange(seconds) / (seconds / 2)))
        times = ((np.arange(seconds) + 1) * _SECOND_NS).tolist()
        found = found_by_pilot({"elapsed_ns": times[-1], "snapshots": {"time_ns": times, "requests": values.tolist()}})
        if not found.settled:
            yield "pilot", "warm_up_not_ended", 1000.0
            return
        answer = student(values[found.warmup_ns // _SECOND_NS :].tolist())
        yield "pilot", answer.interval or str(answer.reason), 1000.0

    words = f"falls by {amplitude:g} deviations" if amplitude else "steady"
    return Case("pilot", words, f"{seconds} s", ask, seconds)


def cases() -> list[Case]:
    """All that is asked."""
    found = [_times(model, repeats) for model in MODELS for repeats in REPEATS]
    found += [_fixed(rates, repeats) for rates in RATES for repeats in REPEATS]
    found += [_until_narrow(rates, percent) for rates in RATES for percent in (1.0, 2.5)]
    for rates in RATES:
        found += [_compared(rates, repeats, paired=paired) for paired in (True, False) for repeats in REPEATS]
    found += [_pilot(amplitude, 60) for amplitude in (0.0, 10.0)]
    found += [_pilot(amplitude, 600) for amplitude in (0.0, 1.0, 3.0, 10.0)]
    return sorted(found, key=lambda case: -case.cost)


def holds(interval: Answered, truth: float) -> bool | None:
    """Whether an interval holds the truth; None where none was given."""
    if isinstance(interval, str):
        return None
    return interval[0] * (1 - 1e-12) <= truth <= interval[1] * (1 + 1e-12) or (
        math.isclose(*interval) and math.isclose(interval[0], truth)
    )

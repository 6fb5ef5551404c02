"""What was held out, predicted by the device that was fitted without it: the error that the file states.

Invariant: the error is that of one turn, for who measures what was predicted runs it once, too. A device that is itself
twice as fast at one time as at another is then said to be no better known than that, however near their mean is.

Reference: V. Vovk, A. Gammerman and G. Shafer, *Algorithmic Learning in a Random World*, 2005 (conformal prediction):
of n errors that are exchangeable with the next one, the ceil(0.9 (n + 1))-th smallest is not exceeded by it with 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raidlab.measure.fit.situations import Op, Situation, Slot
from raidlab.measure.fit.subject import ModelSubject
from raidlab.measure.fit.table import Measured, Sample, least_served, most_served, sample_of
from raidlab.reading import Plain
from raidlab.stats.special import binomial_cdf

STATED_SHARE = 0.9
# So rarely is a device that is as it was called another one.
SURE = 0.99
# As long as it takes: the virtual clock is cheap.
_MODEL_NS = 3_600_000_000_000
# Of a model with a memory (a cache, the credit of a limit), which is asked for no longer than the device was.
_MODEL_TURNS = 4
# A figure in a device's file may be off by no more; a fit that is says so of itself (`fit.validation`).
_MOST_TOLERANCE_PERCENT = 100.0


@dataclass(frozen=True)
class HeldOut:
    """A situation that the fit has not seen: measured, and as the fitted device has it."""

    situation: Situation
    measured: Measured
    modelled: Sample | Measured

    @property
    def rate_error_percent(self) -> float:
        """How much more throughput the model gives."""
        return 100 * (self.modelled.rate_per_s / self.measured.rate_per_s - 1)

    @property
    def turn_errors_percent(self) -> list[float]:
        """The same of each turn by itself; a model with a memory is asked for turns of the same lengths."""
        turns = self.measured.turns
        if isinstance(self.modelled, Sample):
            modelled = [self.modelled.rate_per_s] * len(turns)
        else:
            likes = [self.modelled.turns[at :: len(turns)] for at in range(len(turns))]
            modelled = [Measured(self.situation, like).rate_per_s for like in likes]
        return [100 * (rate / turn.rate_per_s - 1) for rate, turn in zip(modelled, turns, strict=True)]

    def time_error_percent(self, percentile: float) -> float:
        """How much longer a percentile of response time is in the model."""
        measured = self.measured.times.percentile_ns(percentile) or 0
        modelled = self.modelled.times.percentile_ns(percentile) or 0
        return 100 * (modelled / measured - 1) if measured else math.nan

    @property
    def floor_percent(self) -> float:
        """How far the device is from itself: the throughputs of its turns, the most over the least."""
        rates = [turn.rate_per_s for turn in self.measured.turns]
        return 100 * (max(rates) / min(rates) - 1)


@dataclass(frozen=True)
class Arrivals:
    """Requests at random times: what they took, and what they take of a device that serves so many at a time."""

    measured: Measured
    modelled: Sample
    servers: int

    @property
    def log_error(self) -> float:
        """How far the mean response time is off, as a logarithm."""
        return math.log(self.modelled.mean_of_all_ns / self.measured.mean_ns)

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        error = 100 * math.expm1(self.log_error)
        of = f"{self.measured.situation.name}, {self.measured.rate_per_s:.4g} a second"
        return f"nearest to {of}: mean response {error:+.1f} %"


Serving = Callable[[int], dict[str, Plain]]


def chosen(serving: Serving, fitted: Sequence[Measured], seed: int) -> tuple[dict[str, Plain], list[Arrivals]]:
    """How many requests the device serves at a time, of the depths that were measured: what random arrivals show.

    Closed loops of one kind cannot tell: one that serves four in 4 ms and one that serves each in 1 ms, in turn, give
    the same throughput and the same mean. But what waits in line waits alike: where, in a mix, writes are done sooner
    than reads are served, so many more are served at a time. Between two depths it would be as with both of them.
    """
    loops = [one for one in fitted if one.situation.place == "random" and not one.situation.arrivals]
    depths = sorted({one.situation.depth for one in loops})
    least = least_served(fitted)
    most = max(most_served(fitted), min(depth for depth in depths if depth >= least))
    candidates = [depth for depth in depths if least <= depth <= most]
    open_loops = [one for one in fitted if one.situation.arrivals]
    found = []
    for servers in candidates:
        device = serving(servers)
        model = ModelSubject(device, seed)
        arrivals = []
        for one in open_loops:
            slot = Slot(one.situation, 0, 0, _MODEL_NS, rate_per_s=one.rate_per_s)
            arrivals.append(Arrivals(one, sample_of(one.situation, 0, model.ask(slot)), servers))
        found.append((sum(abs(one.log_error) for one in arrivals), servers, device, arrivals))
    _, _, device, arrivals = min(found, key=lambda one: one[:2])
    return device, arrivals


def predicted(device: Mapping[str, Plain], measured: Sequence[Measured], seed: int) -> list[HeldOut]:
    """Every situation that was held out, as a device has it."""
    if remembers(device):
        return [HeldOut(one.situation, one, as_long(device, one, seed)) for one in measured]
    model = ModelSubject(device, seed)
    found = []
    for one in measured:
        slot = Slot(one.situation, turn=0, warmup_ns=0, measure_ns=_MODEL_NS)
        found.append(HeldOut(one.situation, one, sample_of(one.situation, 0, model.ask(slot))))
    return found


def remembers(device: Mapping[str, Plain]) -> bool:
    """Whether what a device gives depends on how long it was asked: it has a cache, or a limit with credit."""
    return device["kind"] != "empirical" or "throttle" in device


def as_long(device: Mapping[str, Plain], measured: Measured, seed: int, turns: int = _MODEL_TURNS) -> Measured:
    """A situation at a device with a memory, for as long as it was measured: a cache that fills takes its time."""
    model = ModelSubject(device, seed)
    found = []
    for turn in range(turns):
        like = measured.turns[turn % len(measured.turns)]
        slot = Slot(measured.situation, turn, like.warmup_ns, like.elapsed_ns)
        found.append(sample_of(measured.situation, turn, model.ask(slot)))
    return Measured(measured.situation, tuple(found))


def stated_error_percent(held: Sequence[HeldOut]) -> float:
    """What the error of a throughput that is measured once stays below with 90 %; with fewer than nine, the worst."""
    errors = sorted(abs(error) for one in held for error in one.turn_errors_percent)
    rank = math.ceil(STATED_SHARE * (len(errors) + 1))
    return errors[min(rank, len(errors)) - 1]


def most_by_chance(count: int) -> int:
    """How many of so many are beyond the stated error with 99 %, of a device that is as its file says."""
    first, cdf = binomial_cdf(count, 1 - STATED_SHARE)
    return first + int(np.searchsorted(cdf, SURE))


def as_figure(one: HeldOut, source: str, tolerance_percent: float, *, timed: bool = False) -> dict[str, Plain]:
    """A situation as `raidlab device validate` takes it, in the words of a published figure.

    ``timed``: with how long it was measured.
    """
    address: Literal["random", "sequential"] = "sequential" if one.situation.place == "sequential" else "random"
    return {
        "name": one.situation.name,
        "value": float(f"{one.measured.rate_per_s:.5g}"),
        "unit": "IOPS",
        "source": source,
        "read": one.situation.read_share,
        "size": one.situation.size_bytes,
        "address": address,
        "span": one.situation.span,
        "depth": one.situation.depth,
        "tolerance_percent": min(tolerance_percent, _MOST_TOLERANCE_PERCENT),
        **({"turns": [_asked_for(turn) for turn in one.measured.turns]} if timed else {}),
    }


def as_situation(
    read: float, address: Literal["random", "sequential"], size_bytes: int, depth: int, span: float
) -> Situation:
    """What `as_figure` made of a situation, back from the keys of the figure."""
    ops: dict[float, Op] = {1.0: "read", 0.0: "write"}
    return Situation(ops.get(read, "mixed"), address, size_bytes, depth, held_out=True, span=span)


def _asked_for(turn: Sample) -> dict[str, Plain]:
    return {"warmup": f"{turn.warmup_ns}ns", "measure": f"{turn.elapsed_ns}ns"}

"""Fitting a device: ``raidlab device fit``.

- ``situations``: what is asked of it, and what is held out
- ``subject``: what is fitted, a target or a modelled device
- ``table``: from what was measured to a device of kind ``empirical``
- ``held_out``: what was held out, predicted

Invariants:

- A fit reads only, unless what it is given may be written: a file that raidlab makes, memory, or a device that is named
  to be overwritten. Of what was only read the file has no writes, and the model refuses them.
- The device that a fit gives is a function of the samples: measuring and fitting know each other by these alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from raidlab.errors import CellFailedError, InputError, RaidlabError
from raidlab.measure.execute import made_members
from raidlab.measure.fit.held_out import Arrivals, HeldOut, as_figure, chosen, predicted, stated_error_percent
from raidlab.measure.fit.limits import RateLimit, rate_limits, relieved
from raidlab.measure.fit.situations import ARRIVAL_SHARE, Situation, Slot, situations, slots
from raidlab.measure.fit.subject import FitSubject, ModelSubject, TargetSubject
from raidlab.measure.fit.table import (
    PROBABILITIES,
    Measured,
    Sample,
    most_rates,
    rows,
    sample_of,
    together,
)
from raidlab.measure.places import Place, wanted_targets
from raidlab.measure.plan import DIRECT, ResultLine
from raidlab.reading import Plain
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.progress import Progress, Silent
from raidlab.study.units import format_bytes, format_time_ns

SECTOR_BYTES = 4096
# Between the first and the second turn, over all situations: worth a warning, and too much for any file.
DRIFT_WARNED, DRIFT_REFUSED = 5.0, 20.0


@dataclass(frozen=True)
class FitRequest:
    """All that a fit is told."""

    target: str
    budget_ns: int
    quick: bool = False
    destroy: Sequence[str] = ()
    """The device, once more, if it may be overwritten."""
    file_bytes: int = 512 * 1024**2
    """The size of the file made in a directory."""
    seed: int = 1
    name: str = ""
    """What the device is called; its target if left out."""


@dataclass(frozen=True)
class FittedDevice:
    """A device as it was fitted, and how well."""

    document: dict[str, Plain]
    """What its file says."""
    fitted: tuple[Measured, ...]
    held_out: tuple[HeldOut, ...]
    arrivals: tuple[Arrivals, ...]
    """Requests at random times, by which it was chosen how many are served at a time."""
    drift_percent: float
    """How far the second turns were from the first, in the median situation."""
    notes: tuple[str, ...] = ()

    @property
    def error_percent(self) -> float:
        """What the error of a throughput stays below with 90 %."""
        return stated_error_percent(self.held_out)


class DriftError(RaidlabError):
    """The device, or the machine around it, did not stay the same."""

    exit_code = 3


def may_write(place: Place) -> bool:
    """Whether a fit may write: to what raidlab makes itself, or what is given up."""
    return place.kind in ("directory", "memory") or place.given_up


def fit_target(asked: FitRequest, *, progress: Progress | None = None, stop: StopFlag | None = None) -> FittedDevice:
    """Measure a target and fit a device to it.

    Raises
    ------
    RaidlabError
        Before anything is measured for what cannot be, or must not be; later where the target fails, or drifts by more
        than 20 %.
    KeyboardInterrupt
        Where it was to stop: half a fit is none.
    """
    target = wanted_targets([asked.target], asked.destroy, writes=False, file_bytes=asked.file_bytes)[0]
    place = target.places[0]
    if target.tree is not None or place.kind == "null":
        accepted = "a file, a directory, a block device or memory"
        raise InputError.one("TARGET", "is no device that could be fitted", value=f"'{target.word}'", accepted=accepted)
    if place.given_up:
        # What may not be written is refused here, not in the middle.
        wanted_targets([asked.target], asked.destroy, writes=True, file_bytes=asked.file_bytes)
    plan = slots(
        situations(writes=may_write(place), quick=asked.quick, size_bytes=place.used_bytes), asked.budget_ns, asked.seed
    )
    line = ResultLine(target.title, DIRECT, "independent(1)", target.places)
    stop = stop or StopFlag()
    with catching_signals(stop), made_members([line], {line.name: {"kind": "member"}}) as members:
        subject = TargetSubject(members[line.name][0], asked.seed, stop)
        try:
            samples = measured_samples(subject, plan, progress or Silent())
        except CellFailedError as error:
            raise line.error_at_target(error) from None
    date, took = time.strftime("%Y-%m-%d"), format_time_ns(asked.budget_ns)
    source = f"{described(place)}, on {date}, in {took}, seed {asked.seed}"

    return fitted_device(samples, asked.name or target.title, place.used_bytes, source, asked.seed)


def fit_model(parameters: dict[str, Plain], capacity_bytes: int, asked: FitRequest) -> FittedDevice:
    """Fit a modelled device through the same plan: what it is, is known."""
    plan = slots(situations(writes=True, quick=asked.quick, size_bytes=capacity_bytes), asked.budget_ns, asked.seed)
    samples = measured_samples(ModelSubject(parameters, asked.seed), plan, Silent())
    return fitted_device(samples, asked.name or "fitted", capacity_bytes, "a modelled device", asked.seed)


def described(place: Place) -> str:
    """A target in words."""
    what = {"directory": "a file in", "file": "the file", "block": "the device", "memory": "the target"}[place.kind]
    return f"{what} {place.word} ({format_bytes(place.used_bytes)})"


def measured_samples(subject: FitSubject, plan: Sequence[Slot], progress: Progress) -> list[Sample]:
    """Run the turns one after another."""
    samples: list[Sample] = []
    progress.begin("fitting", len(plan))
    try:
        for slot in plan:
            asked = slot.situation
            rate = ARRIVAL_SHARE * most_rates(samples, asked.op, asked.size_bytes) if asked.arrivals else None
            samples.append(_turn(subject, replace(slot, rate_per_s=rate)))
            progress.advance()
    finally:
        progress.end()
    return samples


def _turn(subject: FitSubject, slot: Slot) -> Sample:
    """One turn; again where nothing was done in it, for a machine may stall for as long as a turn lasts."""
    for _ in range(_TRIES):
        sample = replace(sample_of(slot.situation, slot.turn, subject.ask(slot)), warmup_ns=slot.warmup_ns)
        if sample.requests:
            break
    return sample


_TRIES = 3


def drift_percent(measured: Sequence[Measured]) -> float:
    """How far the mean times of the second turns are from those of the first, in the median situation."""
    logs = [math.log(one.turns[-1].mean_ns / one.turns[0].mean_ns) for one in measured if len(one.turns) > 1]
    return 100 * (math.exp(median(logs)) - 1) if logs else 0.0


def fitted_device(samples: Sequence[Sample], name: str, capacity_bytes: int, source: str, seed: int) -> FittedDevice:
    """The device that samples tell of.

    Raises `DriftError` where it changed by more than 20 % meanwhile.
    """
    measured = together(samples)
    drift = drift_percent(measured)
    if abs(drift) > DRIFT_REFUSED:
        raise DriftError(
            f"'{name}' became {abs(drift):.0f} % {'slower' if drift > 0 else 'faster'} while it was measured, in the "
            "median situation, so there is nothing to fit; give it the machine to itself, let it get steady, or take a "
            "longer --budget"
        )
    fitted = [one for one in measured if not one.situation.held_out]
    limits = rate_limits(fitted)
    free = relieved(fitted, limits)
    if not _has_random(free, fitted):
        limits, free = [], fitted

    def serving(servers: int) -> dict[str, Plain]:
        device: dict[str, Plain] = {
            "kind": "empirical",
            "name": name,
            "description": f"Fitted from {source}.",
            "capacity_bytes": capacity_bytes // SECTOR_BYTES * SECTOR_BYTES,
            "sector_bytes": SECTOR_BYTES,
            "servers": servers,
            "scheduler": "fifo",
            "probabilities": list(PROBABILITIES),
            "measured": [dict(row) for row in rows(free, servers)],
        }
        return device | ({"throttle": [limit.table() for limit in limits]} if limits else {})

    device, arrivals = chosen(serving, free, seed)
    held = predicted(device, [one for one in measured if one.situation.held_out], seed)
    found = FittedDevice(
        device, tuple(fitted), tuple(held), tuple(arrivals), drift, tuple(_notes(fitted, held, arrivals, drift))
    )
    device["provenance"] = _provenance(found, limits)
    # A task of two requests is no figure of the form that validation takes.
    tolerance = max(1.0, round(found.error_percent, 1))
    device["held_out"] = [as_figure(one, f"raidlab device fit, {source}", tolerance) for one in held]
    device["fit"] = {
        "error_percent": round(found.error_percent, 2),
        "drift_percent": round(drift, 2),
        "requests": sum(one.requests for one in measured),
        "seed": seed,
    }
    return found


def _has_random(free: Sequence[Measured], fitted: Sequence[Measured]) -> bool:
    """Whether every operation still has random requests in closed loops, which stand for all others."""
    of = [
        {one.situation.op for one in some if one.situation.place == "random" and not one.situation.arrivals}
        for some in (free, fitted)
    ]
    return of[0] == of[1]


def _notes(
    fitted: Sequence[Measured], held: Sequence[HeldOut], arrivals: Sequence[Arrivals], drift: float
) -> Iterator[str]:
    """What a user should know before he trusts it."""
    if abs(drift) > DRIFT_WARNED:
        yield f"the second turns took {drift:+.0f} % against the first, in the median situation"
    apart = median(one.floor_percent for one in held)
    if apart > _APART_WARNED:
        yield (
            f"the two turns of a situation are {apart:.0f} % apart in the median: the machine or the device was not "
            "quiet, and no model comes nearer than that"
        )
    few = [one for one in fitted if one.requests < _FEW]
    if few:
        least = min(few, key=lambda one: one.requests)
        yield (
            f"{len(few)} of {len(fitted)} situations have fewer than {_FEW} requests, the least {least.requests} "
            f"({least.situation.name}): their tails are guesses; a longer --budget has more"
        )
    for one in arrivals:
        if one.log_error > math.log(_CACHE_FACTOR):
            yield (
                f"{one.measured.situation.name}, took {one.measured.mean_ns / 1e3:.3g} us, and "
                f"{one.modelled.mean_of_all_ns / 1e3:.3g} us in the model: the device answers before it is done (a "
                "cache, or credit of a limit?), which the model does not know; arrays that leave it time will be "
                "faster than predicted"
            )
    busiest = max(fitted, key=lambda one: one.processor_share)
    if busiest.processor_share > _BUSY_WARNED:
        yield (
            f"a processor was busy for {100 * busiest.processor_share:.0f} % of '{busiest.situation.name}': members "
            "that share it will wait for one another, which the model does not know"
        )
    if not any(one.situation.op == "write" for one in fitted):
        yield "nothing was written, so the model refuses writes"


# A p99 of fewer is not seen at all.
_FEW = 100
# Turns that are so many per cent apart; a mean so many times that of the device; so much of a processor.
_APART_WARNED, _CACHE_FACTOR, _BUSY_WARNED = 15.0, 1.5, 0.3


def _provenance(found: FittedDevice, limits: Sequence[RateLimit]) -> dict[str, Plain]:
    fitted, held = found.fitted, found.held_out
    requests = sum(one.requests for one in fitted)
    worst = max(held, key=lambda one: abs(one.rate_error_percent))
    rates = [abs(one.rate_error_percent) for one in held]
    why = (
        f"{len(fitted)} situations, each measured twice, {requests} requests; {len(held)} others predicted within "
        f"{median(rates):.1f} % (median) and {abs(worst.rate_error_percent):.1f} % (worst, {worst.situation.name})"
    )
    told: dict[str, Plain] = {
        "capacity_bytes": {"status": "measured", "why": "what the target holds"},
        "sector_bytes": {"status": "assumed", "why": "less was not measured"},
        "servers": {"status": "fitted", "why": "; ".join(one.sentence for one in found.arrivals)},
        "scheduler": {"status": "assumed", "why": "the order in which it serves what waits is not seen"},
        "probabilities": {"status": "assumed", "why": "a grid that is finer in the tail"},
        "measured": {"status": "fitted", "why": "; ".join([why, *found.notes])},
    }
    if limits:
        told["throttle"] = {"status": "fitted", "why": "; ".join(limit.sentence for limit in limits)}
    return told


__all__ = [
    "DriftError",
    "FitRequest",
    "FittedDevice",
    "HeldOut",
    "Measured",
    "Situation",
    "drift_percent",
    "fit_model",
    "fit_target",
    "fitted_device",
    "measured_samples",
]

"""Fitting a device: ``raidlab device fit``.

- ``situations``: what is asked of it, and what is held out
- ``subject``: what is fitted, a target or a modelled device
- ``table``, ``limits``, ``buckets``: from what was measured to a device of kind ``empirical``
- ``timed``, ``rotation``, ``tracks``, ``seeks``, ``electronics``, ``spindle``: to one of kind ``hdd``, where
  completions are periodic
- ``held_out``: what was held out, predicted
- ``kept``: what was measured, as a file, and the same fit from it
- ``traced``: times that were recorded elsewhere
- ``again``: a device asked again, beside its file

Invariants:

- A fit reads only, unless what it is given may be written: a file that raidlab makes, memory, or a device that is named
  to be overwritten. Of what was only read the file has no writes, and the model refuses them.
- The device that a fit gives is a function of the samples, and of what single requests told of a disk: measuring and
  fitting know each other by these alone.
- Which kind of device is given is decided by one half of what was held out; its errors are those of the other half.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from raidlab.analysis.checks import PASS, sparse
from raidlab.errors import CellFailedError, InputError, RaidlabError
from raidlab.measure.execute import made_members
from raidlab.measure.fit.buckets import Drain, FoundBuckets, device_buckets
from raidlab.measure.fit.held_out import (
    Arrivals,
    HeldOut,
    as_figure,
    chosen,
    predicted,
    remembers,
    stated_error_percent,
)
from raidlab.measure.fit.kept import KeepingTimed, KeptFacts, KeptMeasurements, KeptTimed
from raidlab.measure.fit.limits import RateLimit, rate_limits, relieved, relieved_mixes
from raidlab.measure.fit.rotation import LONGEST_NS, PERIODIC, SHORTEST_NS, rotation_of
from raidlab.measure.fit.situations import ARRIVAL_SHARE, ROUNDS, Situation, Slot, least_bytes, situations, slots
from raidlab.measure.fit.spindle import SPINDLE_PHASES, Spindle, found_spindle, spindle_device
from raidlab.measure.fit.subject import FitSubject, ModelSubject, TargetSubject
from raidlab.measure.fit.table import (
    PROBABILITIES,
    Measured,
    Sample,
    most_rates,
    rows,
    samples_of,
    together,
)
from raidlab.measure.fit.timed import TimedModel, TimedSubject, TimedTarget, sector_of
from raidlab.measure.places import Place, TargetSpec, single_target
from raidlab.measure.plan import DIRECT, ResultLine
from raidlab.reading import Plain
from raidlab.results.damage import first_line
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.kernel_facts import Sources
from raidlab.run.progress import Progress, Silent
from raidlab.run.target_facts import allocation, opened_member
from raidlab.run.volumes import usable_bytes
from raidlab.study.cell import Opaque
from raidlab.study.device import MOST_FIT_ERROR_PERCENT, fit_warning
from raidlab.study.units import format_bytes, format_time_ns

SECTOR_BYTES = 4096
# Between the first and the second turn, over all situations: worth a warning, and too much for any file.
DRIFT_WARNED, DRIFT_REFUSED = 5.0, 20.0


FitKind = Literal["auto", "hdd", "table"]
# What the source of a figure that is held out begins with; what it is of follows.
FIGURE_SOURCE = "raidlab device fit, "
_FILE_BYTES = 512 * 1024**2
# What the mechanics of a disk take: some 20,000 reads one after another.
DISK_NS = 480_000_000_000


@dataclass(frozen=True)
class FitRequest:
    """All that a fit is told."""

    target: str
    budget_ns: int
    quick: bool = False
    destroy: Sequence[str] = ()
    """The device, once more, if it may be overwritten."""
    file_bytes: int | None = None
    """The size of the file made in a directory, 512 MiB if left out; of no other target."""
    seed: int = 1
    name: str = ""
    """What the device is called; its target if left out."""
    kind: FitKind = "auto"
    """A disk's mechanics, or a table of times; `auto`: whichever is nearer to what was held out."""
    drain_ns: int = 0
    """How long to ask on at the end, to see whether credit of a limit is used up."""


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
    judged: tuple[HeldOut, ...] = ()
    """Of what was held out, what the kind of device was not decided by: all of it where there was nothing to decide."""
    kept: KeptMeasurements | None = None
    """What was measured."""

    @property
    def error_percent(self) -> float:
        """What the error of a throughput stays below with 90 %."""
        return stated_error_percent(self.judged or self.held_out)


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
    target = single_target(
        asked.target,
        asked.destroy,
        ("file", "directory", "block", "memory"),
        otherwise="is no device that could be fitted",
        accepted=f"a file, a directory, a block device or memory, of {format_bytes(least_bytes(asked.quick))} or more",
        file_bytes=asked.file_bytes or _FILE_BYTES,
    )
    place = target.places[0]
    if asked.file_bytes is not None and place.kind != "directory":
        message = f"is the size of the file made in a directory, and '{place.word}' is none"
        accepted = "a directory, or no --file-size"
        raise InputError.one("--file-size", message, value=f"'{format_bytes(asked.file_bytes)}'", accepted=accepted)
    stop = stop or StopFlag()
    progress = progress or Silent()
    took = format_time_ns(asked.budget_ns)
    kept = KeptMeasurements(
        KeptFacts(
            name=asked.name or target.title,
            capacity_bytes=place.used_bytes,
            source=f"{described(place)}, on {time.strftime('%Y-%m-%d')}, in {took}, seed {asked.seed}",
            seed=asked.seed,
            budget_ns=asked.budget_ns,
            writes=may_write(place),
        )
    )
    # Refuses what cannot be measured, before anything is made.
    _plan(kept.facts, quick=asked.quick)
    with member_of(target, stop) as member:
        single = None if place.kind == "memory" else TimedTarget(member, place.used_bytes, stop)
        found = _measured(kept, single, TargetSubject(member, asked.seed, stop), asked, progress)
    return _of_kept(kept, asked.kind, replace(found, noted=(*found.noted, *_not_stored(place))))


@contextmanager
def member_of(target: TargetSpec, stop: StopFlag) -> Iterator[Opaque]:
    """The one place of a target as the engine takes it; what fails meanwhile is said of the target."""
    line = ResultLine(target.title, DIRECT, "independent(1)", target.places)
    with catching_signals(stop), made_members([line], {line.name: {"kind": "member"}}) as members:
        try:
            yield members[line.name][0]
        except CellFailedError as error:
            raise line.error_at_target(error) from None


def _plan(facts: KeptFacts, *, quick: bool, used_ns: int = 0) -> list[Slot]:
    asked = situations(writes=facts.writes, quick=quick, size_bytes=facts.capacity_bytes)
    return slots(asked, facts.budget_ns - used_ns, facts.seed)


def fit_subject(single: TimedSubject, loops: FitSubject, asked: FitRequest, source: str) -> FittedDevice:
    """Measure what is no target, and may be written, as `fit_target` does, and fit a device to it.

    ``single`` and ``loops`` are two doors to the same: requests one after another, and many.
    """
    name, capacity_bytes = asked.name or asked.target, single.capacity_bytes
    kept = KeptMeasurements(KeptFacts(name, capacity_bytes, source, asked.seed, asked.budget_ns, writes=True))
    return _of_kept(kept, asked.kind, _measured(kept, single, loops, asked, Silent()))


@dataclass(frozen=True)
class _Found:
    """What single requests told."""

    spindle: Spindle | None = None
    noted: tuple[str, ...] = ()
    buckets: Sequence[FoundBuckets] = ()


def _measured(
    kept: KeptMeasurements, single: TimedSubject | None, loops: FitSubject, asked: FitRequest, progress: Progress
) -> _Found:
    """Ask for everything, and keep it."""
    facts = kept.facts
    of_disk = None if single is None else KeepingTimed(single, kept.mechanics)
    found = _Found(*_spindle_of(of_disk, facts, asked.kind, progress))
    if found.spindle is None and single is not None:
        alone = KeepingTimed(single, kept.buckets)
        found = replace(found, buckets=device_buckets(alone, asked.seed, writes=facts.writes))
    plan = _plan(facts, quick=asked.quick, used_ns=0 if found.spindle is None else DISK_NS)
    kept.samples += measured_samples(loops, plan, progress)
    if asked.drain_ns:
        before_ns = sum(one.warmup_ns + one.elapsed_ns for one in kept.samples)
        before = sum(one.rate_per_s * (one.warmup_ns + one.elapsed_ns) / 1e9 for one in kept.samples)
        kept.drain = drained(loops, asked.drain_ns, round(before), before_ns, progress)
    return found


def _not_stored(place: Place) -> Iterator[str]:
    """What of a file is on no disk, and so says nothing of one."""
    if place.kind == "file" and place.path is not None:
        stored = allocation.fact(place.path, [], Sources())
        found = sparse.judge(opened_member(None, "file", str(place.path)) | {"allocation": stored})
        if found is not None and found.verdict != PASS:
            yield f"{found.evidence} {found.remedy}"


def fit_kept(kept: KeptMeasurements, kind: FitKind = "auto", name: str = "") -> FittedDevice:
    """Fit again from what was kept, with nothing measured; `InputError` where nothing can be fitted to it."""
    try:
        return _fit_again(kept, kind, name)
    except (ArithmeticError, LookupError, TypeError, ValueError, CellFailedError) as error:
        # What is whole row by row need not be what a fit has asked for, and what is computed of it may be anything.
        message = f"holds nothing that a device could be fitted to ({first_line(error)})"
        raise InputError.one("--from", message, accepted="a file that 'raidlab device fit --keep' wrote") from error


def _fit_again(kept: KeptMeasurements, kind: FitKind, name: str) -> FittedDevice:
    facts = replace(kept.facts, name=name or kept.facts.name)
    of_disk = KeptTimed(facts.capacity_bytes, kept.mechanics) if kept.mechanics else None
    if kind == "hdd" and (of_disk is None or facts.budget_ns < LEAST_HDD_NS):
        message = "hdd: too few single reads were kept, and they show a disk"
        accepted = f"auto, table, or what was kept of a fit of {format_time_ns(LEAST_HDD_NS)} or more"
        raise InputError.one("--kind", message, accepted=accepted)
    found = _Found(*_spindle_of(of_disk, facts, kind, Silent()))
    if found.spindle is None and kept.buckets:
        subject = KeptTimed(facts.capacity_bytes, kept.buckets)
        found = replace(found, buckets=device_buckets(subject, facts.seed, writes=facts.writes))
    return _of_kept(replace(kept, facts=facts), kind, found)


def _of_kept(kept: KeptMeasurements, kind: FitKind, found: _Found) -> FittedDevice:
    of = kept.facts
    credit = None if kept.drain is None else kept.drain.limit()
    fitted = fitted_device(
        kept.samples, of.name, of.capacity_bytes, of.source, of.seed, found.spindle, kind, found.buckets, credit
    )
    noted = found.noted
    if kept.drain is not None and credit is None:
        noted = (*noted, "its rate did not fall while it was asked on: no credit was used up")
    return replace(fitted, notes=(*fitted.notes, *noted), kept=kept)


def _spindle_of(
    subject: TimedSubject | None, of: KeptFacts, kind: FitKind, progress: Progress
) -> tuple[Spindle | None, tuple[str, ...]]:
    """A disk's mechanics, where the target is one; and what there is to say of it.

    `InputError` where a disk was asked for and there is none, or too little time for it.
    """
    if kind == "table" or subject is None or of.capacity_bytes < usable_bytes(LEAST_DISK_BYTES):
        if kind == "hdd":
            least = format_bytes(LEAST_DISK_BYTES)
            raise InputError.one("--kind", "hdd is of disks", value=f"'{of.name}'", accepted=f"{least} or more")
        return None, ()
    enough = of.budget_ns >= LEAST_HDD_NS
    least = format_time_ns(LEAST_HDD_NS)
    if kind == "hdd" and not enough:
        message = "is too short for the mechanics of a disk"
        raise InputError.one(
            "--budget", message, value=f"'{format_time_ns(of.budget_ns)}'", accepted=f"at least {least}"
        )
    sector_bytes = sector_of(subject)
    rotation = rotation_of(subject, sector_bytes, of.seed, rounds=DETECTING_ROUNDS)
    if rotation.coherence < PERIODIC:
        if kind == "hdd":
            found, needed = f"{rotation.coherence:.2f}", f"a coherence of {PERIODIC} at {PERIODS}, or --kind table"
            message = f"hdd: completions are not periodic (coherence {found})"
            raise InputError.one("--kind", message, accepted=needed)
        return None, ()
    turns = f"completions are periodic ({rotation.period_ns / 1e6:.3f} ms): this is a disk"
    if not enough:
        return None, (f"{turns}; with --budget {least} or more its mechanics are fitted, and this is a table of times",)
    progress.begin("finding tracks and seeks", SPINDLE_PHASES)
    try:
        found_disk = found_spindle(subject, sector_bytes, of.seed, writes=of.writes, advance=progress.advance)
    finally:
        progress.end()
    if isinstance(found_disk, Spindle):
        return found_disk, ()
    note = f"{turns}, but its tracks cannot be told apart"
    if kind == "hdd":
        raise InputError.one("--kind", f"hdd: {note}", accepted="--kind table")
    return None, (f"{note}; this is a table of times",)


# Less holds no zones worth the name; what loops take at least.
LEAST_DISK_BYTES = 256 * 1024**2
LEAST_LOOPS_NS = 240_000_000_000
# In which there is time for both.
LEAST_HDD_NS = DISK_NS + LEAST_LOOPS_NS
DETECTING_ROUNDS = 10
PERIODS = f"{SHORTEST_NS / 1e6:g} to {LONGEST_NS / 1e6:g} ms"


def fit_model(parameters: dict[str, Plain], capacity_bytes: int, asked: FitRequest) -> FittedDevice:
    """Fit a modelled device through the same plan: what it is, is known.

    What is looked at single requests for is a disk: `asked.kind` says so, and a modelled host is late by 20 us.
    """
    plan = slots(situations(writes=True, quick=asked.quick, size_bytes=capacity_bytes), asked.budget_ns, asked.seed)
    name = asked.name or "fitted"
    kept = KeptMeasurements(
        KeptFacts(name, capacity_bytes, "a modelled device", asked.seed, asked.budget_ns, writes=True)
    )
    spindle = None
    if asked.kind != "table" and parameters["kind"] == "hdd":
        late = TimedModel(parameters, capacity_bytes, asked.seed, late_us=20.0, outlier_share=0.003)
        subject = KeepingTimed(late, kept.mechanics)
        found = found_spindle(subject, sector_of(subject), asked.seed, writes=True)
        spindle = found if isinstance(found, Spindle) else None
    buckets: list[FoundBuckets] = []
    if spindle is None:
        single = KeepingTimed(TimedModel(parameters, capacity_bytes, asked.seed), kept.buckets)
        buckets = device_buckets(single, asked.seed, writes=True)
    kept.samples += measured_samples(ModelSubject(parameters, asked.seed), plan, Silent())
    if asked.drain_ns:
        # A modelled device has all its credit in every turn.
        kept.drain = drained(ModelSubject(parameters, asked.seed, _NO_END), asked.drain_ns, 0, 0, Silent())
    return _of_kept(kept, asked.kind, _Found(spindle, buckets=buckets))


_NO_END = 2**40


def drained(subject: FitSubject, time_ns: int, before: int, before_ns: int, progress: Progress) -> Drain:
    """Ask on for so long."""
    progress.begin(f"asking on for {format_time_ns(time_ns)}", 1)
    try:
        seconds = subject.ask(Slot(Situation("read", "random", 16 * 1024, 32), 0, 0, time_ns)).get("snapshots")
        progress.advance()
    finally:
        progress.end()
    ends, counts = ([int(one) for one in seconds[key]] if seconds else [] for key in ("time_ns", "requests"))
    return Drain(before, before_ns, tuple(ends), tuple(counts))


_WHAT = {"directory": "a file in", "file": "the file", "block": "the device", "memory": "the target"}


def described(place: Place) -> str:
    """A target in words."""
    return f"{_WHAT[place.kind]} {place.word} ({format_bytes(place.used_bytes)})"


def kind_described(source: str) -> str | None:
    """Of which kind of target a figure of a fit is, by its source; None of what was no target."""
    return next((kind for kind, what in _WHAT.items() if source.startswith(f"{FIGURE_SOURCE}{what} ")), None)


def measured_samples(
    subject: FitSubject, plan: Sequence[Slot], progress: Progress, doing: str = "fitting"
) -> list[Sample]:
    """Run the turns one after another; once more those to be fitted of which the two are unlike."""
    samples: list[Sample] = []
    turns: dict[Situation, list[Sample]] = defaultdict(list)
    progress.begin(doing, len(plan))
    try:
        for slot in plan:
            asked = slot.situation
            rate = ARRIVAL_SHARE * most_rates(samples, asked.op, asked.size_bytes) if asked.arrivals else None
            found = _turn(subject, replace(slot, rate_per_s=rate))
            samples += found
            turns[asked].append(found[0])
            progress.advance()
    finally:
        progress.end()
    of_first = {slot.situation: slot for slot in plan if slot.turn == 0}
    unlike = [of_first[asked] for asked, both in turns.items() if _is_unlike(asked, both)]
    if unlike:
        progress.begin("turns that were unlike", len(unlike))
        try:
            for slot in unlike:
                samples += _turn(subject, replace(slot, turn=ROUNDS))
                progress.advance()
        finally:
            progress.end()
    return samples


def _is_unlike(asked: Situation, turns: Sequence[Sample]) -> bool:
    """Whether one of two turns is likely none of the device: of what is held out, both are what it does."""
    if asked.held_out or asked.arrivals or turns[-1].elapsed_ns > 2 * turns[0].elapsed_ns:
        return False
    rates = [turn.rate_per_s for turn in turns]
    return max(rates) > _UNLIKE * min(rates)


# A stall, or a machine that was awake for once, makes more of a difference than that.
_UNLIKE = 1.5


def _turn(subject: FitSubject, slot: Slot) -> list[Sample]:
    """One turn; again where nothing was done in it, for a machine may stall for as long as a turn lasts."""
    for _ in range(_TRIES):
        samples = samples_of(slot.situation, slot.turn, subject.ask(slot))
        if all(one.requests for one in samples):
            break
    return [replace(one, warmup_ns=slot.warmup_ns) for one in samples]


_TRIES = 3


def drift_percent(measured: Sequence[Measured]) -> float:
    """How far the mean times of the second turns are from those of the first, in the median situation."""
    logs = [math.log(one.turns[-1].mean_ns / one.turns[0].mean_ns) for one in measured if len(one.turns) > 1]
    return 100 * (math.exp(median(logs)) - 1) if logs else 0.0


def fitted_device(
    samples: Sequence[Sample],
    name: str,
    capacity_bytes: int,
    source: str,
    seed: int,
    spindle: Spindle | None = None,
    kind: FitKind = "auto",
    buckets: Sequence[FoundBuckets] = (),
    credit: RateLimit | None = None,
) -> FittedDevice:
    """The device that samples tell of, and of a disk its spindle.

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
    held_out = [one for one in measured if one.situation.held_out]
    given = (
        _table_fit(fitted, held_out, capacity_bytes, seed, buckets, credit)
        if kind != "hdd" or spindle is None
        else None
    )
    judged: tuple[HeldOut, ...] = ()
    if spindle is not None:
        disk = spindle_device(spindle, fitted, seed)
        of_disk = _Given(disk, predicted(_model_of(disk), held_out, seed))
        judged = tuple(of_disk.held[1::2]) if given is not None else ()
        if given is None or _apart(of_disk.held[::2]) < _apart(given.held[::2]):
            given = of_disk
        elif judged:
            judged = tuple(given.held[1::2])
    assert given is not None, "without a spindle there is a table"
    held = given.held
    titled: dict[str, Plain] = {"kind": given.device["kind"], "name": name, "description": f"Fitted from {source}."}
    device = titled | given.device
    found = FittedDevice(device, tuple(fitted), tuple(held), tuple(given.arrivals), drift, judged=judged)
    found = replace(found, notes=tuple(_notes(found)))
    told = given.device.get("provenance") or _table_provenance(found, given.limits)
    assert isinstance(told, dict), "provenance is a table"
    device["provenance"] = told
    # A task of two requests is no figure of the form that validation takes.
    tolerance = max(1.0, round(found.error_percent, 1))
    device["held_out"] = [
        as_figure(one, f"{FIGURE_SOURCE}{source}", tolerance, timed=remembers(given.device)) for one in held
    ]
    device["fit"] = {
        "error_percent": round(found.error_percent, 2),
        "validation": "failed" if found.error_percent > MOST_FIT_ERROR_PERCENT else "passed",
        "drift_percent": round(drift, 2),
        "requests": sum(one.requests for one in measured) + (spindle.requests if spindle is not None else 0),
        "seed": seed,
    }
    return found


@dataclass(frozen=True)
class _Given:
    """A device of one kind, and what it makes of what was held out."""

    device: dict[str, Plain]
    held: Sequence[HeldOut]
    arrivals: Sequence[Arrivals] = ()
    limits: Sequence[RateLimit] = ()


def _apart(held: Sequence[HeldOut]) -> float:
    """How far a kind of device is from what decides: throughput and 90th percentile, on average."""
    errors = [abs(one.rate_error_percent) + abs(one.time_error_percent(90)) / 4 for one in held]
    return sum(errors) / len(errors)


def _model_of(device: dict[str, Plain]) -> dict[str, Plain]:
    return {key: value for key, value in device.items() if key != "provenance"}


def _table_fit(
    fitted: Sequence[Measured],
    held_out: Sequence[Measured],
    capacity_bytes: int,
    seed: int,
    buckets: Sequence[FoundBuckets] = (),
    credit: RateLimit | None = None,
) -> _Given:
    # What a burst after a rest has shown is known better than loops show it.
    known = {one.op for one in buckets}
    mixes = [one for one in fitted if one.situation.reads is not None]
    alone = [one for one in fitted if one.situation.reads is None]
    others = [one for one in alone if one.situation.op not in known]
    limits = rate_limits(others)
    free = relieved(others, limits)
    if not _has_random(free, others):
        limits, free = [], list(others)
    limits += [limit for one in buckets for limit in one.limits]
    free += [passed for one in buckets for passed in one.relieved()]
    free += [one for one in alone if one.situation.op in known and one.situation.arrivals]
    free += relieved_mixes(mixes, limits)
    # What was measured was measured while there was credit.
    limits += [credit] if credit is not None else []

    def serving(servers: int) -> dict[str, Plain]:
        device: dict[str, Plain] = {
            "kind": "empirical",
            "capacity_bytes": capacity_bytes // SECTOR_BYTES * SECTOR_BYTES,
            "sector_bytes": SECTOR_BYTES,
            "servers": servers,
            "scheduler": "fifo",
            "probabilities": list(PROBABILITIES),
            "measured": [dict(row) for row in rows(free, servers, capacity_bytes)],
        }
        return device | ({"throttle": [limit.table() for limit in limits]} if limits else {})

    device, arrivals = chosen(serving, free, seed)
    return _Given(device, predicted(device, held_out, seed), arrivals, limits)


def _has_random(free: Sequence[Measured], fitted: Sequence[Measured]) -> bool:
    """Whether every operation still has random requests in loops of its own, which stand for all others."""
    of = [
        {one.situation.op for one in some if one.situation.is_anywhere and not one.situation.arrivals}
        for some in (free, fitted)
    ]
    return of[0] == of[1]


def _notes(found: FittedDevice) -> Iterator[str]:
    """What a user should know before he trusts it."""
    fitted, held, arrivals, drift = found.fitted, found.held_out, found.arrivals, found.drift_percent
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
                f"{one.measured.situation.name}, took {format_time_ns(one.measured.mean_ns)}, and "
                f"{format_time_ns(one.modelled.mean_of_all_ns)} in the model: the device answers before it is done (a "
                "cache, or credit of a limit?), which the model does not know; arrays that leave it time will be "
                "faster than predicted"
            )
    busiest = max(fitted, key=lambda one: one.processor_share)
    if busiest.processor_share > _BUSY_WARNED:
        yield (
            f"a processor was busy for {100 * busiest.processor_share:.0f} % of '{busiest.situation.name}': members "
            "that share it will wait for one another; 'one_device = true' in [sim] predicts that"
        )
    warning = fit_warning("the device", {"error_percent": found.error_percent})
    if warning is not None:
        yield warning
    if not any(one.situation.op == "write" for one in fitted):
        yield "nothing was written, so the model refuses writes"


# A p99 of fewer is not seen at all.
_FEW = 100
# Turns that are so many per cent apart; a mean so many times that of the device; so much of a processor.
_APART_WARNED, _CACHE_FACTOR, _BUSY_WARNED = 15.0, 1.5, 0.3


def _table_provenance(found: FittedDevice, limits: Sequence[RateLimit]) -> dict[str, Plain]:
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
    "fit_kept",
    "fit_model",
    "fit_subject",
    "fit_target",
    "fitted_device",
    "measured_samples",
]

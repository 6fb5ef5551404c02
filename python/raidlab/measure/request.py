"""All that a measurement is told, and how flags and a study file say it.

Invariant: with ``--study``, what is asked and how hard comes from the file alone; flags of the same kind beside it are
refused, so that nobody wonders which of the two was in force. Times and repeats are the file's unless a flag says
otherwise.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field

from raidlab.errors import InputError
from raidlab.measure.warm_up import AUTO, LEAST_PILOT_NS, LEAST_WARM_UP_NS
from raidlab.measure.words import (
    Document,
    LoadFlags,
    WorkloadFlags,
    load_document,
    parse_span,
    parse_with,
    workload_document,
)
from raidlab.study import LoadedStudy, load_study
from raidlab.study.cell import Drive
from raidlab.study.find import did_you_mean, nearest
from raidlab.study.units import BYTES_ACCEPTED, TIME_ACCEPTED, parse_bytes, parse_time_ns

_DEFAULT_SEED = 1


@dataclass(frozen=True)
class RequestedTimes:
    """How long and how often; times as text with a unit, or ``auto`` for the warm-up."""

    warmup: str = AUTO
    runtime: str = "3s"
    repeats: int = 3

    @property
    def wants_pilot(self) -> bool:
        """Whether a pilot decides how long to warm up."""
        return self.warmup == AUTO and parse_time_ns(self.runtime) >= LEAST_PILOT_NS

    @property
    def fixed_warmup_ns(self) -> int:
        """The warm-up without a pilot: as said, or a tenth of the runtime and half a second at least."""
        if self.warmup != AUTO:
            return parse_time_ns(self.warmup)
        return max(LEAST_WARM_UP_NS, parse_time_ns(self.runtime) // 10)


@dataclass(frozen=True)
class BudgetFlags:
    """The flags of the budget; None where one was not given."""

    runtime: str | None = None
    warmup: str | None = None
    repeats: int | None = None
    precision: str | None = None
    until_steady: bool = False


@dataclass(frozen=True)
class MeasureRequest:
    """All that a measurement is told."""

    targets: Sequence[str]
    """Files, directories, block devices, ``null``, ``memory``, arrays over such."""
    workload: Document
    load: Document
    """Tables of a study file."""
    budget: RequestedTimes = field(default_factory=RequestedTimes)
    drive: Drive = field(default_factory=Drive)
    destroy: Sequence[str] = ()
    """Block devices that may be overwritten."""
    file_bytes: int = 512 * 1024**2
    """The size of the file made in each directory."""
    span: tuple[float, float] = (0.0, 1.0)
    """From which to which share of every target requests go, 0 to 1."""
    each: bool = False
    """One target after the other, interleaved, instead of all at once."""
    precision_percent: float | None = None
    """Repeat until the interval of every throughput is this narrow."""
    until_steady: bool = False
    """Load each point until it is steady before it is measured."""
    seed: int = _DEFAULT_SEED
    notes: tuple[str, ...] = ()
    """What to tell the user before it begins."""


def request_of_flags(
    targets: Sequence[str],
    workload_flags: WorkloadFlags,
    load_flags: LoadFlags,
    budget_flags: BudgetFlags,
    drive: Drive,
    *,
    study: str | None = None,
    workload: str | None = None,
    destroy: Sequence[str] = (),
    file_size: str = "512MiB",
    span: str = "100%",
    each: bool = False,
    seed: int | None = None,
) -> MeasureRequest:
    """What the flags of ``raidlab measure`` ask for.

    Raises `InputError` with the flag, the value and what is accepted.
    """
    notes: tuple[str, ...] = ()
    if study is None:
        if workload is not None:
            raise InputError.one("--workload", "names a workload of no study", accepted="it beside --study")
        several = len(targets) if not each else 1
        asked, load = workload_document(workload_flags, volumes=several), load_document(load_flags)
        budget, study_seed = RequestedTimes(), _DEFAULT_SEED
    else:
        for flag in (*workload_flags.given, *load_flags.given):
            raise InputError.one(flag, "says what --study says too", accepted=f"either --study or {flag}")
        loaded = load_study(study)
        asked, load = _tables(loaded, workload)
        load, notes = _without_reference(load)
        budget, study_seed = _budget(loaded), loaded.study.seed
    return MeasureRequest(
        targets=targets,
        workload=asked,
        load=load,
        budget=_with_flags(budget, budget_flags),
        drive=drive,
        destroy=destroy,
        span=parse_span(span),
        file_bytes=parse_with(parse_bytes, "--file-size", file_size, BYTES_ACCEPTED),
        each=each,
        precision_percent=_precision(budget_flags.precision),
        until_steady=_until_steady(load, budget_flags),
        seed=study_seed if seed is None else seed,
        notes=notes,
    )


def _tables(loaded: LoadedStudy, name: str | None) -> tuple[Document, Document]:
    """A workload of a study and its load, as the file has them."""
    document = tomllib.loads(loaded.text)
    names = [table["name"] for table in document["workload"]]
    if name is not None and name not in names:
        hint = did_you_mean(name, names)
        message = f"'{loaded.study.name}' has no workload of this name{hint}"
        raise InputError.one("--workload", message, value=f"'{name}'", accepted=nearest(name, names))
    found = dict(document["workload"][names.index(name) if name is not None else 0])
    load = dict(found.pop("load", document.get("load", {})))
    found.pop("arrays", None)
    load.pop("quick_depths", None)
    return found, load


def _without_reference(load: Document) -> tuple[Document, tuple[str, ...]]:
    """A target that is a multiple of another array's idle response means nothing here, where that array is not."""
    if not isinstance(load.get("hold", {}).get("target"), dict):
        return load, ()
    left = {key: value for key, value in load.items() if key != "hold"}
    if not left.get("depths"):
        raise InputError.one(
            "--study",
            "holds a multiple of another array's idle response",
            accepted="a load with depths, or a time to hold",
        )
    return left, ("the study's 'hold' is left out: it is a multiple of another array's idle response",)


def _budget(loaded: LoadedStudy) -> RequestedTimes:
    """The study's own times where it has a live section that says any."""
    live = loaded.study.live
    plain = RequestedTimes()
    if live is None:
        return plain
    warmup = plain.warmup if live.warmup.duration is None else f"{live.warmup.duration}ns"
    runtime = plain.runtime if live.measure.duration is None else f"{live.measure.duration}ns"
    return RequestedTimes(warmup, runtime, live.repeats)


def _with_flags(budget: RequestedTimes, flags: BudgetFlags) -> RequestedTimes:
    for flag, text in (("--runtime", flags.runtime), ("--warmup", flags.warmup)):
        if text is not None and (flag, text) != ("--warmup", AUTO):
            parse_with(parse_time_ns, flag, text, f"{TIME_ACCEPTED}{', or auto' if flag == '--warmup' else ''}")
    return RequestedTimes(
        flags.warmup or budget.warmup, flags.runtime or budget.runtime, flags.repeats or budget.repeats
    )


def _until_steady(load: Document, flags: BudgetFlags) -> bool:
    if flags.until_steady and "hold" in load:
        raise InputError.one(
            "--until-steady", "has no rounds where a depth is searched for", accepted="a depth or a rate"
        )
    return flags.until_steady


def _precision(text: str | None) -> float | None:
    if text is None:
        return None
    # "2.5" means 2.5 %, as everywhere where a per cent is asked for; 0.025 would be read as a fortieth of a per cent.
    accepted = "above 0% and up to 100%, such as 2.5%"
    percent = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%?\s*", text)
    if percent is None or not 0 < float(percent[1]) <= 100:
        raise InputError.one("--precision", "is no width that can be asked for", value=f"'{text}'", accepted=accepted)
    return float(percent[1])

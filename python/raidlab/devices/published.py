"""A model beside the figures that were printed of its device, each run in the terms in which it was printed.

A device file has a `[[published]]` table for each: the load, the value and where it stands; of what was measured, but
not used when the device was fitted, a `[[held_out]]` table of the same form. They are run as one small study over one
device, so that what is compared is what every study of that device would find.

Invariant: the figures are never handed to the engine; the model knows its parameters only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from raidlab.devices.alone import run_alone
from raidlab.devices.catalogue import load
from raidlab.errors import InputError
from raidlab.reading import Plain
from raidlab.study.device import FIGURES, DeviceModel
from raidlab.study.places import Place, line_index
from raidlab.study.table_file import Reporter, shown_file, text_of
from raidlab.study.words import Bytes, Line, MomentNs, Name, Table, TimeNs

# Long enough that a write cache is full before anything is counted.
_WARM_UP_REQUESTS = 4000
_MEASURED_REQUESTS = 6000
_LONG: Mapping[str, Plain] = {"warmup": {"requests": _WARM_UP_REQUESTS}, "measure": {"requests": _MEASURED_REQUESTS}}
# How full the buckets of a throttle are.
_LEVELS = ("full", "empty")
_METRICS = {"MB/s": "throughput_mb_s", "IOPS": "iops", "ms": "response_time_ms_mean"}


class AskedFor(Table):
    """How long a device was asked."""

    warmup: MomentNs = 0
    """Before anything was counted."""
    measure: TimeNs
    """While it was."""

    @property
    def span(self) -> Mapping[str, Plain]:
        """The same as a study has it."""
        warmup: Plain = {"duration": f"{self.warmup}ns"} if self.warmup else {"requests": 0}
        return {"warmup": warmup, "measure": {"duration": f"{self.measure}ns"}}


class PublishedFigure(Table):
    """A figure that was printed of a device."""

    name: Name
    """What it is, in the words of its source; each of a device has its own."""
    value: Annotated[float, Field(gt=0)]
    unit: Literal["MB/s", "IOPS", "ms"]
    """Millions of bytes a second, requests a second, or their mean response time."""
    source: Line
    """Where it stands."""
    read: Annotated[float, Field(ge=0, le=1)]
    """The share of reads."""
    size: Bytes
    """Of a request."""
    address: Literal["random", "sequential"]
    span: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The share of the device that is used, from its front."""
    at: Literal["all", "front", "back"] = "all"
    """Where a sequential stream runs: `front` and `all` from the first address, `back` over the last ones."""
    depth: Annotated[int, Field(ge=1, le=1024)]
    """Requests outstanding."""
    initial: Literal["fresh", "filled", "steady", "full", "empty"] | None = None
    """The state in which a flash drive was, or a throttle, where the device file begins in another one."""
    turns: list[AskedFor] = []
    """How long it was asked, each time from the beginning, where that makes a difference: of a cache that fills, or a
    throttle's credit. The figure is that of all turns together; without any it is asked for long."""
    tolerance_percent: Annotated[float, Field(gt=0, le=100)] = 10.0
    """How far a model may be off."""


@dataclass(frozen=True)
class ComparedFigure:
    """A published figure beside the model's."""

    figure: PublishedFigure
    modelled: float

    @property
    def error_percent(self) -> float:
        """How much more the model gives."""
        return 100 * (self.modelled / self.figure.value - 1)

    @property
    def is_met(self) -> bool:
        """Whether that is within its tolerance."""
        return abs(self.error_percent) <= self.figure.tolerance_percent


class _Sheet(Table):
    """The figures of a device, so that a mistake in one is at the place that its file has it."""

    published: list[PublishedFigure]
    held_out: list[PublishedFigure]


def published_figures(model: DeviceModel) -> list[PublishedFigure]:
    """The figures that a device file prints or holds out; an `InputError` names every mistake in them."""
    text = "" if model.file is None else text_of(model.file, "a device file (TOML)")
    reporter = Reporter("" if model.file is None else shown_file(model.file), line_index(text))
    sheet = reporter.validated(_Sheet, {key: list(getattr(model, key)) for key in FIGURES})
    reporter.complain()
    assert sheet is not None, "figures without a mistake are a sheet"
    placed: list[tuple[Place, PublishedFigure]] = [
        ((key, index), figure) for key in FIGURES for index, figure in enumerate(getattr(sheet, key))
    ]
    _check(placed, model, reporter)
    reporter.complain()
    return [figure for _, figure in placed]


def _check(figures: Sequence[tuple[Place, PublishedFigure]], model: DeviceModel, reporter: Reporter) -> None:
    """What a figure may not ask of this device."""
    names = set()
    for place, figure in figures:
        if figure.name in names:
            reporter.add((*place, "name"), "stands twice", figure.name, "a name of its own each")
        names.add(figure.name)
        if figure.size % model.sector_bytes or figure.size > model.capacity_bytes:
            accepted = f"whole sectors of {model.sector_bytes} bytes, up to {model.capacity_bytes}"
            reporter.add((*place, "size"), "is no request to this device", figure.size, accepted)
        states = _states(model)
        if figure.initial is not None and figure.initial not in states:
            message = "is no state of this device"
            reporter.add((*place, "initial"), message, figure.initial, ", ".join(states) or "no such key")


def _states(model: DeviceModel) -> tuple[str, ...]:
    """What a device may have behind it at the start."""
    flash = ("fresh", "filled", "steady") if model.parameters["kind"] == "ssd" else ()
    return (*flash, *(_LEVELS if model.parameters.get("throttle") else ()))


def _in_state(parameters: dict[str, Plain], initial: str | None) -> dict[str, Plain]:
    """A device with this behind it."""
    buckets = parameters.get("throttle")
    if initial in _LEVELS and isinstance(buckets, list):
        return parameters | {"throttle": [bucket | {"initial": initial} for bucket in buckets]}
    return parameters if initial is None else parameters | {"initial": initial}


def compare_published(device: str, seed: int = 1) -> list[ComparedFigure]:
    """Run every published figure of a device in the simulator."""
    model = load(device)
    figures = published_figures(model)
    if not figures:
        message = "has no [[published]] or [[held_out]] figures to be held to"
        raise InputError.one("device", message, value=f"'{device}'", accepted="one that has, or --trace FILE")
    lasting = [figure for figure in figures if not figure.turns]
    modelled = {figure.name: _over_turns(model, figure, seed) for figure in figures if figure.turns}
    for initial in dict.fromkeys(figure.initial for figure in lasting):
        modelled |= _modelled(model, [figure for figure in lasting if figure.initial == initial], _LONG, seed)
    return [ComparedFigure(figure, modelled[figure.name]) for figure in figures]


def _modelled(
    model: DeviceModel, figures: list[PublishedFigure], span: Mapping[str, Plain], seed: int
) -> dict[str, float]:
    """What the model gives, by the names of the figures, which begin in one state."""
    parameters, works = _in_state(model.parameters, figures[0].initial), [_workload(one, model) for one in figures]
    with run_alone(parameters, works, [1], span, seed) as analysis:
        rows = {row["workload"]: row for row in analysis.table.iter_rows(named=True)}
    return {figure.name: float(rows[figure.name][_METRICS[figure.unit]]) for figure in figures}


def _over_turns(model: DeviceModel, figure: PublishedFigure, seed: int) -> float:
    """What the model gives in all turns of a figure, each weighted by its time."""
    found = [_modelled(model, [figure], turn.span, seed + at)[figure.name] for at, turn in enumerate(figure.turns)]
    times = [turn.measure for turn in figure.turns]
    return sum(value * time for value, time in zip(found, times, strict=True)) / sum(times)


def _workload(figure: PublishedFigure, model: DeviceModel) -> Mapping[str, Plain]:
    return {
        "name": figure.name,
        "read": figure.read,
        "size": figure.size,
        "address": _address(figure, model),
        "span": figure.span,
        "load": {"depths": [figure.depth]},
    }


def _address(figure: PublishedFigure, model: DeviceModel) -> Plain:
    if figure.address == "random":
        return "uniform"
    if figure.at != "back":
        return "sequential"
    size = figure.size
    count = min(_WARM_UP_REQUESTS + _MEASURED_REQUESTS + figure.depth, model.capacity_bytes // size)
    last = model.capacity_bytes // size * size
    return {"kind": "listed", "offset_bytes": [last - size * (count - i) for i in range(count)]}

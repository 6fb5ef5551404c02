"""A model beside the figures that were printed of its device, each run in the terms in which it was printed.

A device file has a `[[published]]` table for each: the load, the value and where it stands; of what was measured, but
not used when the device was fitted, a `[[held_out]]` table of the same form. They are run as one small study over one
device, so that what is compared is what every study of that device would find.

Invariant: the figures are never handed to the engine; the model knows its parameters only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raidlab.devices.alone import run_alone
from raidlab.devices.catalogue import load
from raidlab.errors import InputError
from raidlab.reading import Plain
from raidlab.study.device import DeviceModel
from raidlab.study.device_figures import LEVELS, PublishedFigure, published_figures

# Long enough that a write cache is full before anything is counted.
_WARM_UP_REQUESTS = 4000
_MEASURED_REQUESTS = 6000
_LONG: Mapping[str, Plain] = {"warmup": {"requests": _WARM_UP_REQUESTS}, "measure": {"requests": _MEASURED_REQUESTS}}
_METRICS = {"MB/s": "throughput_mb_s", "IOPS": "iops", "ms": "response_time_ms_mean"}


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


def _in_state(parameters: dict[str, Plain], initial: str | None) -> dict[str, Plain]:
    """A device with this behind it."""
    buckets = parameters.get("throttle")
    if initial in LEVELS and isinstance(buckets, list):
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

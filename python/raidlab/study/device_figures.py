"""Figures of a device that a model of it is held to, as its file has them: `[[published]]` and `[[held_out]]` tables.

A figure has the load under which it was printed, its value and where it stands; `raidlab.devices.published` runs it.

Invariant: a figure that is taken can be run: its requests and its state are such as the device has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from raidlab.reading import Plain
from raidlab.study.device import FIGURES, DeviceModel
from raidlab.study.places import Place, line_index
from raidlab.study.table_file import Reporter, shown_file, text_of
from raidlab.study.words import Bytes, Line, MomentNs, Name, Positive, Table, TimeNs

# How full the buckets of a throttle are.
LEVELS = ("full", "empty")


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
    value: Positive
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


class _Sheet(Table):
    """The figures of a device, so that a mistake in one is at the place that its file has it."""

    published: list[PublishedFigure]
    held_out: list[PublishedFigure]


def read_figures(model: DeviceModel, reporter: Reporter) -> list[PublishedFigure]:
    """The figures that a device prints or holds out; mistakes in them are noted at their places in the device."""
    sheet = reporter.validated(_Sheet, {key: list(getattr(model, key)) for key in FIGURES})
    if sheet is None:
        return []
    placed: list[tuple[Place, PublishedFigure]] = [
        ((key, index), figure) for key in FIGURES for index, figure in enumerate(getattr(sheet, key))
    ]
    _check(placed, model, reporter)
    return [figure for _, figure in placed]


def published_figures(model: DeviceModel) -> list[PublishedFigure]:
    """The figures that a device file prints or holds out; an `InputError` names every mistake in them."""
    text = "" if model.file is None else text_of(model.file, "a device file (TOML)")
    reporter = Reporter("" if model.file is None else shown_file(model.file), line_index(text))
    figures = read_figures(model, reporter)
    reporter.complain()
    return figures


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
    return (*flash, *(LEVELS if model.parameters.get("throttle") else ()))

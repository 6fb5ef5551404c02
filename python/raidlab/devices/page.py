"""The page of a device: what it was held to, what it does by itself, where each parameter comes from, with pictures.

Invariant: what is drawn is simulated, but for the rows of a table of times and the figures that a device was held to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import altair as alt

from raidlab.devices.alone import PERCENTILES, SMALL_BYTES, Alone, alone
from raidlab.devices.catalogue import DeviceFacts, describe, load, short_value
from raidlab.devices.published import ComparedFigure, compare_published
from raidlab.reading import Plain
from raidlab.report.figures.chart import (
    Axes,
    Mark,
    channel_by_name,
    colour_and_shape,
    data_of,
    layered,
    layered_bars,
    line_layer,
    names_at_left,
    point_layer,
    upward,
)
from raidlab.report.figures.figure import Chart, Figure, Panel, key_of
from raidlab.report.figures.style import COLOURS
from raidlab.report.figures.words import number, of_bars, of_lines
from raidlab.report.page import fill
from raidlab.report.sections import shown
from raidlab.results.provenance import version_facts
from raidlab.study.device import DeviceModel, fit_warning
from raidlab.study.device_figures import published_figures
from raidlab.study.units import format_bytes

_BAR = 22
_WORDS = dict(zip(PERCENTILES, ("median", "90 % within"), strict=True))


@dataclass(frozen=True)
class DevicePage:
    """What the page of a device holds."""

    facts: DeviceFacts
    compared: Sequence[ComparedFigure]
    alone: Alone
    figures: Sequence[Figure]
    warning: str | None


def device_page(device: str, seed: int = 1) -> DevicePage:
    """What the page of a device holds."""
    model = load(device)
    compared = compare_published(device, seed) if published_figures(model) else []
    found = alone(model, seed)
    figures = [*_held_to(device, compared), *_by_itself(device, found), *_table(device, model)]
    warning = fit_warning("this device", model.fit)
    return DevicePage(describe(device), compared, found, figures, warning)


def render_device_page(page: DevicePage, seed: int) -> str:
    """The page's text."""
    facts = page.facts
    return fill(
        "device.html.j2",
        facts=facts,
        title=facts.title or Path(facts.name).stem,
        headline=_headline(page),
        warning=page.warning,
        capacity=format_bytes(facts.capacity_bytes),
        compared=[(one, _error(one)) for one in page.compared],
        figures=[shown(one) for one in page.figures],
        parameters=list(_parameters(facts)),
        seed=seed,
        version=version_facts()["version"],
    )


def _headline(page: DevicePage) -> str:
    reads = page.alone.random["reads"]
    first, last = reads[0], reads[-1]
    said = (
        f"{number(first.per_s)} random reads of {format_bytes(SMALL_BYTES)} a second one at a time, "
        f"{number(last.per_s)} at queue depth {last.depth}."
    )
    if not page.compared:
        return said
    met, count = sum(one.is_met for one in page.compared), len(page.compared)
    worst = max(page.compared, key=lambda one: abs(one.error_percent))
    furthest = f"the furthest off is {worst.figure.name}, {_error(worst)}"
    if met == count:
        return f"{said} Every figure that it is held to ({count}) is met; {furthest}."
    return f"{said} Of {count} figures that it is held to {count - met} are missed; {furthest}."


def _error(one: ComparedFigure) -> str:
    """How far the model is off, without a zero that is less than nothing."""
    return f"{round(one.error_percent, 1) + 0.0:+.1f} %"


def _parameters(facts: DeviceFacts) -> Iterator[tuple[str, str, str, str]]:
    """Each parameter with its value, and where it comes from: a status and a reason."""
    for key, value in facts.parameters.items():
        status, why = facts.source_of(key) or ("", "")
        yield key, short_value(value), status, why


def _held_to(device: str, compared: Sequence[ComparedFigure]) -> Iterator[Figure]:
    if not compared:
        return
    marks = [
        Mark(
            one.figure.name,
            one.error_percent,
            interval=(-one.figure.tolerance_percent, one.figure.tolerance_percent),
            part="met" if one.is_met else "missed",
            tip=f"{one.figure.name}: {number(one.figure.value)} {one.figure.unit}, model {number(one.modelled)}",
        )
        for one in compared
    ]
    names = [mark.line for mark in marks]
    place = names_at_left(names)
    along = alt.X("low:Q", title="model against the figure, %")
    room = alt.Chart(data_of(marks)).mark_bar(opacity=0.2, height=_BAR - 8, aria=False, color=COLOURS[0])
    value = alt.Chart(data_of(marks)).mark_point(filled=True, size=70, opacity=1)
    looks = {"met": COLOURS[0], "missed": COLOURS[1]}
    legend = alt.Undefined if len({mark.part for mark in marks}) > 1 else None
    colour = channel_by_name(alt.Color, "part", looks, legend)
    points = value.encode(y=place, x=alt.X("value:Q"), color=colour, description="tip:N")
    chart = layered_bars([room.encode(y=place, x=along, x2="high:Q"), points], "", names, _BAR)
    alt_text = of_bars({one.figure.name: _error(one) for one in compared}, "error of the model")
    yield Figure(
        "device",
        key_of("device", device, "held to"),
        "What it is held to",
        "A dot is how far the simulated device is from a figure that was printed or held out; the bar is what may be.",
        (Panel("errors", chart, alt_text),),
    )


def _by_itself(device: str, found: Alone) -> Iterator[Figure]:
    rates = [
        Mark(name, one.per_s, x=float(one.depth), tip=f"{name}, queue depth {one.depth}: {number(one.per_s)} a second")
        for name, loads in found.random.items()
        for one in loads
    ]
    times = [
        Mark(f"{name}, {_WORDS[percentile]}", ms, x=float(one.depth), tip=f"queue depth {one.depth}: {number(ms)} ms")
        for name, loads in found.random.items()
        for one in loads
        for percentile, ms in one.within_ms.items()
    ]
    size = format_bytes(SMALL_BYTES)
    panels = [
        _lines(rates, f"{size} anywhere", "queue depth", "requests/s", x_scale=alt.Scale(type="log", base=2)),
        _lines(
            times, f"{size} anywhere", "queue depth", "response time (ms)", alt.Scale(type="log", base=2), is_log=True
        ),
    ]
    if found.seek_ms:
        seeks = [
            Mark("seek", time, x=100 * share, tip=f"over {100 * share:.3g} %") for share, time in found.seek_ms.items()
        ]
        panels.append(_lines(seeks, "the arm", "distance, % of the addresses", "seek (ms)", alt.Scale(), points=False))
    if found.rate_mb_s:
        places = [
            Mark("reads", rate, x=100 * share, tip=f"at {100 * share:.0f} %") for share, rate in found.rate_mb_s.items()
        ]
        panels.append(_lines(places, "one stream", "place, % of the addresses", "sequential reads (MB/s)", alt.Scale()))
    yield Figure(
        "device",
        key_of("device", device, "by itself"),
        "What it does by itself",
        "Simulated, one device. Times as users have them: from the request to its answer, waiting included.",
        tuple(panels),
    )


def _table(device: str, model: DeviceModel) -> Iterator[Figure]:
    """The times of a table, by depth: a line for each size, a panel for each operation."""
    rows = [row for row in _rows(model) if row.get("place") == "random" and "read" not in row]
    widest = max((_float(row.get("within_bytes")) for row in rows), default=0.0)
    rows = [row for row in rows if _float(row.get("within_bytes")) == widest]
    panels = []
    for op in sorted({str(row["op"]) for row in rows}):
        marks = [
            Mark(
                format_bytes(int(_float(row["bytes"]))),
                median(map(float, row["us"])) / 1e3,  # type: ignore[arg-type]
                x=_float(row["depth"]),
                tip=f"{op}, {format_bytes(int(_float(row['bytes'])))}, depth {row['depth']}",
            )
            for row in sorted(rows, key=lambda row: _float(row["bytes"]))
            if row["op"] == op
        ]
        scale = alt.Scale(type="log", base=2)
        panels.append(_lines(marks, f"random {op}s", "queue depth", "median service (ms)", scale, is_log=True))
    if panels:
        of = "The rows of its table" if len(rows) == len(_rows(model)) else f"{len(rows)} of {len(_rows(model))} rows"
        yield Figure(
            "device",
            key_of("device", device, "measured"),
            "What was measured",
            f"{of}, those of random requests anywhere: the median time in service, by size and by how many were "
            "outstanding. Others, of streams, mixes and near requests, are in the file.",
            tuple(panels),
        )


def _rows(model: DeviceModel) -> list[Mapping[str, Plain]]:
    rows = model.parameters.get("measured")
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _float(value: Plain | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _lines(
    marks: Sequence[Mark],
    title: str,
    x_title: str,
    y_title: str,
    x_scale: alt.Scale,
    *,
    is_log: bool = False,
    points: bool = True,
) -> Panel:
    names = list(dict.fromkeys(mark.line for mark in marks))
    colour, shape = colour_and_shape(names, names) if len(names) > 1 else colour_and_shape(names, names, None)
    depths = sorted({mark.x for mark in marks})
    axis = alt.Axis(values=depths) if x_scale.to_dict() and len(depths) < 10 else alt.Axis()
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(type="log")) if is_log else upward(y_title)
    axes = Axes(alt.X("x:Q", title=x_title, scale=x_scale, axis=axis), y, colour)
    layers = [line_layer(marks, axes), *([point_layer(marks, axes, shape)] if points else [])]
    chart: Chart = layered(layers, title)
    return Panel(title, chart, of_lines(marks, x_title, y_title))

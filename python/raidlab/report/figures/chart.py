"""What charts are made of: the marks in them, how lines are told apart, layers that several kinds of figures have.

Invariants:

- A line has its colour and its shape from its place among all names, not among those that are shown.
- Colour and shape share one legend.
- Only what can be pointed at carries a description: points and bars, no lines and no labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt

from raidlab.report.figures.figure import Chart
from raidlab.report.figures.style import CHART_WIDTH, PANEL_HEIGHT, PANEL_WIDTH, colours_of, label_room, shapes_of
from raidlab.wrapping import unparted, wrapped

# In pixels, what a letter of a name takes, a symbol of a legend with the gap behind its name, and what stands beside
# names and bars. Text is measured in a narrow font: these leave room for a reader's, which may be an eighth wider.
_LETTER, _SYMBOL, _BESIDE = 6.6, 52, 22
# A line of a name beside a bar, and how high it is.
_NAME_LETTERS, _NAME_LINE = 22, 14
# The widest letter of a figure at the right of bars, and the gap before it.
_FIGURE_LETTER, _FIGURE_GAP = 8, 14
DASHED = [5, 4]
# A panel whose lines reach less of a common axis has one of its own.
_FLATTEST = 3.0


@dataclass(frozen=True)
class Mark:
    """One place in a chart: a point of a line, a bar or a part of one."""

    line: str
    """The line or bar that it belongs to."""
    value: float
    """What is measured, in the unit of its axis."""
    x: float = 0.0
    """Where it stands along the other axis, if that is one of numbers."""
    interval: tuple[float, float] | None = None
    """From where to where a stroke goes through it."""
    part: str = ""
    """Of a line or bar of several parts: which one."""
    rank: int = 0
    """The place of that part among them."""
    level: float | None = None
    """The load behind it, where lines pass through their points in the order of loads."""
    label: str = ""
    """What stands beside it."""
    tip: str = ""
    """What is shown where it is pointed at."""

    @property
    def has_stroke(self) -> bool:
        """Whether its interval has a width."""
        return self.interval is not None and self.interval[1] > self.interval[0]

    @property
    def high(self) -> float:
        """How far it reaches, its interval included."""
        return self.value if self.interval is None else self.interval[1]


class Axes(NamedTuple):
    """Where marks stand, and by which colour their lines are told apart."""

    x: alt.X
    y: alt.Y
    color: alt.Color


def data_of(marks: Iterable[Mark]) -> alt.InlineData:
    """Marks as the data of a chart, which travel inside it; an interval is ``low`` and ``high`` there."""
    rows = []
    for mark in marks:
        row = {key: value for key, value in vars(mark).items() if value not in (None, "") and key != "interval"}
        rows.append(row if mark.interval is None else row | {"low": mark.interval[0], "high": mark.interval[1]})
    return alt.InlineData(values=rows)


def shown_of(names: Iterable[str], marks: Iterable[Mark]) -> list[str]:
    """Those of some names of lines that there are marks of."""
    lines = {mark.line for mark in marks}
    return [name for name in names if name in lines]


def channel_by_name(
    channel: Any, field: str, by_name: Mapping[str, str | list[int]], legend: Any = alt.Undefined
) -> Any:
    """A channel (such as `altair.Color`) in which each name of a field has a look of its own."""
    names = list(by_name)
    scale = alt.Scale(domain=names, range=list(by_name.values()))
    return channel(f"{field}:N", title=None, sort=names, scale=scale, legend=legend)


def colour_and_shape(
    names: Sequence[str], shown: Sequence[str], legend: Any = alt.Undefined
) -> tuple[alt.Color, alt.Shape]:
    """The colour and the shape of each line that is shown, from its place among all names.

    Without a legend of its own a chart has one with as many columns as the names leave room for.
    """
    legend = alt.Legend(columns=columns_for(shown)) if legend is alt.Undefined else legend
    colours, shapes = colours_of(names), shapes_of(names)
    return (
        channel_by_name(alt.Color, "line", {name: colours[name] for name in shown}, legend),
        channel_by_name(alt.Shape, "line", {name: shapes[name] for name in shown}, legend),
    )


def columns_for(shown: Iterable[str], most: int = 4) -> int:
    """How many names of a legend stand side by side below a panel."""
    longest = max(map(len, shown), default=0)
    return max(1, min(most, int((PANEL_WIDTH + _SYMBOL / 2) / (_LETTER * longest + _SYMBOL))))


def names_at_left(names: Sequence[str]) -> alt.Y:
    """The axis of bars: a name each, on as many lines as it needs."""
    lines = f"({json.dumps({name: _lines_of(name) for name in names})})[datum.label]"
    # A name of two lines has its bar between them.
    base = {"condition": {"test": f"length({lines}) > 1", "value": "bottom"}, "value": "middle"}
    axis = alt.Axis(ticks=False, domain=False, labelLimit=230, labelExpr=lines, labelBaseline=base)
    return alt.Y("line:N", sort=list(names), title=None, axis=axis)


def _lines_of(name: str) -> list[str]:
    return wrapped(unparted(name), width=_NAME_LETTERS)


def _letters_of(names: Iterable[str]) -> int:
    """How many letters the longest line of names at the left has."""
    return max((len(line) for name in names for line in _lines_of(name)), default=0)


def bars_width(names: Iterable[str]) -> int:
    """How wide a plot of bars is beside their names, in pixels."""
    return min(PANEL_WIDTH, int(CHART_WIDTH - _BESIDE - _LETTER * _letters_of(names)))


def room_at_right(labels: Mapping[str, str], least: float = 1.25) -> float:
    """How much further than its longest bar an axis reaches, that their figures find room; by the names of bars."""
    room = (max(map(len, labels.values()), default=0) * _FIGURE_LETTER + _FIGURE_GAP) / bars_width(labels)
    return max(least, 1 / (1 - min(room, 0.75)))


def upward(title: str, most: float | None = None) -> alt.Y:
    """The axis of values of a chart of lines, from 0; to ``most``, where panels beside each other have one axis."""
    domain = [0.0, most] if most else alt.Undefined
    scale = alt.Scale(zero=True, nice=True, domain=domain)
    return alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))


def most_of(panels: Iterable[Iterable[Mark]]) -> float | None:
    """The end of an axis that panels share; None where one of them would be too flat to be read."""
    tops = [max((mark.high for mark in marks), default=0.0) for marks in panels]
    return max(tops) if tops and 0 < max(tops) <= _FLATTEST * min(tops) else None


def line_layer(
    marks: Iterable[Mark], axes: Axes, *, order: str = "x", width: float = 2, dash: Any = alt.Undefined
) -> Any:
    """Lines through marks, in the order of one of their fields, as a layer."""
    drawn = alt.Chart(data_of(marks)).mark_line(strokeWidth=width, strokeDash=dash, aria=False)
    return drawn.encode(x=axes.x, y=axes.y, color=axes.color, order=alt.Order(f"{order}:Q"))


def point_layer(marks: Iterable[Mark], axes: Axes, shape: alt.Shape, *, size: int = 50, filled: bool = True) -> Any:
    """Marks as points that say what they are, as a layer."""
    drawn = alt.Chart(data_of(marks)).mark_point(filled=filled, size=size, opacity=1)
    return drawn.encode(x=axes.x, y=axes.y, color=axes.color, shape=shape, description="tip:N")


def upright_strokes(marks: Iterable[Mark], axes: Axes, y_title: str) -> list[Any]:
    """A stroke over the interval of each mark that has one, as a layer; none where none has."""
    spans = [mark for mark in marks if mark.has_stroke]
    rule = alt.Chart(data_of(spans)).mark_rule(strokeWidth=1.2, opacity=0.7, aria=False)
    low = alt.Y("low:Q", title=y_title)
    return [rule.encode(x=axes.x, y=low, y2="high:Q", color=axes.color)] if spans else []


def level_strokes(marks: Iterable[Mark], place: alt.Y, along: alt.X, **encoding: Any) -> list[Any]:
    """The same for bars: ``along`` is the axis of the field ``low``."""
    spans = [mark for mark in marks if mark.has_stroke]
    rule = alt.Chart(data_of(spans)).mark_rule(strokeWidth=1.5, aria=False)
    return [rule.encode(y=place, x=along, x2="high:Q", **encoding)] if spans else []


def labels_at_right(marks: Iterable[Mark], place: alt.Y, *, size: int = 12, **encoding: Any) -> Any:
    """The label of each bar at the right edge of the panel, as a layer."""
    text = alt.Chart(data_of(marks)).mark_text(
        align="right", baseline="middle", fontSize=size, fontWeight=600, dx=-2, aria=False
    )
    return text.encode(y=place, x=alt.value("width"), text="label:N", **encoding)


def layered(layers: Sequence[Any], title: str, width: int = PANEL_WIDTH, height: int = PANEL_HEIGHT) -> Chart:
    """Layers as the chart of a panel."""
    return alt.LayerChart(layer=list(layers)).properties(width=width, height=height, title=title)


def layered_bars(layers: Sequence[Any], title: str, names: Sequence[str], step: int, beside: int = 0) -> Chart:
    """Layers of bars, each so many pixels high at least, with room for names and ``beside`` them, at the right."""
    lines = max((len(_lines_of(name)) for name in names), default=1)
    step = max(step, 6 + _NAME_LINE * lines)
    chart = layered(layers, title, bars_width(names) - beside, step * max(len(names), 1))
    return chart.properties(padding=label_room(_letters_of(names)))

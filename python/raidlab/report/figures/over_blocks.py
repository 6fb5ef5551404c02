"""What figures over block size and over the amount moved have in common: a panel for reads, one for writes.

Invariants:

- A point is all its runs together; the stroke through it goes from the lowest of them to the highest.
- Logarithmic axes begin where the data do, linear ones at zero. What spans less than a factor of ten stands on a linear
  axis, so that small differences do not look large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric, Point
from raidlab.published.quantities import NotThereError, Reading, Source, checked_measure
from raidlab.published.quantities.metric import reading_of
from raidlab.report.figures.chart import (
    Axes,
    Mark,
    colour_and_shape,
    columns_for,
    layered,
    line_layer,
    point_layer,
    shown_of,
    upright_strokes,
    upward,
)
from raidlab.report.figures.figure import Chart, Panel
from raidlab.report.figures.own import axis_title, metrics_of
from raidlab.report.figures.printed_points import Printed, hollow_layers, in_words
from raidlab.report.figures.words import number, of_lines
from raidlab.study.figure import StudyFigure
from raidlab.study.workload import Workload

RUNS = "Strokes: the lowest and the highest of the runs."
_KIB = 1024
_MOST_TICKS = 11
_SPAN = 10


@dataclass(frozen=True)
class LinePoint:
    """A point of a line: where it stands, and what was measured there."""

    line: str
    x: float
    point: Point
    is_read: bool


def panels(
    spec: StudyFigure, measured: Sequence[LinePoint], names: list[str], x_title: str, printed: Printed
) -> Iterator[Panel]:
    """A panel for reads and one for writes, as far as anything was measured."""
    for metric in metrics_of(spec):
        drawn = []
        for title, is_read in (("read", True), ("write", False)):
            mine = [one for one in measured if one.is_read == is_read]
            read = [(one, _reading(one.point, metric, spec, printed.source)) for one in mine]
            found = [
                (_mark(one, metric, x_title, reading), one.point) for one, reading in read if reading and reading.value
            ]
            marks = [mark for mark, _ in found]
            over = [
                hollow for mark, point in found for hollow in printed.over(mark, point.array, point.workload, point)
            ]
            if marks:
                drawn.append((title, marks, over))
        # Reads stand beside writes to be compared: one axis for both.
        together = [mark for _, marks, over in drawn for mark in [*marks, *over]]
        for title, marks, over in drawn:
            chart = _chart(marks, over, together, names, spec, metric, title, x_title)
            yield Panel(title, chart, of_lines(marks, x_title, axis_title([metric])) + in_words(over))


def sizes_of(analysis: Analysis, spec: StudyFigure) -> list[tuple[Workload, int]]:
    """The figure's workloads with requests of one size, and that size."""
    named = {workload.name: workload for workload in analysis.run.study.workload}
    listed = [named[name] for name in spec.workloads]
    return [(workload, workload.size.bytes) for workload in listed if workload.size.kind == "fixed"]


def swept_point(analysis: Analysis, target: str, array: str, workload: str) -> Point | None:
    """The point at the heaviest load of an array under a workload."""
    mine = analysis.swept(target, workload, array=array)
    return max(mine, key=lambda point: point.level_value, default=None)


def _reading(point: Point, metric: Metric, spec: StudyFigure, source: Source) -> Reading | None:
    """What is drawn of a point: the figure's own measure, or the metric."""
    if spec.measure is None:
        return reading_of(point, lambda one: metric.compute(one, None))
    try:
        # A run in which nothing completed is drawn too: its stroke begins at the axis.
        kind, keys = checked_measure({**spec.measure, "array": point.array, "workload": point.workload})
        found = kind.read(keys, source)
    except NotThereError:
        return None
    return None if found is None else found.times(spec.times)


def _mark(one: LinePoint, metric: Metric, x_title: str, reading: Reading) -> Mark:
    value, known = reading.value, reading.each or (reading.value,)
    low, high = min(known), max(known)
    runs = f" (runs {number(low)} to {number(high)})" if high > low else ""
    tip = f"{one.line}, {x_title} {number(one.x)}: {metric.title} {number(value)} {metric.unit}{runs}"
    return Mark(one.line, value, one.x, (low, high), tip=tip)


def _chart(
    marks: list[Mark],
    over: list[Mark],
    together: list[Mark],
    names: list[str],
    spec: StudyFigure,
    metric: Metric,
    title: str,
    x_title: str,
) -> Chart:
    y_title = axis_title([metric])
    linear = upward(y_title, max(mark.high for mark in together))
    if spec.scale == "log":
        xs = {mark.x for mark in marks}
        ends = [end for mark in together for end in mark.interval or () if end > 0]
        marks = [_from(mark, min(ends)) for mark in marks]
        # Sizes are few and speak for themselves; of amounts there is one for each size and number, and few are round.
        speak = len(xs) <= _MOST_TICKS and all((2 * x).is_integer() for x in xs)
        ticks = sorted(xs) if speak else _decades(min(xs), max(xs))
        place = alt.X(
            "x:Q",
            title=f"{x_title}, log scale",
            scale=alt.Scale(type="log", base=2, nice=False, padding=10),
            axis=alt.Axis(values=ticks, format="~g", labelOverlap="greedy"),
        )
        logarithmic = alt.Y(
            "value:Q",
            title=y_title,
            scale=alt.Scale(type="log", nice=False, padding=8, domain=[min(ends), max(ends)]),
            axis=alt.Axis(values=_ticks(min(ends), max(ends)), format="~g"),
        )
        height = logarithmic if max(ends) >= _SPAN * min(ends) else linear
    else:
        scale = alt.Scale(zero=True, nice=True)
        place, height = alt.X("x:Q", title=x_title, scale=scale, axis=alt.Axis(tickCount=6)), linear
    shown = shown_of(names, marks)
    colour, shape = colour_and_shape(names, shown, alt.Legend(columns=columns_for(shown), labelLimit=300))
    axes = Axes(place, height, colour)
    layers = [
        line_layer(marks, axes, width=1.8),
        *upright_strokes(marks, axes, y_title),
        point_layer(marks, axes, shape, size=45),
        *hollow_layers(over, axes, shape, y_title),
    ]
    return layered(layers, title)


def _from(mark: Mark, least: float) -> Mark:
    """A mark whose stroke begins no lower than the axis: a run in which nothing was done in time has no logarithm."""
    if mark.interval is None or mark.interval[0] >= least:
        return mark
    return replace(mark, interval=(least, max(least, mark.interval[1])))


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... within the data of a logarithmic axis."""
    return [tick for one in _decades(low, high) for step in (1, 2, 5) if low / 2 <= (tick := step * one) <= high * 2]


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten from below the data to above them."""
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def kib(size_bytes: int) -> float:
    """A size in KiB."""
    return size_bytes / _KIB

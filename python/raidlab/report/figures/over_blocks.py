"""What figures over block size and over the amount moved have in common: a panel for reads, one for writes.

Invariants:

- A point is all its runs together; the stroke through it goes from the lowest of them to the highest.
- Logarithmic axes begin where the data do, linear ones at zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric, Point
from raidlab.report.figures.channels import columns_for, strokes, told_apart
from raidlab.report.figures.figure import Chart, Panel, data_of
from raidlab.report.figures.own import BY_KIND, axis_title
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.report.figures.words import lines_in, number, of_lines
from raidlab.study.figure import StudyFigure
from raidlab.study.workload import Workload

RUNS = "Strokes: the lowest and the highest of the runs."
_WIDTH, _HEIGHT = PANEL_WIDTH + 60, PANEL_HEIGHT + 50
_KIB = 1024
_MOST_TICKS = 11


@dataclass(frozen=True)
class Mark:
    """A point of a line: where it stands, and what was measured there."""

    line: str
    x: float
    point: Point


def panels(
    spec: StudyFigure, marks: Iterable[tuple[Workload, Mark]], names: list[str], x_title: str
) -> Iterator[Panel]:
    """A panel for reads and one for writes, as far as there are marks."""
    metric = BY_KIND.get(spec.metrics[0])
    found = list(marks)
    if metric is None:
        return
    for title, reads in (("read", True), ("write", False)):
        rows = [row for workload, mark in found if (workload.read > 0) == reads for row in _row(mark, metric, x_title)]
        if rows:
            yield Panel(title, _chart(rows, names, spec, metric, title, x_title), _alt_text(rows, metric, x_title))


def _alt_text(rows: list[dict[str, Any]], metric: Metric, x_title: str) -> str:
    return of_lines(lines_in(rows, "x", "value"), x_title, axis_title([metric]))


def sizes_of(analysis: Analysis, spec: StudyFigure) -> list[tuple[Workload, int]]:
    """The figure's workloads with requests of one size, and that size."""
    named = {workload.name: workload for workload in analysis.run.study.workload}
    listed = [named[name] for name in spec.workloads]
    return [(workload, workload.size.bytes) for workload in listed if workload.size.kind == "fixed"]


def swept_point(analysis: Analysis, target: str, array: str, workload: str) -> Point | None:
    """The point at the heaviest load of an array under a workload."""
    mine = [
        point
        for point in analysis.points
        if point.is_swept and (point.target, point.array, point.workload) == (target, array, workload)
    ]
    return max(mine, key=lambda point: point.level_value, default=None)


def _row(mark: Mark, metric: Metric, x_title: str) -> Iterator[dict[str, Any]]:
    value = metric.compute(mark.point, None)
    each = [metric.compute(replace(mark.point, rows=(row,)), None) for row in mark.point.rows]
    known = [one for one in each if one is not None]
    if value:
        low, high = min(known), max(known)
        runs = f" (runs {number(low)} to {number(high)})" if high > low else ""
        tip = f"{mark.line}, {x_title} {number(mark.x)}: {metric.title} {number(value)} {metric.unit}{runs}"
        yield {"line": mark.line, "x": mark.x, "value": value, "low": low, "high": high, "tip": tip}


def _chart(
    rows: list[dict[str, Any]], names: list[str], spec: StudyFigure, metric: Metric, title: str, x_title: str
) -> Chart:
    shown = [name for name in names if any(row["line"] == name for row in rows)]
    is_log = spec.scale == "log"
    places = [row["x"] for row in rows]
    # Sizes are few and speak for themselves; of amounts there is one for each size and number.
    ticks = sorted(set(places)) if len(set(places)) <= _MOST_TICKS else _decades(min(places), max(places))
    place = alt.X(
        "x:Q",
        title=f"{x_title}, log scale" if is_log else x_title,
        scale=alt.Scale(type="log", base=2, nice=False, padding=10) if is_log else alt.Scale(zero=True, nice=True),
        axis=alt.Axis(values=ticks, format="~g", labelOverlap="greedy") if is_log else alt.Axis(tickCount=6),
    )
    heights = [row[key] for row in rows for key in ("low", "high")]
    height = alt.Y(
        "value:Q",
        title=axis_title([metric]),
        scale=alt.Scale(type="log", nice=False, padding=8) if is_log else alt.Scale(zero=True, nice=True),
        axis=alt.Axis(values=_ticks(min(heights), max(heights)), format="~g") if is_log else alt.Axis(tickCount=5),
    )
    legend = alt.Legend(columns=columns_for(shown, most=4), labelLimit=300)
    colour, shape = told_apart("line", names, shown, legend)
    base = alt.Chart(data_of(rows)).encode(x=place, y=height, color=colour, order=alt.Order("x:Q"))
    layers: list[Any] = [base.mark_line(strokeWidth=1.8, aria=False)]
    layers += strokes(rows, place, axis_title([metric]), colour)
    layers.append(base.mark_point(filled=True, size=45, opacity=1).encode(shape=shape, description="tip:N"))
    return alt.LayerChart(layer=layers).properties(width=_WIDTH, height=_HEIGHT, title=title)


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... within the data of a logarithmic axis."""
    return [tick for one in _decades(low, high) for step in (1, 2, 5) if low / 2 <= (tick := step * one) <= high * 2]


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten from below the data to above them."""
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def kib(size_bytes: int) -> float:
    """A size in KiB."""
    return size_bytes / _KIB

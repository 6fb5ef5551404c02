"""A metric against response time, one line an array, its points the loads of a sweep: what is won for what is waited.

Up and to the left is better. With `of_maximum` a line is in percent of its own greatest value, which shows how soon it
comes near it. The dashed line is the response-time target, where the workload has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.figures.channels import strokes, told_apart
from raidlab.figures.figure import Chart, Figure, Panel, data_of
from raidlab.figures.own import BY_KIND, Line, axis_title, interval_of, lines_of, own_figures
from raidlab.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.figures.throughput_against_p90 import target_ms, ticks_between
from raidlab.figures.words import lines_in, number, of_lines
from raidlab.metrics import Analysis, Metric
from raidlab.study.figure import StudyFigure

KIND = "trade_off"
_CAPTION = "Each point is one load of the sweep; up and to the left is better. Dashed: the response-time target."


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, _CAPTION, _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    height, along = BY_KIND.get(spec.metrics[0]), BY_KIND.get(spec.against)
    if height is None or along is None:
        return
    for workload in spec.workloads:
        lines = lines_of(spec, workload)
        rows = [row for line in lines for row in _rows(analysis, spec, target, line, height, along)]
        if rows:
            mark = target_ms(analysis, target, workload) if along.unit == "ms" else None
            chart = _chart(rows, [line.name for line in lines], spec, height, along, workload, mark)
            yield Panel(workload, chart, _alt_text(rows, spec, height, along))


def _alt_text(rows: list[dict[str, Any]], spec: StudyFigure, height: Metric, along: Metric) -> str:
    return of_lines(lines_in(rows, "x", "value", order="level"), axis_title([along]), _y_title(spec, height))


def _y_title(spec: StudyFigure, height: Metric) -> str:
    return f"{height.title}, % of its own maximum" if spec.of_maximum else axis_title([height])


def _rows(
    analysis: Analysis, spec: StudyFigure, target: str, line: Line, height: Metric, along: Metric
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for point in analysis.points:
        mine = point.is_swept and (point.target, point.array, point.workload) == (target, line.array, line.workload)
        value, x = (height.compute(point, None), along.compute(point, None)) if mine else (None, None)
        # A time of 0 has no place on a logarithmic axis.
        if value is None or not x:
            continue
        low, high = interval_of(point, height) or (value, value)
        what = f"{height.title} {number(value)} {height.unit} at {along.title} {number(x)} {along.unit}"
        tip = f"{line.name}, {point.level}: {what}"
        row = {"line": line.name, "level": point.level_value, "x": x, "value": value, "low": low, "high": high}
        rows.append({**row, "tip": tip})
    most = max((row["value"] for row in rows), default=0.0)
    if spec.of_maximum and most:
        shares = [{key: 100 * row[key] / most for key in ("value", "low", "high")} for row in rows]
        return [
            {**row, **share, "tip": f"{row['tip']}, {share['value']:.0f} % of its maximum"}
            for row, share in zip(rows, shares, strict=True)
        ]
    return rows


def _chart(
    rows: list[dict[str, Any]],
    names: list[str],
    spec: StudyFigure,
    height: Metric,
    along: Metric,
    title: str,
    mark: float | None,
) -> Chart:
    shown = [name for name in names if any(row["line"] == name for row in rows)]
    y_title = _y_title(spec, height)
    place = alt.X(
        "x:Q",
        title=f"{axis_title([along])}, log scale",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=ticks_between([row["x"] for row in rows]), format="~g", labelOverlap="greedy"),
    )
    scale = alt.Scale(zero=True, nice=True)
    colour, shape = told_apart("line", names, shown)
    base = alt.Chart(data_of(rows)).encode(
        x=place,
        y=alt.Y("value:Q", title=y_title, scale=scale, axis=alt.Axis(tickCount=5)),
        color=colour,
        order=alt.Order("level:Q"),
    )
    layers: list[Any] = []
    if mark is not None:
        layers.append(
            alt.Chart(data_of([{"x": mark}])).mark_rule(strokeDash=[5, 4], opacity=0.6, aria=False).encode(x="x:Q")
        )
    layers += strokes(rows, place, y_title, colour, scale)
    layers.append(base.mark_line(strokeWidth=2, aria=False))
    layers.append(base.mark_point(filled=True, size=50, opacity=1).encode(shape=shape, description="tip:N"))
    return alt.LayerChart(layer=layers).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=title)

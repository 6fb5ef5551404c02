"""A metric against response time, one line an array, its points the loads of a sweep: what is won for what is waited.

Up and to the left is better. With `of_maximum` a line is in percent of its own greatest value, which shows how soon it
comes near it. The dashed line is the response-time target, where the workload has one; diamonds on it: what was held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric
from raidlab.report.figures.channels import strokes, told_apart
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.held_points import held_point, in_words, layers_of, with_target
from raidlab.report.figures.own import BY_KIND, Line, axis_title, interval_of, lines_of, own_figures, source_of
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.report.figures.throughput_against_p90 import target_ms, ticks_between
from raidlab.report.figures.words import lines_in, number, of_lines
from raidlab.study.figure import StudyFigure

KIND = "trade_off"
_CAPTION = "Each point is one load of the sweep; up and to the left is better."
# What is held at a target is a throughput: these are it, of so much of the array.
_THROUGHPUTS = {"throughput_mb_s", "throughput_per_disk_mb_s"}


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, with_target(_CAPTION, analysis), _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    height, along = BY_KIND.get(spec.metrics[0]), BY_KIND.get(spec.against)
    if height is None or along is None:
        return
    for workload in spec.workloads:
        lines = lines_of(spec, workload)
        found = [(line, mine) for line in lines if (mine := _rows(analysis, spec, target, line, height, along))]
        rows = [row for _, mine in found for row in mine]
        if rows:
            mark = target_ms(analysis, target, workload) if along.unit == "ms" else None
            held = [one for line, mine in found for one in _held(analysis, spec, target, line, mine, height, along)]
            chart = _chart(rows, held, [line.name for line in lines], spec, height, along, workload, mark)
            yield Panel(workload, chart, _alt_text(rows, spec, height, along) + in_words(held, "line", "value"))


def _alt_text(rows: list[dict[str, Any]], spec: StudyFigure, height: Metric, along: Metric) -> str:
    what = f"{height.title}, {_y_title(spec, height)}" if spec.of_maximum else _y_title(spec, height)
    return of_lines(lines_in(rows, "x", "value", order="level"), axis_title([along]), what)


def _y_title(spec: StudyFigure, height: Metric) -> str:
    return "% of its own maximum" if spec.of_maximum else axis_title([height])


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
        rows.append({**row, "absolute": value, "tip": tip})
    most = max((row["value"] for row in rows), default=0.0)
    if spec.of_maximum and most:
        shares = [{key: 100 * row[key] / most for key in ("value", "low", "high")} for row in rows]
        return [
            {**row, **share, "tip": f"{row['tip']}, {share['value']:.0f} % of its maximum"}
            for row, share in zip(rows, shares, strict=True)
        ]
    return rows


def _held(
    analysis: Analysis,
    spec: StudyFigure,
    target: str,
    line: Line,
    rows: list[dict[str, Any]],
    height: Metric,
    along: Metric,
) -> Iterator[dict[str, Any]]:
    """What the line's array holds, in the measure of its other points; none where something else is held or drawn."""
    held = held_point(analysis, target, line.array, line.workload) if height.kind in _THROUGHPUTS else None
    if held is None or along.kind != f"response_time_ms_p{held.percentile:g}":
        return
    disks = source_of(analysis, target).points_of(line.array, line.workload)[0].disks
    value = held.mb_s / (disks if height.kind == "throughput_per_disk_mb_s" else 1)
    row = {"line": line.name, "x": held.target_ms, "value": value, **held.row(line.name, value, height.unit)}
    most = max(one["absolute"] for one in rows)
    if spec.of_maximum and most:
        share = 100 * value / most
        row |= {"value": share, "tip": f"{row['tip']}, {share:.0f} % of its maximum"}
    yield row


def _chart(
    rows: list[dict[str, Any]],
    held: list[dict[str, Any]],
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
    upright = alt.Y("value:Q", title=y_title, scale=scale, axis=alt.Axis(tickCount=5))
    below = strokes(rows, place, y_title, colour, scale)
    layers = layers_of(rows, held, ("line", "x"), (place, upright), (colour, shape), mark, size=50, below=below)
    return alt.LayerChart(layer=layers).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=title)

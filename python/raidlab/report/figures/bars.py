"""Metrics at one load as bars, one an array; several metrics are parts of one whole, stacked.

The load is the one of most throughput, the heaviest, or a depth; it stands beside the figure. A further metric may be
marked on each bar, such as what its parts should add up to. Parts that are rates over different times have no sum: the
figure beside the bar gives each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.own import BY_KIND, Line, axis_title, interval_of, lines_of, own_figures
from raidlab.report.figures.style import INK, PANEL_WIDTH, label_room
from raidlab.report.figures.words import alike, number, of_bars
from raidlab.study.figure import StudyFigure

KIND = "bars"
# Longer names of parts stand below one another.
_LONG_PART = 24
_BAR_STEP = 26
# Rates of streams, each over the time to its own end: nothing ever went as fast as they add up to.
_OVER_OWN_TIMES = {"streams_read_mb_s", "streams_write_mb_s"}
# The widest letter of a figure, and the gap between it and a bar, in pixels.
_LETTER, _LABEL_GAP = 8, 14
# One for a bar of one part; parts have colours that no array has.
_COLOURS = ("#0072B2", "#A79FD0", "#8C8C8C", "#B5305F", "#54278F", "#E3C27B")


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, "", _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    for workload in spec.workloads:
        rows: list[dict[str, Any]] = []
        names: list[str] = []
        for line in lines_of(spec, workload):
            point = _chosen(analysis, spec, target, line)
            found = [] if point is None else _parts(spec, line, point)
            if found:
                names.append(line.name)
                rows += found
        if rows:
            metrics = [BY_KIND[kind] for kind in spec.metrics if kind in BY_KIND]
            labels = labels_of(rows, names, spec)
            yield Panel(workload, _chart(rows, labels, spec, workload), of_bars(labels, axis_title(metrics)))


def labels_of(rows: list[dict[str, Any]], names: list[str], spec: StudyFigure) -> dict[str, str]:
    """The figure beside each bar: what its parts add up to, or each of those that have no sum; all alike."""
    parts = {name: [row["value"] for row in rows if row["line"] == name] for name in names}
    if not _OVER_OWN_TIMES.issuperset(spec.metrics):
        parts = {name: [sum(values)] for name, values in parts.items()}
    decimals = alike(value for values in parts.values() for value in values)
    return {
        name: " + ".join(f"{value:,.{decimals}f}" for value in values if value) or "0" for name, values in parts.items()
    }


def _chosen(analysis: Analysis, spec: StudyFigure, target: str, line: Line) -> Point | None:
    mine = [
        point
        for point in analysis.points
        if point.is_swept and (point.target, point.array, point.workload) == (target, line.array, line.workload)
    ]
    if spec.at == "maximum":
        return max(mine, key=lambda point: point.per_s("all_bytes"), default=None)
    if spec.at == "heaviest":
        return max(mine, key=lambda point: point.level_value, default=None)
    return next((point for point in mine if point.load == "closed" and point.depth == spec.at), None)


def _parts(spec: StudyFigure, line: Line, point: Point) -> list[dict[str, Any]]:
    metrics = [BY_KIND[kind] for kind in spec.metrics if kind in BY_KIND]
    values = [metric.compute(point, None) for metric in metrics]
    if not values or None in values:
        return []
    mark = BY_KIND[spec.mark].compute(point, None) if spec.mark in BY_KIND else None
    interval = interval_of(point, metrics[0]) if len(metrics) == 1 else None
    sure = "" if interval is None else f" (95 % interval {number(interval[0])} to {number(interval[1])})"
    return [
        {
            "line": line.name,
            "part": metric.title,
            "rank": rank,
            "value": value,
            "mark": mark,
            "tip": f"{line.name}, {point.level}: {metric.title} {number(value)} {metric.unit}{sure}",
        }
        for rank, (metric, value) in enumerate(zip(metrics, values, strict=True))
    ]


def _chart(rows: list[dict[str, Any]], labels: dict[str, str], spec: StudyFigure, title: str) -> Chart:
    names = list(labels)
    metrics = [BY_KIND[kind] for kind in spec.metrics if kind in BY_KIND]
    parts = [metric.title for metric in metrics]
    most = max(sum(row["value"] for row in rows if row["line"] == name) for name in names)
    marked = [row for row in rows if row["rank"] == 0 and row["mark"] is not None]
    most = max(most, *(row["mark"] for row in marked)) if marked else most
    # Room at the right for the figure behind the longest bar.
    room = (max(map(len, labels.values())) * _LETTER + _LABEL_GAP) / PANEL_WIDTH
    scale = alt.Scale(domain=[0, most * max(1.25, 1 / (1 - room)) or 1.0], nice=False)
    place = alt.Y("line:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=200))
    bar = alt.Chart(data_of(rows)).mark_bar(height=16, opacity=0.9)
    drawn = bar.encode(
        y=place,
        x=alt.X("value:Q", title=axis_title(metrics), stack="zero", scale=scale, axis=alt.Axis(tickCount=5)),
        color=alt.Color(
            "part:N",
            title=None,
            sort=parts,
            scale=alt.Scale(domain=parts, range=list(_COLOURS[: len(parts)])),
            legend=alt.Legend(columns=1 if max(map(len, parts)) > _LONG_PART else 2) if len(parts) > 1 else None,
        ),
        order=alt.Order("rank:Q"),
        description="tip:N",
    )
    ends = [{"line": name, "label": label} for name, label in labels.items()]
    text = alt.Chart(data_of(ends)).mark_text(align="right", baseline="middle", fontSize=12, fontWeight=600, aria=False)
    labels = text.encode(y=place, x=alt.value(PANEL_WIDTH - 2), text="label:N")
    layers: list[Any] = [drawn, labels]
    if marked:
        stroke = alt.Chart(data_of(marked)).mark_tick(thickness=2.5, size=22, color=INK, aria=False)
        layers.append(stroke.encode(y=place, x=alt.X("mark:Q", scale=scale)))
    chart = alt.LayerChart(layer=layers)
    return chart.properties(padding=label_room(names), width=PANEL_WIDTH, height=_BAR_STEP * len(names), title=title)

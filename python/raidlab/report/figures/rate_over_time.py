"""Throughput second by second on flash drives, whose rate depends on what was written before.

Drawn where members are modelled flash drives, for the deepest load of each array and its first repeat. Without ten
seconds there is nothing to see, and no figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.per_table import figure_per_table
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH, colours_of
from raidlab.report.figures.words import number, of_lines
from raidlab.study.schema import Compare

KIND = "rate_over_time"
LEAST_SECONDS = 10


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each table of the study and each target with flash drives; a panel for each workload."""
    caption = (
        "Throughput of each second, at the deepest load. Where it falls, the drives have used up their spare and move"
        " what is still valid before they erase; where it stays level, that is in balance with the writes."
    )
    return figure_per_table(analysis, KIND, "Throughput over time", caption, _panels)


def _panels(analysis: Analysis, compare: Compare, target: str) -> Iterator[Panel]:
    names = [array.name for array in analysis.run.study.array if array.group == compare.group]
    for workload in analysis.run.study.workload:
        deepest: dict[str, Point] = {}
        for point in analysis.points:
            mine = (point.target, point.group, point.workload) == (target, compare.group, workload.name)
            if mine and point.is_swept and point.level_value >= _level(deepest.get(point.array)):
                deepest[point.array] = point
        rows = [row for point in deepest.values() for row in _rows(analysis, point)]
        if rows:
            lines = {name: [(row["s"], row["rate"]) for row in rows if row["array"] == name] for name in deepest}
            yield Panel(workload.name, _chart(rows, names, workload.name), of_lines(lines, "seconds", "MB/s"))


def _level(point: Point | None) -> float:
    return -1.0 if point is None else point.level_value


def _rows(analysis: Analysis, point: Point) -> list[dict[str, Any]]:
    cell = pl.col("cell") == point.cells[0]
    if analysis.run.members.filter(cell & pl.col("flash_host_bytes").is_not_null()).is_empty():
        return []
    seconds = analysis.run.snapshots.filter(cell).sort("time_ns")
    if seconds.height < LEAST_SECONDS:
        return []
    # The last second is cut short by the end of the run, and would look like a fall.
    whole = seconds.head(-1)
    return [
        {
            "array": point.array,
            "s": time_ns / 1e9,
            "rate": count / 1e6,
            "tip": f"{point.array}, second {time_ns / 1e9:.0f}: {number(count / 1e6)} MB/s",
        }
        for time_ns, count in zip(whole["time_ns"], whole["bytes"], strict=True)
    ]


def _chart(rows: list[dict[str, Any]], names: list[str], title: str) -> Chart:
    colours = colours_of(names)
    shown = [name for name in names if any(row["array"] == name for row in rows)]
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("s:Q", title="time (s)", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6)),
        y=alt.Y("rate:Q", title="throughput (MB/s)", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5)),
        color=alt.Color(
            "array:N",
            title=None,
            sort=shown,
            scale=alt.Scale(domain=shown, range=[colours[name] for name in shown]),
        ),
    )
    # Told apart without colour too.
    dash = alt.StrokeDash("array:N", title=None, sort=shown, scale=alt.Scale(domain=shown))
    lines = base.mark_line(strokeWidth=2, aria=False).encode(strokeDash=dash)
    # Nothing to see: what is pointed at.
    seconds = base.mark_point(opacity=0, size=30).encode(description="tip:N")
    return alt.LayerChart(layer=[lines, seconds]).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=title)

"""Throughput second by second on flash drives, whose rate depends on what was written before.

Drawn where members are modelled flash drives, for the deepest load of each array and its first repeat. Without ten
seconds there is nothing to see, and no figure.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import polars as pl

from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, layered, shown_of
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.per_table import figure_per_table
from raidlab.report.figures.style import colours_of
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
        # The deepest load of each array comes last.
        swept = sorted(analysis.swept(target, workload.name, group=compare.group), key=lambda point: point.level_value)
        deepest = {point.array: point for point in swept}
        marks = [mark for name in names if name in deepest for mark in _marks(analysis, deepest[name])]
        if marks:
            yield Panel(workload.name, _chart(marks, names, workload.name), of_lines(marks, "seconds", "MB/s"))


def _marks(analysis: Analysis, point: Point) -> list[Mark]:
    cell = pl.col("cell") == point.cells[0]
    if analysis.run.members.filter(cell & pl.col("flash_host_bytes").is_not_null()).is_empty():
        return []
    seconds = analysis.run.snapshots.filter(cell).sort("time_ns")
    if seconds.height < LEAST_SECONDS:
        return []
    # The last second is cut short by the end of the run, and would look like a fall.
    whole = seconds.head(-1)
    return [
        Mark(
            point.array,
            count / 1e6,
            time_ns / 1e9,
            tip=f"{point.array}, second {time_ns / 1e9:.0f}: {number(count / 1e6)} MB/s",
        )
        for time_ns, count in zip(whole["time_ns"], whole["bytes"], strict=True)
    ]


def _chart(marks: list[Mark], names: list[str], title: str) -> Chart:
    colours, shown = colours_of(names), shown_of(names, marks)
    base = alt.Chart(data_of(marks)).encode(
        x=alt.X("x:Q", title="time (s)", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6)),
        y=alt.Y("value:Q", title="throughput (MB/s)", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5)),
        color=channel_by_name(alt.Color, "line", {name: colours[name] for name in shown}),
    )
    # Told apart without colour too.
    dash = alt.StrokeDash("line:N", title=None, sort=shown, scale=alt.Scale(domain=shown))
    layers = [
        base.mark_line(strokeWidth=2, aria=False).encode(strokeDash=dash),
        # Nothing to see: what is pointed at.
        base.mark_point(opacity=0, size=30).encode(description="tip:N"),
    ]
    return layered(layers, title)

"""What raidlab and a second tool measured on the same target, by jobs: the accuracy of the measurement.

A line is a tool, a stroke goes from the lowest of its runs to the highest. The study's `[live] second_tool` says where.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Literal

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures.chart import (
    Axes,
    Mark,
    colour_and_shape,
    layered,
    line_layer,
    point_layer,
    upright_strokes,
    upward,
)
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.over_blocks import RUNS
from raidlab.report.figures.own import ONE_RUN, own_key
from raidlab.report.figures.words import number, of_lines
from raidlab.results.facts import ToolMeasured

KIND = "two_tools"
_TOOLS: tuple[Literal["raidlab"], Literal["fio"]] = ("raidlab", "fio")
_PANELS = (("throughput_mb_s", "throughput (MB/s)"), ("processors_busy", "processors busy with the tool"))


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, of what was measured on real members."""
    found = [one for one in analysis.run.facts.get("second_tool", []) if "missing" not in one]
    for spec in analysis.run.study.figure:
        mine = [one for one in found if one["array"] in spec.arrays and one["workload"] in spec.workloads]
        if spec.draw == KIND and mine:
            runs = RUNS if any(len(one["pairs"]) > 1 for one in mine) else ONE_RUN
            caption = " ".join(part for part in (runs, f"Both on {mine[0]['target']}.", spec.note) if part)
            made = tuple(_panel(marks, title) for key, title in _PANELS if (marks := list(_marks(mine, key, title))))
            yield Figure(KIND, own_key(analysis.run.study, spec, "live"), f"{spec.number}: {spec.title}", caption, made)


def _marks(found: list[ToolMeasured], key: str, title: str) -> Iterator[Mark]:
    for one in found:
        for tool in _TOOLS:
            values = [pair[tool][key] for pair in one["pairs"] if key in pair[tool]]
            if values:
                middle, low, high = statistics.median(values), min(values), max(values)
                tip = f"{tool}, {one['depth']} jobs: {title} {number(middle)} (runs {number(low)} to {number(high)})"
                yield Mark(tool, middle, one["depth"], (low, high), tip=tip)


def _panel(marks: list[Mark], title: str) -> Panel:
    return Panel(title, _chart(marks, title), of_lines(marks, "jobs", title))


def _chart(marks: list[Mark], title: str) -> Chart:
    place = alt.X(
        "x:Q",
        title="jobs (log scale)",
        scale=alt.Scale(type="log", base=2, nice=False, padding=14),
        axis=alt.Axis(values=sorted({mark.x for mark in marks}), format="~g"),
    )
    colour, shape = colour_and_shape(_TOOLS, _TOOLS)
    axes = Axes(place, upward(title), colour)
    layers = [
        line_layer(marks, axes),
        *upright_strokes(marks, axes, title),
        point_layer(marks, axes, shape, size=60),
    ]
    return layered(layers, title)

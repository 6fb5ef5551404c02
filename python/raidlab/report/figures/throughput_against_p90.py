"""Throughput against the 90th percentile of response time: what an array gives, and what it makes one wait for it.

Each line is one array; its points are the loads of the sweep, lightest first. Up and to the left is better. A dashed
line marks the response-time target of the study, where it has one, and diamonds on it what was held there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.relative_throughput_percent import share_basis
from raidlab.report.figures.channels import told_apart
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.held_points import held_point, in_words, layers_of, with_target
from raidlab.report.figures.per_table import figure_per_table
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.report.figures.words import lines_in, number, of_lines
from raidlab.study.schema import Compare

KIND = "throughput_against_p90"
_PERCENTILE = 90
# Beyond this span of an axis only the powers of ten are marked.
_WIDE_RATIO = 2000
_PER_WORDS = {"disk": "MB/s per disk", "user_capacity": "MB/s per TB of user capacity", "array": "MB/s"}
_PER_SCALE = {"disk": 1.0, "user_capacity": 1e12, "array": 1.0}


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each table of the study and each target; a panel for each workload."""
    text = "Each point is one load of the sweep, lightest at the left; up and to the left is better."
    caption = with_target(text, analysis)
    return figure_per_table(analysis, KIND, "Throughput against response time", caption, _panels)


def _panels(analysis: Analysis, compare: Compare, target: str) -> Iterator[Panel]:
    names = [array.name for array in analysis.run.study.array if array.group == compare.group]
    for workload in analysis.run.study.workload:
        rows = list(_rows(analysis, compare, target, workload.name))
        if rows:
            goal_ms = target_ms(analysis, target, workload.name)
            held = list(_held(analysis, compare, target, workload.name))
            yield Panel(
                workload.name,
                _chart(rows, held, names, compare.per, workload.name, goal_ms),
                _alt_text(rows, compare.per, goal_ms) + in_words(held, "array", "rate"),
            )


def _held(analysis: Analysis, compare: Compare, target: str, workload: str) -> Iterator[dict[str, Any]]:
    """What arrays hold, where it is the percentile of this figure that is held."""
    points = {
        point.array: point
        for point in analysis.points
        if point.is_swept and (point.target, point.group, point.workload) == (target, compare.group, workload)
    }
    for array, point in points.items():
        held = held_point(analysis, target, array, workload)
        if held is not None and held.percentile == _PERCENTILE:
            rate = held.mb_s / share_basis(point, compare.per) * _PER_SCALE[compare.per]
            row = held.row(array, rate, _PER_WORDS[compare.per])
            yield {"array": array, "p90_ms": held.target_ms, "rate": rate, **row}


def _alt_text(rows: list[dict[str, Any]], per: str, goal_ms: float | None) -> str:
    lines = lines_in(rows, "p90_ms", "rate", line="array", order="level")
    said = of_lines(lines, "the 90th percentile of response time in ms", _PER_WORDS[per])
    return said if goal_ms is None else f"{said} The target is {number(goal_ms)} ms."


def _rows(analysis: Analysis, compare: Compare, target: str, workload: str) -> Iterator[dict[str, Any]]:
    for index, point in enumerate(analysis.points):
        mine = (point.target, point.group, point.workload) == (target, compare.group, workload)
        values = analysis.values[index]
        # A time of 0 has no place on a logarithmic axis.
        if not mine or not point.is_swept or not values["response_time_ms_p90"]:
            continue
        rate = point.per_s("all_bytes") / 1e6 / share_basis(point, compare.per) * _PER_SCALE[compare.per]
        level = point.depth or point.rate_per_s
        p90_ms = values["response_time_ms_p90"]
        tip = f"{point.array}, {point.level}: {number(rate)} {_PER_WORDS[compare.per]}, 90 % within {number(p90_ms)} ms"
        yield {"array": point.array, "level": level, "p90_ms": p90_ms, "rate": rate, "tip": tip}


def target_ms(analysis: Analysis, target: str, workload: str) -> float | None:
    """The response-time target of a workload; None where it has none."""
    for row in analysis.run.holds.iter_rows(named=True):
        if row["target"] == target and row["workload"] == workload:
            return float(row["target_ns"]) / 1e6
    return None


def _chart(
    rows: list[dict[str, Any]],
    held: list[dict[str, Any]],
    names: list[str],
    per: str,
    title: str,
    target_ms: float | None,
) -> Chart:
    shown = [name for name in names if any(row["array"] == name for row in rows)]
    told = told_apart("array", names, shown)
    place = alt.X(
        "p90_ms:Q",
        title="90th percentile of response time (ms, log scale)",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=ticks_between([row["p90_ms"] for row in rows]), format="~g", labelOverlap="greedy"),
    )
    height = alt.Y("rate:Q", title=_PER_WORDS[per], scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=5))
    layers = layers_of(rows, held, ("array", "p90_ms"), (place, height), told, target_ms, size=55)
    chart = alt.LayerChart(layer=layers)
    return chart.properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=title)


def ticks_between(values: list[float]) -> list[float]:
    """1, 2, 5, 10, ... around the values of a logarithmic axis: few enough to read, dense enough to judge."""
    low, high = min(values) / 2, max(values) * 2
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < _WIDE_RATIO else (1,)
    return [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]

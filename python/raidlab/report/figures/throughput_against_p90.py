"""Throughput against the 90th percentile of response time: what an array gives, and what it makes one wait for it.

Each line is one array; its points are the loads of the sweep, lightest first. Up and to the left is better. A dashed
line marks the response-time target of the study, where it has one, and diamonds on it what was held there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.relative_throughput import share_basis
from raidlab.analysis.metrics.response_time import response_time_ms
from raidlab.report.figures.chart import Axes, Mark, colour_and_shape, layered, shown_of, upward
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.held_points import by_level, held_in_words, held_point, layers_of, with_target
from raidlab.report.figures.per_table import figure_per_table
from raidlab.report.figures.words import number, of_lines
from raidlab.study.schema import Compare

KIND = "throughput_against_p90"
_PERCENTILE = 90
# Beyond this span of an axis only the powers of ten are marked.
_WIDE_RATIO = 2000
# Fewer marks than this tell nothing of an axis.
_LEAST_TICKS = 2
_PER_WORDS = {"disk": "MB/s per disk", "user_capacity": "MB/s per TB of user capacity", "array": "MB/s"}
_PER_SCALE = {"disk": 1.0, "user_capacity": 1e12, "array": 1.0}


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each table of the study and each target; a panel for each workload."""
    text = "Each point is one load of the sweep, lightest at the left; up and to the left is better."
    caption = with_target(text, analysis)
    return figure_per_table(analysis, KIND, "Throughput against response time", caption, _panels)


def _panels(analysis: Analysis, compare: Compare, target: str) -> Iterator[Panel]:
    names = [array.name for array in analysis.run.study.array if array.group == compare.group]
    unit = _PER_WORDS[compare.per]
    for workload in analysis.run.study.workload:
        marks = list(_marks(analysis, compare, target, workload.name))
        if marks:
            goal_ms = target_ms(analysis, target, workload.name)
            held = list(_held(analysis, compare, target, workload.name))
            said = of_lines(marks, "the 90th percentile of response time in ms", unit, order=by_level)
            said += "" if goal_ms is None else f" The target is {number(goal_ms)} ms."
            chart = _chart(marks, held, names, unit, workload.name, goal_ms)
            yield Panel(workload.name, chart, said + held_in_words(held))


def _held(analysis: Analysis, compare: Compare, target: str, workload: str) -> Iterator[Mark]:
    """What arrays hold, where it is the percentile of this figure that is held."""
    points = {point.array: point for point in analysis.swept(target, workload, group=compare.group)}
    for array, point in points.items():
        held = held_point(analysis, target, array, workload)
        if held is not None and held.percentile == _PERCENTILE:
            rate = held.mb_s / share_basis(point, compare.per) * _PER_SCALE[compare.per]
            yield held.mark(array, rate, _PER_WORDS[compare.per])


def _marks(analysis: Analysis, compare: Compare, target: str, workload: str) -> Iterator[Mark]:
    for point in analysis.swept(target, workload, group=compare.group):
        p90_ms = response_time_ms(point, _PERCENTILE)
        # A time of 0 has no place on a logarithmic axis.
        if p90_ms:
            rate = point.per_s("all_bytes") / 1e6 / share_basis(point, compare.per) * _PER_SCALE[compare.per]
            what = f"{number(rate)} {_PER_WORDS[compare.per]}, 90 % within {number(p90_ms)} ms"
            yield Mark(point.array, rate, p90_ms, level=point.level_value, tip=f"{point.array}, {point.level}: {what}")


def target_ms(analysis: Analysis, target: str, workload: str) -> float | None:
    """The response-time target of a workload; None where it has none."""
    return next((row["target_ns"] / 1e6 for row in analysis.run.hold_rows(target, workload)), None)


def _chart(
    marks: list[Mark], held: list[Mark], names: list[str], unit: str, title: str, target_ms: float | None
) -> Chart:
    colour, shape = colour_and_shape(names, shown_of(names, marks))
    place = alt.X(
        "x:Q",
        title="90th percentile of response time (ms, log scale)",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=ticks_between(mark.x for mark in marks), format="~g", labelOverlap="greedy"),
    )
    axes = Axes(place, upward(unit), colour)
    return layered(layers_of(marks, held, axes, shape, target_ms, size=55), title)


def ticks_between(values: Iterable[float]) -> list[float]:
    """1, 2, 5, 10, ... around the values of a logarithmic axis: few enough to read, dense enough to judge.

    Where fewer than two of them lie among the values, as of 2.1 to 4.8, even steps.

    Examples
    --------
    >>> ticks_between([3, 70]), ticks_between([2.1, 4.8]), ticks_between([103, 118])
    ([2.0, 5.0, 10.0, 20.0, 50.0, 100.0], [2.0, 3.0, 4.0, 5.0], [100.0, 105.0, 110.0, 115.0, 120.0])
    """
    listed = list(values)
    least, most = min(listed), max(listed)
    low, high = least / 2, most * 2
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < _WIDE_RATIO else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
    if least < most and sum(least <= tick <= most for tick in ticks) < _LEAST_TICKS:
        return _even_ticks(least, most)
    return ticks


def _even_ticks(least: float, most: float) -> list[float]:
    """Places in steps of 1, 2 or 5 of some power of ten, two at least between both ends, and one beyond each."""
    power = 10.0 ** math.floor(math.log10(most - least))
    steps = (step * power for step in (1, 0.5, 0.2))
    step = next(step for step in steps if math.floor(most / step) - math.ceil(least / step) + 1 >= _LEAST_TICKS)
    # Whole numbers of steps, so that no tick is off by a last digit.
    return [float(f"{n * step:.12g}") for n in range(math.floor(least / step), math.ceil(most / step) + 1) if n > 0]

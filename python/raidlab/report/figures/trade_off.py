"""A metric against response time, one line an array, its points the loads of a sweep: what is won for what is waited.

Up and to the left is better. With `of_maximum` a line is in percent of its own greatest value, which shows how soon it
comes near it. The dashed line is the response-time target, where the workload has one; diamonds on it: what was held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities.metric import read_at
from raidlab.report.figures.chart import (
    Axes,
    Mark,
    colour_and_shape,
    layered,
    most_of,
    shown_of,
    upright_strokes,
    upward,
)
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.held_points import HoldPoint, by_level, held_in_words, held_point, layers_of, with_target
from raidlab.report.figures.own import (
    BY_KIND,
    ArrayLine,
    axis_title,
    interval_of,
    lines_of,
    metrics_of,
    own_figures,
    panels_of,
    places_of,
    source_of,
)
from raidlab.report.figures.printed_points import Printed, hollow_layers, hollow_marks, in_words, is_held, loads_of
from raidlab.report.figures.throughput_against_p90 import target_ms, ticks_between
from raidlab.report.figures.words import number, of_lines
from raidlab.study.figure import StudyFigure

KIND = "trade_off"
_CAPTION = "Each point is one load of the sweep; up and to the left is better."
# What is held at a target is a throughput: these are it, of so much of the array.
_THROUGHPUTS = {"throughput_mb_s", "throughput_per_disk_mb_s"}


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, with_target(_CAPTION, analysis), _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    along = BY_KIND[spec.against]
    [upright] = metrics_of(spec)
    y_title = "% of its own maximum" if spec.of_maximum else axis_title([upright])
    drawn = []
    for workload, title in panels_of(spec):
        lines, marks, held = lines_of(spec, workload), [], []
        over: list[Mark] = []
        for line in lines:
            mine = list(_marks(analysis, target, line, upright, along))
            over += _printed(printed, line, along, held_point(analysis, target, line.array, line.workload))
            own = max((mark.value for mark in mine), default=0.0) if spec.of_maximum else 0.0
            marks += [_of_most(mark, own) for mark in mine]
            held += [_of_most(mark, own) for mark in _held(analysis, target, line, upright, spec) if mine]
        if marks:
            drawn.append((workload, title, lines, marks, held, over))
    most = most_of([*marks, *held, *over] for _, _, _, marks, held, over in drawn)
    for workload, title, lines, marks, held, over in drawn:
        what = f"{upright.title}, {y_title}" if spec.of_maximum else y_title
        said = of_lines(marks, axis_title([along]), what, order=by_level) + held_in_words(held) + in_words(over)
        names = places_of(analysis.run.study, [line.name for line in lines])
        colour, shape = colour_and_shape(names, shown_of(names, marks))
        place = alt.X(
            "x:Q",
            title=f"{axis_title([along])}, log scale",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(values=ticks_between(mark.x for mark in marks), format="~g", labelOverlap="greedy"),
        )
        goal_ms = target_ms(analysis, target, workload) if along.unit == "ms" else None
        axes = Axes(place, upward(y_title, most), colour)
        below = upright_strokes(marks, axes, y_title)
        layers = layers_of(marks, held, axes, shape, goal_ms, size=50, below=below)
        layers += hollow_layers(over, axes, shape, y_title)
        yield Panel(title, layered(layers, title), said)


def _marks(analysis: Analysis, target: str, line: ArrayLine, upright: Metric, along: Metric) -> Iterator[Mark]:
    for point in analysis.swept(target, line.workload, array=line.array):
        value, x = upright.compute(point, None), along.compute(point, None)
        # A time of 0 has no place on a logarithmic axis.
        if value is not None and x:
            what = f"{upright.title} {number(value)} {upright.unit} at {along.title} {number(x)} {along.unit}"
            tip = f"{line.name}, {point.level}: {what}"
            yield Mark(line.name, value, x, interval_of(point, upright), level=point.level_value, tip=tip)


def _printed(printed: Printed, line: ArrayLine, along: Metric, held: HoldPoint | None) -> Iterator[Mark]:
    """What was printed of a line: at the target where it is held there, else at its load."""
    for row in printed.of(line.array, line.workload):
        if is_held(row):
            x = None if held is None else held.target_ms
        else:
            loads = [at for at in loads_of(row) if at is not None][:1]
            found = [
                read_at(line.array, line.workload, at, printed.source, lambda point: along.compute(point, None))
                for at in loads
            ]
            x = found[0].value if found and found[0] else None
        if x is not None:
            yield from hollow_marks(row, Mark(line.name, 0.0, x))


def _of_most(mark: Mark, most: float) -> Mark:
    """A mark in percent of the greatest value of its line; as it is where that is 0."""
    if not most:
        return mark
    share = 100 * mark.value / most
    span = None if mark.interval is None else (100 * mark.interval[0] / most, 100 * mark.interval[1] / most)
    return replace(mark, value=share, interval=span, tip=f"{mark.tip}, {share:.0f} % of its maximum")


def _held(analysis: Analysis, target: str, line: ArrayLine, upright: Metric, spec: StudyFigure) -> Iterator[Mark]:
    """What the line's array holds; none where something else is held or drawn."""
    held = held_point(analysis, target, line.array, line.workload) if upright.kind in _THROUGHPUTS else None
    if held is not None and spec.against == f"response_time_ms_p{held.percentile:g}":
        disks = source_of(analysis, target).points_of(line.array, line.workload)[0].disks
        value = spec.times * held.mb_s / (disks if upright.kind == "throughput_per_disk_mb_s" else 1)
        yield held.mark(line.name, value, upright.unit)

"""A metric over the load, one line an array: over the outstanding requests of all volumes, or the rate offered.

Requests outstanding count over all volumes, so the curve of k volumes with d each stands at k x d; over those of one
volume (`depth_per_volume`) it would stand too far to the left, and too high beside others. Upright strokes are 95 %
intervals over repeats. Where lines are many, points that would hide one another stand side by side, each at its own
height; the lines stand where they were measured, since one that is moved aside shows an order that was not measured.
Results of others are dashed, hollow, and say that they are foreign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, pairwise

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric, Point
from raidlab.analysis.metrics.utilisation import LIMIT_SHARE, limit_of, parts_of
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures.chart import (
    DASHED,
    Axes,
    Mark,
    colour_and_shape,
    columns_for,
    layered,
    line_layer,
    most_of,
    point_layer,
    shown_of,
    upright_strokes,
    upward,
)
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import (
    ArrayLine,
    axis_title,
    interval_of,
    lines_of,
    metrics_of,
    own_figures,
    panels_of,
    places_of,
)
from raidlab.report.figures.printed_points import Printed, hollow_layers, in_words
from raidlab.report.figures.words import interval_words, number, of_lines
from raidlab.report.path import part_words
from raidlab.study.figure import StudyFigure

KIND = "curves"
_LOG = " (log scale)"
X_TITLES = {
    "depth": f"requests outstanding, all volumes together{_LOG}",
    "depth_per_volume": f"requests outstanding a volume, uncorrected{_LOG}",
    "rate_per_s": "requests offered a second",
}
_IOPS = "iops"
# Each machine has a part of its own: which of them is the limit says nothing.
_NUMBER = re.compile(r" \d+(?='?$)")
# Points of more lines than these hide one another where they are nearer than such a part of the axis; all of them would
# take so much of the way to the next load, or of that to so many times the load.
_CROWD, _NEAR, _WAY, _FAR = 5, 0.05, 0.6, 2.0


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, _limits, _panels, published)


def _limits(analysis: Analysis, spec: StudyFigure, target: str) -> str:
    """Which part of the data path is the limit from which load to which, line by line."""
    said = []
    for workload, title in panels_of(spec) if spec.limits else ():
        swept = {
            line.name: analysis.swept(target, line.workload, array=line.array) for line in lines_of(spec, workload)
        }
        told = {name: ", ".join(steps) for name, points in swept.items() if (steps := _steps(points))}
        said += [f"{title}{f', {name}' if len(told) > 1 else ''}: {steps}" for name, steps in told.items()]
    return f"The limit, busy {100 * LIMIT_SHARE:.0f} % of the time or more: {'; '.join(said)}." if said else ""


def _steps(points: Iterable[Point]) -> list[str]:
    """Of a line: each part that is the limit at loads that follow one another, with the first and the last of these."""
    limits = [(point, limit_of(parts)) for point in points if (parts := parts_of(point))]
    names = [(f"{point.level_value:g}", _plain(limit.name) if limit else "none") for point, limit in limits]
    steps = [(part, [load for load, _ in loads]) for part, loads in groupby(names, lambda one: one[1])]
    return [f"{part} at {' to '.join(dict.fromkeys((loads[0], loads[-1])))}" for part, loads in steps]


def _plain(part: str) -> str:
    return _NUMBER.sub("", part_words(part)).strip("'")


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    foreign = _foreign(analysis, spec)
    for metric in metrics_of(spec):
        drawn = []
        for workload, title in panels_of(spec):
            lines = lines_of(spec, workload)
            marks, over = [], []
            for line in lines:
                for mark, point in _marks(analysis, spec, target, line, metric):
                    marks.append(mark)
                    over += printed.over(mark, line.array, line.workload, point)
            if marks:
                drawn.append((title, lines, marks, over))
        most = most_of([*marks, *over, *foreign] for _, _, marks, over in drawn)
        for title, lines, marks, over in drawn:
            said = of_lines([*marks, *foreign], _x_title(spec).removesuffix(_LOG), axis_title([metric]))
            others = dict.fromkeys(mark.line for mark in foreign)
            names = places_of(analysis.run.study, [*(line.name for line in lines), *others])
            chart = _chart(marks, over, foreign, names, spec, metric, title, most)
            yield Panel(title, chart, said + in_words(over))


def _x_title(spec: StudyFigure) -> str:
    """What the load is called: as the study calls it, or as it is counted."""
    if spec.along:
        return f"{spec.along}{_LOG if spec.x != 'rate_per_s' and spec.scale == 'log' else ''}"
    return X_TITLES[spec.x] if spec.scale == "log" else X_TITLES[spec.x].removesuffix(_LOG)


def _marks(
    analysis: Analysis, spec: StudyFigure, target: str, line: ArrayLine, metric: Metric
) -> Iterator[tuple[Mark, Point]]:
    for point in analysis.swept(target, line.workload, array=line.array):
        value = metric.compute(point, None)
        if value is None or (point.load == "open") != (spec.x == "rate_per_s"):
            continue
        interval = interval_of(point, metric)
        x = point.level_value / (_volumes(analysis, line.array) if spec.x == "depth_per_volume" else 1)
        if x < 1 and spec.x == "depth_per_volume":
            # No worker has a part of a request outstanding: some of them have one, and some none.
            continue
        what = f"{metric.title} {number(value)} {metric.unit}{interval_words(interval)}"
        span = None if interval is None else (max(interval[0], 0.0), interval[1])
        yield Mark(line.name, value, x, span, tip=f"{line.name}, {point.level}: {what}"), point


def _volumes(analysis: Analysis, array: str) -> int:
    tree = analysis.run.tree(array)
    return len(tree.get("children", [0])) if tree["kind"] == "independent" else 1


def _foreign(analysis: Analysis, spec: StudyFigure) -> list[Mark]:
    """Results of others over total depth; of a rate offered, or another metric, they say nothing."""
    wanted = spec.foreign
    if wanted is None or spec.metrics[0] != _IOPS or spec.x == "rate_per_s":
        return []
    return [
        Mark(
            row.label,
            row.iops,
            row.depth,
            tip=f"{row.label}, queue depth {row.depth:g}: {number(row.iops)} IOPS, a result of others",
        )
        for row in analysis.run.foreign
        if (row.level, row.workload) == (wanted.level, wanted.workload)
    ]


def _apart(marks: list[Mark], shown: list[str]) -> dict[tuple[str, float], float]:
    """Where the point of a line and a load stands: beside those that it would hide, all of them around their load."""
    depths = sorted({mark.x for mark in marks})
    least = min((high / low for low, high in pairwise(depths)), default=1.0)
    step = min(least, _FAR) ** (_WAY / len(shown))
    high = _NEAR * max(mark.value for mark in marks)
    places = {}
    for depth in depths:
        near: list[Mark] = []
        for mark in sorted((mark for mark in marks if mark.x == depth), key=lambda mark: mark.value):
            near = [*near, mark] if near and mark.value - near[-1].value < high else [mark]
            for rank, one in enumerate(sorted(near, key=lambda one: shown.index(one.line))):
                places[one.line, depth] = depth * step ** (rank - (len(near) - 1) / 2)
    return places


def _chart(
    marks: list[Mark],
    over: list[Mark],
    foreign: list[Mark],
    names: list[str],
    spec: StudyFigure,
    metric: Metric,
    title: str,
    most: float | None,
) -> Chart:
    shown = shown_of(names, [*marks, *foreign])
    depths = sorted({mark.x for mark in [*marks, *foreign]})
    beside: list[str] = []
    points = marks
    if spec.x != "rate_per_s" and spec.scale == "log" and len(shown) > _CROWD:
        places = _apart(marks, shown)
        points, over = ([replace(one, x=places[one.line, one.x]) for one in each] for each in (marks, over))
        beside = ["points that would hide one another stand side by side"]
    colour, shape = colour_and_shape(names, shown, alt.Legend(columns=columns_for(shown), labelLimit=380))
    x_title, y_title = [_x_title(spec), *beside], axis_title([metric])
    if spec.x == "rate_per_s" or spec.scale == "linear":
        scale, axis = alt.Scale(zero=False, padding=10), alt.Axis(tickCount=6)
    else:
        scale = alt.Scale(type="log", base=2, nice=False, padding=10)
        axis = alt.Axis(values=depths, format="~g", labelOverlap="greedy")
    axes = Axes(alt.X("x:Q", title=x_title, scale=scale, axis=axis), upward(y_title, most), colour)
    layers = [*upright_strokes(points, axes, y_title), line_layer(marks, axes), point_layer(points, axes, shape)]
    if foreign:
        layers.append(line_layer(foreign, axes, width=1.5, dash=DASHED))
        layers.append(point_layer(foreign, axes, shape, filled=False))
    layers += hollow_layers(over, axes, shape, y_title)
    return layered(layers, title)

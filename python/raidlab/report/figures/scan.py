"""A metric over something in which workloads or arrays differ: their share of reads, size, number of disks, chunk.

The straight line between the ends of each (dashed) shows what a mixture of the two would be; a line that is drawn level
stands at the mean of its ends. Where two lines cross is marked. Upright strokes are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities import Source
from raidlab.report.figures.chart import (
    DASHED,
    Axes,
    Mark,
    channel_by_name,
    columns_for,
    data_of,
    layered,
    line_layer,
    point_layer,
    shown_of,
    upright_strokes,
    upward,
)
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import (
    axis_title,
    metrics_of,
    own_figures,
    percent_of,
    places_of,
    reading_at,
    source_of,
    span_of,
)
from raidlab.report.figures.printed_points import Printed, hollow_layers, in_words
from raidlab.report.figures.style import colours_of, shapes_of
from raidlab.report.figures.words import number, of_lines
from raidlab.study import Study
from raidlab.study.check import count_leaves
from raidlab.study.figure import FigureScan, StudyFigure
from raidlab.study.tree import Tree
from raidlab.study.workload import Workload

KIND = "scan"
_TITLES = {
    "read_percent": "reads (%)",
    "request_mb": "mean request (MB, log scale)",
    "disks": "disks",
    "chunk_kib": "chunk (KiB, log scale)",
}
_LOG = ("request_mb", "chunk_kib")


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; one panel."""
    yield from own_figures(analysis, KIND, "", _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    [metric] = metrics_of(spec)
    source = source_of(analysis, target)
    if spec.over is None:
        return
    lines = spec.lines or [FigureScan(name=name, arrays=[name], workloads=spec.workloads) for name in spec.arrays]
    found = [one for line in lines for one in _marks(source, spec, spec.over, line, metric)]
    marks = [mark for mark, _, _ in found]
    over = [hollow for mark, array, workload in found for hollow in printed.over(mark, array, workload)]
    if marks:
        of_reference = any(line.reference is not None for line in lines)
        y_title = f"{metric.title}, % of {lines[0].reference}" if of_reference else axis_title([metric])
        said = of_lines(marks, _TITLES[spec.over], y_title) + in_words(over)
        looks = _looks(analysis.run.study, lines)
        yield Panel(spec.title, _chart(marks, over, looks, spec, y_title), said)


def _marks(
    source: Source, spec: StudyFigure, over: str, line: FigureScan, metric: Metric
) -> list[tuple[Mark, str, str]]:
    """The points of a line, each with its array and its workload."""
    works = {work.name: work for work in source.run.study.workload}
    marks = []
    for array in line.arrays:
        for name in line.workloads:
            found = reading_at(source, metric.kind, array, name, spec.at)
            if line.reference is not None:
                found = percent_of(found, reading_at(source, metric.kind, line.reference, name, spec.at))
            x = _along(over, source.run.tree(array), works[name])
            if found is not None and x is not None:
                found = found.times(spec.times) if line.reference is None else found
                unit = metric.unit if line.reference is None else f"% of {line.reference}"
                where = f"{_TITLES[over].replace(', log scale', '')} {number(x)}"
                tip = f"{line.name}, {where}: {number(found.value)} {unit}"
                marks.append((Mark(line.name, found.value, x, span_of(found), tip=tip), array, name))
    return sorted(marks, key=lambda one: one[0].x)


def _along(over: str, tree: Tree, work: Workload) -> float | None:
    if over == "read_percent":
        return 100 * work.read
    if over == "request_mb":
        return work.size.typical_bytes / 1e6
    if over == "disks":
        return float(count_leaves(tree))
    return tree["chunk_bytes"] / 1024 if "chunk_bytes" in tree else None


def crossing(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Where two lines over the same places cross, and at what height; None where they do not.

    Examples
    --------
    >>> crossing([(0, 1), (10, 1)], [(0, 0), (10, 4)])
    (2.5, 1.0)
    """
    other = dict(second)
    shared = [(x, y, other[x]) for x, y in first if x in other]
    for (low, a, b), (high, c, d) in pairwise(shared):
        before, after = a - b, c - d
        if before * after < 0 or (before and not after):
            share = before / (before - after)
            return low + share * (high - low), a + share * (c - a)
    return None


def _looks(study: Study, lines: list[FigureScan]) -> tuple[dict[str, str], dict[str, str]]:
    """The colour of each line, that of the array which it is like, and its shape, which no other has."""
    like = {line.name: line.like or line.name for line in lines}
    # Arrays come first, so that they look as in the other figures whatever lies between them here.
    arrays = {array for line in lines for array in line.arrays}
    places = places_of(study, sorted(dict.fromkeys(like.values()), key=lambda name: name not in arrays))
    first = {name: line for line, name in reversed(like.items())}
    shapes = shapes_of([*places, *(line for line, name in like.items() if first[name] != line)])
    colours = colours_of(places)
    of_first = {line: shapes[name] for name, line in first.items()}
    return {line: colours[name] for line, name in like.items()}, shapes | of_first


def _chart(
    marks: list[Mark],
    over: list[Mark],
    looks: tuple[dict[str, str], dict[str, str]],
    spec: StudyFigure,
    y_title: str,
) -> Chart:
    colours, shapes = looks
    shown = shown_of(colours, marks)
    is_log = spec.over in _LOG
    place = alt.X(
        "x:Q",
        title=_TITLES[spec.over or ""],
        scale=alt.Scale(type="log", nice=False, padding=10) if is_log else alt.Scale(zero=False, padding=10),
        axis=alt.Axis(
            values=sorted({mark.x for mark in marks}),
            labelExpr="format(datum.value, '.3~g')",
            labelOverlap="greedy",
        ),
    )
    legend = alt.Legend(columns=columns_for(shown), labelLimit=380)
    colour = channel_by_name(alt.Color, "line", {name: colours[name] for name in shown}, legend)
    shape = channel_by_name(alt.Shape, "line", {name: shapes[name] for name in shown}, legend)
    axes = Axes(place, upward(y_title), colour)
    level = [mark for name in spec.flat for mark in _ends(marks, name, is_level=True)]
    straight = [name for name in shown if name not in spec.flat] if spec.straight else []
    dashed = [mark for name in straight for mark in _ends(marks, name, is_level=False)]
    drawn = [mark for mark in marks if mark.line not in spec.flat]
    layers = [
        *([line_layer(level, axes)] if level else []),
        *([line_layer(dashed, axes, width=1.2, dash=DASHED)] if dashed else []),
        *([line_layer(drawn, axes)] if drawn else []),
        point_layer(marks, axes, shape),
        *upright_strokes(marks, axes, y_title),
        *hollow_layers(over, axes, shape, y_title),
        *_crossed(marks, spec),
    ]
    return layered(layers, spec.title)


def _ends(marks: list[Mark], name: str, *, is_level: bool) -> list[Mark]:
    """The ends of a line, or both at their mean; one place alone has no line."""
    mine = [mark for mark in marks if mark.line == name]
    if len(mine) < 2:
        return []
    ends = (mine[0], mine[-1])
    mean = sum(mark.value for mark in ends) / 2
    return [Mark(name, mean if is_level else mark.value, mark.x) for mark in ends]


def _crossed(marks: list[Mark], spec: StudyFigure) -> list[Any]:
    if len(spec.crossing) != 2:
        return []
    first, second = ([(mark.x, mark.value) for mark in marks if mark.line == name] for name in spec.crossing)
    found = crossing(first, second)
    if found is None:
        return []
    at = alt.Chart(data_of([Mark("", found[1], found[0], label=f"they cross at {found[0]:.3g}")])).encode(x="x:Q")
    rule = at.mark_rule(strokeDash=[2, 3], opacity=0.7, aria=False)
    text = at.mark_text(align="right", dx=-6, dy=-10, fontSize=12, aria=False)
    return [rule, text.encode(y="value:Q", text="label:N")]

"""A metric over something in which workloads or arrays differ: their share of reads, size, number of disks, chunk.

The straight line between the ends of each (dashed) shows what a mixture of the two would be; a line that is drawn level
stands at the mean of its ends. Where two lines cross is marked. Upright strokes are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric
from raidlab.published.quantities import Source
from raidlab.report.figures.channels import columns_for, strokes, told_apart
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.own import BY_KIND, axis_title, own_figures, percent_of, reading_at, source_of, span_of
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.report.figures.words import number, of_lines
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
_WIDTH, _HEIGHT = PANEL_WIDTH + 90, PANEL_HEIGHT + 50


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; one panel."""
    yield from own_figures(analysis, KIND, "", _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    metric = BY_KIND.get(spec.metrics[0])
    source = source_of(analysis, target)
    if metric is None or spec.over is None:
        return
    lines = spec.lines or [FigureScan(name=name, arrays=[name], workloads=spec.workloads) for name in spec.arrays]
    rows = [row for line in lines for row in _rows(source, spec, line, metric)]
    if rows:
        yield Panel(spec.title, _chart(rows, lines, spec, metric), _alt_text(rows, lines, spec, metric))


def _alt_text(rows: list[dict[str, Any]], lines: list[FigureScan], spec: StudyFigure, metric: Metric) -> str:
    points = {line.name: [(row["x"], row["value"]) for row in rows if row["line"] == line.name] for line in lines}
    return of_lines(points, _TITLES[spec.over or ""], _y_title(lines, metric))


def _y_title(lines: list[FigureScan], metric: Metric) -> str:
    of_reference = any(line.reference is not None for line in lines)
    return f"{metric.title}, % of {lines[0].reference}" if of_reference else axis_title([metric])


def _rows(source: Source, spec: StudyFigure, line: FigureScan, metric: Metric) -> list[dict[str, Any]]:
    works = {work.name: work for work in source.run.study.workload}
    rows = []
    for array in line.arrays:
        for name in line.workloads:
            found = reading_at(source, metric.kind, array, name, spec.at)
            if line.reference is not None:
                found = percent_of(found, reading_at(source, metric.kind, line.reference, name, spec.at))
            x = _along(spec.over or "", source.run.tree(array), works[name])
            if found is not None and x is not None:
                unit = metric.unit if line.reference is None else f"% of {line.reference}"
                where = f"{_TITLES[spec.over or ''].replace(', log scale', '')} {number(x)}"
                tip = f"{line.name}, {where}: {number(found.value)} {unit}"
                rows.append({"line": line.name, "x": x, **span_of(found), "tip": tip})
    return sorted(rows, key=lambda row: row["x"])


def _along(over: str, tree: Tree, work: Workload) -> float | None:
    places: dict[str, Callable[[], float | None]] = {
        "read_percent": lambda: 100 * work.read,
        "request_mb": lambda: work.size.typical_bytes / 1e6,
        "disks": lambda: float(count_leaves(tree)),
        "chunk_kib": lambda: tree["chunk_bytes"] / 1024 if "chunk_bytes" in tree else None,
    }
    return places[over]()


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


def _chart(rows: list[dict[str, Any]], lines: list[FigureScan], spec: StudyFigure, metric: Metric) -> Chart:
    names = [line.name for line in lines]
    shown = [name for name in names if any(row["line"] == name for row in rows)]
    y_title = _y_title(lines, metric)
    is_log = spec.over in _LOG
    place = alt.X(
        "x:Q",
        title=_TITLES[spec.over or ""],
        scale=alt.Scale(type="log", nice=False, padding=10) if is_log else alt.Scale(zero=False, padding=10),
        axis=alt.Axis(
            values=sorted({row["x"] for row in rows}),
            labelExpr="format(datum.value, '.3~g')",
            labelOverlap="greedy",
        ),
    )
    scale = alt.Scale(zero=True, nice=True)
    height = alt.Y("value:Q", title=y_title, scale=scale, axis=alt.Axis(tickCount=5))
    legend = alt.Legend(columns=columns_for(shown), labelLimit=380)
    # Arrays come first, so that they look as in the other figures whatever lies between them here.
    arrays = {array for line in lines for array in line.arrays}
    colour, shape = told_apart("line", sorted(names, key=lambda name: name not in arrays), shown, legend)
    drawn = [row for row in rows if row["line"] not in spec.flat]
    level = [row for name in spec.flat for row in _ends(rows, name, level=True)]
    straight = [row for name in shown if name not in spec.flat for row in _ends(rows, name, level=False)]
    layers: list[Any] = []
    for part, dash in ((level, []), (straight if spec.straight else [], [5, 4])):
        if part:
            line = alt.Chart(data_of(part)).mark_line(strokeWidth=2 if not dash else 1.2, strokeDash=dash, aria=False)
            layers.append(line.encode(x=place, y=height, color=colour, order=alt.Order("x:Q")))
    if drawn:
        base = alt.Chart(data_of(drawn)).encode(x=place, y=height, color=colour, order=alt.Order("x:Q"))
        layers.append(base.mark_line(strokeWidth=2, aria=False))
    points = alt.Chart(data_of(rows)).encode(x=place, y=height, color=colour)
    layers.append(points.mark_point(filled=True, size=50, opacity=1).encode(shape=shape, description="tip:N"))
    layers += strokes(rows, place, y_title, colour, scale)
    layers += _crossed(rows, spec)
    return alt.LayerChart(layer=layers).properties(width=_WIDTH, height=_HEIGHT, title=spec.title)


def _ends(rows: list[dict[str, Any]], name: str, *, level: bool) -> list[dict[str, Any]]:
    """The ends of a line, or both at their mean; one place alone has no line."""
    mine = [row for row in rows if row["line"] == name]
    if len(mine) < 2:
        return []
    ends = [mine[0], mine[-1]]
    mean = sum(row["value"] for row in ends) / 2
    return [{"line": name, "x": row["x"], "value": mean if level else row["value"]} for row in ends]


def _crossed(rows: list[dict[str, Any]], spec: StudyFigure) -> list[Any]:
    if len(spec.crossing) != 2:
        return []
    first, second = ([(row["x"], row["value"]) for row in rows if row["line"] == name] for name in spec.crossing)
    found = crossing(first, second)
    if found is None:
        return []
    at = data_of([{"x": found[0], "value": found[1], "label": f"they cross at {found[0]:.3g}"}])
    rule = alt.Chart(at).mark_rule(strokeDash=[2, 3], opacity=0.7, aria=False).encode(x="x:Q")
    text = (
        alt.Chart(at)
        .mark_text(align="right", dx=-6, dy=-10, fontSize=12, aria=False)
        .encode(x="x:Q", y="value:Q", text="label:N")
    )
    return [rule, text]

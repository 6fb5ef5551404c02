"""A metric over the load, one line an array: over the outstanding requests of all volumes, or the rate offered.

Requests outstanding count over all volumes, so the curve of k volumes with d each stands at k x d; over those of one
volume (`depth_per_volume`) it would stand too far to the left, and too high beside others. Upright strokes are 95 %
intervals over repeats. Results of others are dashed, hollow, and say that they are foreign.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric
from raidlab.report.figures.channels import columns_for, strokes, told_apart
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.own import BY_KIND, Line, axis_title, interval_of, lines_of, own_figures
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.report.figures.words import lines_in, number, of_lines
from raidlab.study.figure import StudyFigure

KIND = "curves"
_LOG = " (log scale)"
X_TITLES = {
    "depth": f"requests outstanding, all volumes together{_LOG}",
    "depth_per_volume": f"requests outstanding a volume, uncorrected{_LOG}",
    "rate_per_s": "offered a second",
}
_IOPS = "iops"
_WIDTH, _HEIGHT = PANEL_WIDTH + 90, PANEL_HEIGHT + 50


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, "", _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    metric = BY_KIND.get(spec.metrics[0])
    if metric is None:
        return
    for workload in spec.workloads:
        lines = lines_of(spec, workload)
        rows = [row for line in lines for row in _rows(analysis, spec, target, line, metric)]
        if rows:
            rows += _foreign(analysis, spec)
            alt_text = _alt_text(rows, spec, metric)
            yield Panel(workload, _chart(rows, [line.name for line in lines], spec, metric, workload), alt_text)


def _alt_text(rows: list[dict[str, Any]], spec: StudyFigure, metric: Metric) -> str:
    return of_lines(lines_in(rows, "x", "value"), X_TITLES[spec.x].removesuffix(_LOG), axis_title([metric]))


def _rows(analysis: Analysis, spec: StudyFigure, target: str, line: Line, metric: Metric) -> Iterator[dict[str, Any]]:
    for point in analysis.points:
        mine = (point.target, point.array, point.workload) == (target, line.array, line.workload)
        if not mine or not point.is_swept or (point.load == "open") != (spec.x == "rate_per_s"):
            continue
        value = metric.compute(point, None)
        if value is None:
            continue
        interval = interval_of(point, metric)
        low, high = interval if interval is not None else (value, value)
        x = point.level_value / (_volumes(analysis, line.array) if spec.x == "depth_per_volume" else 1)
        sure = "" if interval is None else f" (95 % interval {number(low)} to {number(high)})"
        tip = f"{line.name}, {point.level}: {metric.title} {number(value)} {metric.unit}{sure}"
        yield {"line": line.name, "x": x, "value": value, "low": max(low, 0.0), "high": high, "own": True, "tip": tip}


def _volumes(analysis: Analysis, array: str) -> int:
    tree = analysis.run.tree(array)
    return len(tree.get("children", [0])) if tree["kind"] == "independent" else 1


def _foreign(analysis: Analysis, spec: StudyFigure) -> list[dict[str, Any]]:
    """Results of others over total depth; of a rate offered, or another metric, they say nothing."""
    wanted = spec.foreign
    if wanted is None or spec.metrics[0] != _IOPS or spec.x == "rate_per_s":
        return []
    return [
        {
            "line": row.label,
            "x": row.depth,
            "value": row.iops,
            "low": row.iops,
            "high": row.iops,
            "own": False,
            "tip": f"{row.label}, queue depth {row.depth:g}: {number(row.iops)} IOPS, a result of others",
        }
        for row in analysis.run.foreign
        if (row.level, row.workload) == (wanted.level, wanted.workload)
    ]


def _chart(rows: list[dict[str, Any]], names: list[str], spec: StudyFigure, metric: Metric, title: str) -> Chart:
    known = [*names, *dict.fromkeys(row["line"] for row in rows if not row["own"])]
    shown = [name for name in known if any(row["line"] == name for row in rows)]
    over_depth = spec.x != "rate_per_s"
    scale = alt.Scale(type="log", base=2, nice=False, padding=10) if over_depth else alt.Scale(zero=False, padding=10)
    depths = sorted({row["x"] for row in rows})
    legend = alt.Legend(columns=columns_for(shown), labelLimit=380)
    colour, shape = told_apart("line", known, shown, legend)
    place = alt.X(
        "x:Q",
        title=X_TITLES[spec.x],
        scale=scale,
        axis=alt.Axis(values=depths, format="~g", labelOverlap="greedy") if over_depth else alt.Axis(tickCount=6),
    )
    height = alt.Y(
        "value:Q", title=axis_title([metric]), scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=5)
    )
    layers: list[Any] = []
    for own in (True, False):
        part = [row for row in rows if row["own"] == own]
        if not part:
            continue
        base = alt.Chart(data_of(part)).encode(x=place, y=height, color=colour, order=alt.Order("x:Q"))
        layers += strokes(part, place, axis_title([metric]), colour)
        dash: dict[str, Any] = {} if own else {"strokeDash": [5, 4]}
        layers.append(base.mark_line(strokeWidth=2 if own else 1.5, aria=False, **dash))
        layers.append(base.mark_point(filled=own, size=50, opacity=1).encode(shape=shape, description="tip:N"))
    return alt.LayerChart(layer=layers).properties(width=_WIDTH, height=_HEIGHT, title=title)

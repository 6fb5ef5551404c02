"""Bars of a quantity, one an array: a number that no single load gives, such as what each further reader adds.

Any kind of `raidlab.published.quantities` can be drawn. Thin strokes are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
from pydantic import ValidationError

from raidlab.analysis.metrics import Analysis
from raidlab.published.quantities import KINDS, NotThereError, Reading, Source
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.own import Line, lines_of, own_figures, source_of, span_of
from raidlab.report.figures.style import COLOURS, INK, PANEL_WIDTH, label_room
from raidlab.report.figures.words import alike, number, of_bars
from raidlab.study.figure import StudyFigure

KIND = "quantities"
_BAR_STEP = 26


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, "", _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    source = source_of(analysis, target)
    for workload in spec.workloads:
        rows = []
        for line in lines_of(spec, workload):
            reading = _reading(spec, line, source)
            if reading is not None:
                rows.append(_row(spec, line, reading))
        if rows:
            values = {row["line"]: row["value"] for row in rows}
            yield Panel(workload, _chart(rows, spec, workload), of_bars(values, spec.axis))


def _reading(spec: StudyFigure, line: Line, source: Source) -> Reading | None:
    keys = {"workload": line.workload, **(spec.measure or {}), "array": line.array}
    kind = KINDS.get(str(keys.pop("kind", "")))
    try:
        return None if kind is None else kind.read(kind.check(keys), source)
    except (NotThereError, ValidationError):
        return None


def _row(spec: StudyFigure, line: Line, reading: Reading) -> dict[str, Any]:
    span = {name: spec.times * value for name, value in span_of(reading).items()}
    sure = "" if span["low"] == span["high"] else f" ({number(span['low'])} to {number(span['high'])} at 95 %)"
    return {
        "line": line.name,
        **span,
        "tip": f"{line.name}: {spec.axis} {number(span['value'])}{sure}",
    }


def _chart(rows: list[dict[str, Any]], spec: StudyFigure, title: str) -> Chart:
    names = [row["line"] for row in rows]
    decimals = alike(row["value"] for row in rows)
    rows = [{**row, "label": f"{row['value']:,.{decimals}f}"} for row in rows]
    least, most = (pick(row[end] for row in rows) for pick, end in ((min, "low"), (max, "high")))
    # Room at the right for the figure behind the longest bar; an intercept may be negative.
    scale = alt.Scale(domain=[min(0.0, least * 1.05), max(most * 1.25, 0.0) or 1.0], nice=False)
    place = alt.Y("line:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=220))
    along = alt.X("value:Q", title=spec.axis, scale=scale, axis=alt.Axis(tickCount=5))
    bar = alt.Chart(data_of(rows)).mark_bar(height=16, opacity=0.9, color=COLOURS[0])
    layers: list[Any] = [bar.encode(y=place, x=along, description="tip:N")]
    spans = [row for row in rows if row["high"] > row["low"]]
    if spans:
        strokes = alt.Chart(data_of(spans)).mark_rule(strokeWidth=1.4, color=INK, aria=False)
        layers.append(strokes.encode(y=place, x=alt.X("low:Q", scale=scale), x2="high:Q"))
    text = alt.Chart(data_of(rows)).mark_text(align="right", baseline="middle", fontSize=12, fontWeight=600, aria=False)
    layers.append(text.encode(y=place, x=alt.value(PANEL_WIDTH - 2), text="label:N"))
    return alt.LayerChart(layer=layers).properties(
        padding=label_room(names), width=PANEL_WIDTH, height=_BAR_STEP * len(names), title=title
    )

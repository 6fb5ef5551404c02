"""Bars of a quantity, one an array: a number that no single load gives, such as what each further reader adds.

Any kind of `raidlab.published.quantities` can be drawn. Thin strokes are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.quantities import NotThereError, Reading, Source, read_measure
from raidlab.report.figures.chart import Mark, data_of, labels_at_right, layered_bars, level_strokes, names_at_left
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import ArrayLine, lines_of, own_figures, source_of, span_of
from raidlab.report.figures.style import COLOURS
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
        found = [(line, _reading(spec, line, source)) for line in lines_of(spec, workload)]
        marks = [_mark(spec, line, reading) for line, reading in found if reading is not None]
        if marks:
            values = {mark.line: mark.value for mark in marks}
            yield Panel(workload, _chart(marks, spec, workload), of_bars(values, spec.axis))


def _reading(spec: StudyFigure, line: ArrayLine, source: Source) -> Reading | None:
    try:
        return read_measure({"workload": line.workload, **(spec.measure or {}), "array": line.array}, source)
    except NotThereError:
        return None


def _mark(spec: StudyFigure, line: ArrayLine, reading: Reading) -> Mark:
    value, span = spec.times * reading.value, span_of(reading)
    interval = None if span is None else (spec.times * span[0], spec.times * span[1])
    sure = "" if interval is None else f" ({number(interval[0])} to {number(interval[1])} at 95 %)"
    return Mark(line.name, value, interval=interval, tip=f"{line.name}: {spec.axis} {number(value)}{sure}")


def _chart(marks: list[Mark], spec: StudyFigure, title: str) -> Chart:
    names = [mark.line for mark in marks]
    decimals = alike(mark.value for mark in marks)
    least = min(mark.value if mark.interval is None else mark.interval[0] for mark in marks)
    most = max(mark.high for mark in marks)
    # Room at the right for the figure behind the longest bar; an intercept may be negative.
    scale = alt.Scale(domain=[min(0.0, least * 1.05), max(most * 1.25, 0.0) or 1.0], nice=False)
    place = names_at_left(names, 220)
    along = alt.X("value:Q", title=spec.axis, scale=scale, axis=alt.Axis(tickCount=5))
    bar = alt.Chart(data_of(marks)).mark_bar(height=16, opacity=0.9, color=COLOURS[0])
    layers = [
        bar.encode(y=place, x=along, description="tip:N"),
        *level_strokes(marks, place, alt.X("low:Q", scale=scale)),
        labels_at_right([replace(mark, label=f"{mark.value:,.{decimals}f}") for mark in marks], place),
    ]
    return layered_bars(layers, title, names, _BAR_STEP)

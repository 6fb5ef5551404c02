"""Bars of a quantity, one an array: a number that no single load gives, such as what each further reader adds.

Any kind of `raidlab.published.quantities` can be drawn. Thin strokes are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities import NotThereError, Reading, Source, read_measure
from raidlab.report.figures.chart import (
    Mark,
    data_of,
    labels_at_right,
    layered_bars,
    level_strokes,
    most_of,
    names_at_left,
    room_at_right,
)
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import ArrayLine, lines_of, own_figures, panels_of, source_of, span_of
from raidlab.report.figures.printed_points import Printed, decimals_of, hollow_on_bars, in_words, labels_with
from raidlab.report.figures.style import COLOURS
from raidlab.report.figures.words import fixed, number, of_bars
from raidlab.study.figure import StudyFigure

KIND = "quantities"
_BAR_STEP = 26
# Figures of several decimals are long: those that would touch are left out.
_AXIS = alt.Axis(tickCount=5, labelOverlap="greedy", labelSeparation=6, labelFlush=False)


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, "", _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    source = source_of(analysis, target)
    drawn = []
    for workload, title in panels_of(spec):
        marks, over = [], []
        for line in lines_of(spec, workload):
            if (reading := _reading(spec, line, source)) is not None:
                marks.append(_mark(spec, line, reading))
                over += printed.over(marks[-1], line.array, line.workload)
        if marks:
            drawn.append((title, marks, over))
    unsure = [_undetermined(marks) for _, marks, _ in drawn]
    most = most_of(
        [*(mark for mark in marks if mark.line not in names), *over]
        for (_, marks, over), names in zip(drawn, unsure, strict=True)
    )
    for (title, marks, over), names in zip(drawn, unsure, strict=True):
        values = {mark.line: mark.value for mark in marks}
        chart = bars_chart(marks, over, spec.axis, title, most=most, unsure=names)
        yield Panel(title, chart, of_bars(values, spec.axis) + in_words(over))


def _undetermined(marks: list[Mark]) -> set[str]:
    """Bars that their repeats do not determine, such as the inverse of a slope near 0: those without an interval."""
    without = {mark.line for mark in marks if mark.interval is None}
    return without if len(without) < len(marks) else set()


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


def bars_chart(
    marks: list[Mark],
    over: list[Mark],
    axis: str,
    title: str,
    names: Sequence[str] | None = None,
    most: float | None = None,
    unsure: Collection[str] = (),
) -> Chart:
    """Bars with their figures at the right, and over them what was printed; names without a bar have that alone.

    ``most`` is what the longest bar of all panels reaches, where they have one axis. Those that are ``unsure`` have a
    question mark, and are cut where they are longer than all others.
    """
    sure = [mark for mark in marks if mark.line not in unsure]
    names = list(dict.fromkeys(names or [mark.line for mark in marks]))
    decimals = decimals_of({mark.line: [mark.value] for mark in marks}, over)
    labels = dict.fromkeys(names, "not here") | {
        mark.line: f"{fixed(mark.value, decimals)}{' ?' if mark.line in unsure else ''}" for mark in marks
    }
    labels = labels_with(labels, over)
    ends = [Mark(name, 0.0, label=label) for name, label in labels.items()]
    least = min((mark.value if mark.interval is None else mark.interval[0] for mark in marks), default=0.0)
    most = most or max((mark.high for mark in [*sure, *over]), default=0.0)
    # An intercept may be negative.
    scale = alt.Scale(domain=[min(0.0, least * 1.05), max(most * room_at_right(labels), 0.0) or 1.0], nice=False)
    place = names_at_left(names)
    along = alt.X("value:Q", title=axis, scale=scale, axis=_AXIS)
    bar = alt.Chart(data_of(replace(mark, value=min(mark.value, most)) for mark in marks)).mark_bar(
        height=16, opacity=0.9, color=COLOURS[0]
    )
    layers = [
        bar.encode(y=place, x=along, description="tip:N"),
        *level_strokes(marks, place, alt.X("low:Q", scale=scale)),
        labels_at_right(ends, place),
        *hollow_on_bars(over, place, alt.X("value:Q", scale=scale), COLOURS[0] if marks else None),
    ]
    return layered_bars(layers, title, names, _BAR_STEP)

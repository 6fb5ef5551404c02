"""How long n tasks take: one after another (dashed), and all at once.

One after another each takes the time of one alone. At once the first takes that, and each further one adds the slope of
the mean response time over how many there are.

Reference: figure 8 of S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck?*, 1996.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities import NotThereError, regression
from raidlab.published.rules.make import totals
from raidlab.report.figures.chart import DASHED, Mark, channel_by_name, data_of, layered, shown_of
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import own_figures, places_of, reading_at, source_of
from raidlab.report.figures.printed_points import Printed
from raidlab.report.figures.style import colours_of
from raidlab.report.figures.words import number, of_lines
from raidlab.study.figure import StudyFigure

KIND = "total_time"
CAPTION = "At once: the first one's time, and what each further one adds. Dashed: one after another."
_ALONE, _AT_ONCE = "one after another", "at once"
_TIME = "response_time_ms_mean"
_MOST = 10

Times = Mapping[str, Sequence[tuple[float, float]]]


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target."""
    yield from own_figures(analysis, KIND, CAPTION, _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, _printed: Printed) -> Iterator[Panel]:
    source = source_of(analysis, target)
    times: dict[str, list[tuple[float, float]]] = {}
    for array in spec.arrays:
        slope = {"of": "slope", "metric": _TIME, "array": array, "workload": spec.workloads[-1]}
        try:
            alone = reading_at(source, _TIME, array, spec.workloads[0], "idle")
            each = regression.read(regression.Keys.model_validate(slope), source)
        except NotThereError:
            continue
        if alone is not None and each is not None:
            times[array] = totals(spec.times * alone.value, spec.times * each.value, _MOST)
    if times:
        yield _panel(times, spec.unit or "ms", spec.along or "files", places_of(analysis.run.study, times))


def total_time_figure(times: Times, unit: str) -> Figure:
    """The figure of times worked out elsewhere: by arrangement, of 1, 2, ... tasks one by one, and at once."""
    return Figure(KIND, "total-time", "Total time of several", CAPTION, (_panel(times, unit, "files", list(times)),))


def _panel(times: Times, unit: str, what: str, names: list[str]) -> Panel:
    marks = [
        Mark(name, time, count, part=how, tip=f"{name}, {count} {how}: {number(time)} {unit}")
        for name, found in times.items()
        for count, pair in enumerate(found, start=1)
        for how, time in zip((_ALONE, _AT_ONCE), pair, strict=True)
    ]
    lines = [replace(mark, line=f"{mark.line} ({mark.part})") for mark in marks]
    return Panel("total time", _chart(marks, names, unit, what), of_lines(lines, what, f"total time ({unit})"))


def _chart(marks: list[Mark], names: list[str], unit: str, what: str) -> Chart:
    colours, shown = colours_of(names), shown_of(names, marks)
    colours = {name: colours[name] for name in names if name in shown}
    base = alt.Chart(data_of(marks)).encode(
        x=alt.X("x:Q", title=what, axis=alt.Axis(tickCount=6, tickMinStep=1)),
        y=alt.Y("value:Q", title=f"total time ({unit})", axis=alt.Axis(tickCount=5)),
        color=channel_by_name(alt.Color, "line", colours, alt.Legend(columns=1, labelLimit=380)),
    )
    # The caption says which are dashed.
    dash = channel_by_name(alt.StrokeDash, "part", {_AT_ONCE: [1, 0], _ALONE: DASHED}, None)
    lines = base.mark_line(strokeWidth=2, aria=False).encode(strokeDash=dash)
    # What is pointed at; the lines themselves carry no description.
    marked = base.mark_point(size=30, filled=True, opacity=0.9).encode(description="tip:N")
    return layered([lines, marked], "total time")

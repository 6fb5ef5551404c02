"""Throughput per disk in percent of a reference array, several shares of each array beside one another.

A share is what was simulated or measured (at saturation, at the held response time, under another workload) or what a
model says: accesses counted, or the time of disks that a request takes with one outstanding. The level stroke at the
reference is 100 %; strokes on bars are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities import Reading, Source, access_count
from raidlab.report.figures.chart import (
    DASHED,
    Mark,
    channel_by_name,
    columns_for,
    data_of,
    labels_at_right,
    layered_bars,
    level_strokes,
    names_at_left,
)
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import of_repeats, own_figures, panels_of, percent_of, reading_at, source_of, span_of
from raidlab.report.figures.printed_points import Printed, hollow_on_bars, in_words
from raidlab.report.figures.words import interval_words, number, of_bars
from raidlab.study.figure import FigureSeries, StudyFigure

KIND = "shares"
_BAR_STEP = 19
# Longer names of shares stand below one another: a reader's font may be wider than the one text is measured in.
# None of the colours that arrays have.
_COLOURS = ("#0072B2", "#A79FD0", "#8C8C8C", "#B5305F")
_CAPTION = "Throughput per disk in percent of the reference; in brackets the storage efficiency."
_STROKES = "Strokes: 95 % intervals over repeats."


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, f"{_CAPTION} {of_repeats(analysis, _STROKES)}", _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    source = source_of(analysis, target)
    drawn = []
    for place, (workload, title) in enumerate(panels_of(spec)):
        marks, over, said = [], [], {}
        for array in spec.arrays:
            for series in spec.series:
                of_series = series.workloads[place] if series.workloads else workload
                found = _share(source, spec, series, array, of_series)
                if found is not None:
                    span, name = span_of(found), _name(source, array, workload)
                    tip = f"{array}, {series.name}: {number(found.value)} % of {spec.reference}"
                    label = f"{found.value:.0f}"
                    tip += interval_words(span) if span is not None and span[1] > span[0] else ""
                    marks.append(Mark(name, found.value, interval=span, part=series.name, label=label, tip=tip))
                    said[f"{array} {series.name}"] = found.value
                    over += printed.only(series.printed).over(marks[-1], array, of_series)
        if marks:
            drawn.append((title, marks, over, said))
    most = max((mark.high for _, marks, over, _ in drawn for mark in [*marks, *over]), default=0.0)
    for title, marks, over, said in drawn:
        what = f"Throughput per disk in percent of {spec.reference}"
        yield Panel(title, _chart(marks, over, spec, title, most), of_bars(said, what) + in_words(over))


def _name(source: Source, array: str, workload: str) -> str:
    """An array beside how much of its disks is the user's."""
    points = source.points_of(array, workload)
    share = points[0].storage_efficiency if points else None
    return array if share is None else f"{array} ({100 * share:.0f} %)"


def _share(source: Source, spec: StudyFigure, series: FigureSeries, array: str, workload: str) -> Reading | None:
    reference = spec.reference
    if reference is None or not source.points_of(array, workload):
        return None
    if series.of == "access_count":
        counted = [
            access_count.read(access_count.Keys(array=name, workload=workload), source) for name in (array, reference)
        ]
        return percent_of(*counted)
    if series.of == "disk_time":
        # The more of the disks' time a request takes, the fewer of them the same disks serve.
        times = [reading_at(source, "disk_time_ms", name, workload, 1) for name in (reference, array)]
        return percent_of(*times)
    rates = [reading_at(source, "throughput_per_disk_mb_s", name, workload, series.at) for name in (array, reference)]
    return percent_of(*rates)


def _chart(marks: list[Mark], over: list[Mark], spec: StudyFigure, title: str, most: float) -> Chart:
    names = list(dict.fromkeys(mark.line for mark in marks))
    series = [one.name for one in spec.series if any(mark.part == one.name for mark in marks)]
    colours = {one.name: _COLOURS[rank % len(_COLOURS)] for rank, one in enumerate(spec.series)}
    legend = alt.Legend(columns=columns_for(series), labelLimit=300)
    # Room at the right for the figures.
    scale = alt.Scale(domain=[0, max(100.0, most) * 1.12], nice=False)
    place, within = names_at_left(names), alt.YOffset("part:N", sort=series)
    bars = (
        alt.Chart(data_of(marks))
        .mark_bar(opacity=0.9)
        .encode(
            y=place,
            yOffset=within,
            x=alt.X("value:Q", title=f"% of {spec.reference}", scale=scale, axis=alt.Axis(tickCount=6)),
            color=channel_by_name(alt.Color, "part", {name: colours[name] for name in series}, legend),
            description="tip:N",
        )
    )
    reference = alt.Chart(data_of([Mark("", 100)])).mark_rule(strokeDash=DASHED, opacity=0.6, aria=False)
    layers = [
        bars,
        labels_at_right(marks, place, size=11, yOffset=within),
        reference.encode(x="value:Q"),
        *level_strokes(marks, place, alt.X("low:Q", scale=scale), yOffset=within),
        *hollow_on_bars(over, place, alt.X("value:Q", scale=scale), yOffset=within),
    ]
    return layered_bars(layers, title, names, _BAR_STEP * len(series))

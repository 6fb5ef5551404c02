"""Throughput per disk in percent of a reference array, several shares of each array beside one another.

A share is what was simulated or measured (at saturation, at the held response time, under another workload) or what a
model says: accesses counted, or the time of disks that a request takes with one outstanding. The level stroke at the
reference is 100 %; strokes on bars are 95 % intervals over repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.quantities import Reading, Source, access_count
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.own import of_repeats, own_figures, percent_of, reading_at, source_of, span_of
from raidlab.report.figures.style import PANEL_WIDTH, label_room
from raidlab.report.figures.words import number, of_bars
from raidlab.study.figure import FigureSeries, StudyFigure

KIND = "shares"
_BAR_STEP = 19
# Longer names of shares stand below one another: a reader's font may be wider than the one text is measured in.
_LONG_NAME = 20
# None of the colours that arrays have.
_COLOURS = ("#0072B2", "#A79FD0", "#8C8C8C", "#B5305F")
_CAPTION = "Throughput per disk in percent of the reference; in brackets the storage efficiency."
_STROKES = "Strokes: 95 % intervals over repeats."


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, f"{_CAPTION} {of_repeats(analysis, _STROKES)}", _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    source = source_of(analysis, target)
    for place, workload in enumerate(spec.workloads):
        rows = [
            {
                "array": array,
                "place": _place(source, array, workload),
                "series": series.name,
                "rank": rank,
                **span_of(found),
                "label": f"{found.value:.0f}",
                "tip": f"{array}, {series.name}: {number(found.value)} % of {spec.reference}{_sure(found)}",
            }
            for array in spec.arrays
            for rank, series in enumerate(spec.series)
            if (found := _share(source, spec, series, array, series.workloads[place] if series.workloads else workload))
        ]
        if rows:
            said = {f"{row['array']} {row['series']}": row["value"] for row in rows}
            alt_text = of_bars(said, f"Throughput per disk in percent of {spec.reference}")
            yield Panel(workload, _chart(rows, spec, workload), alt_text)


def _sure(reading: Reading) -> str:
    """The interval over repeats, where there is one."""
    span = span_of(reading)
    if span["high"] <= span["low"]:
        return ""
    return f" (95 % interval {number(span['low'])} to {number(span['high'])})"


def _place(source: Source, array: str, workload: str) -> str:
    """An array beside how much of its disks is the user's."""
    points = source.points_of(array, workload)
    return f"{array} ({100 * points[0].rows[0]['storage_efficiency']:.0f} %)" if points else array


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


def _chart(rows: list[dict[str, Any]], spec: StudyFigure, title: str) -> Chart:
    arrays = list(dict.fromkeys(row["place"] for row in rows))
    series = [one.name for one in spec.series if any(row["series"] == one.name for row in rows)]
    most = max(100.0, *(row["high"] for row in rows))
    # Room at the right for the figures.
    scale = alt.Scale(domain=[0, most * 1.12], nice=False)
    place = alt.Y("place:N", sort=arrays, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=160))
    within = alt.YOffset("series:N", sort=series)
    share = alt.X("value:Q", title=f"% of {spec.reference}", scale=scale, axis=alt.Axis(tickCount=6))
    colours = {one.name: _COLOURS[rank % len(_COLOURS)] for rank, one in enumerate(spec.series)}
    colour = alt.Color(
        "series:N",
        title=None,
        sort=series,
        scale=alt.Scale(domain=series, range=[colours[name] for name in series]),
        legend=alt.Legend(columns=1 if max(map(len, series)) > _LONG_NAME else 2, labelLimit=300),
    )
    base = alt.Chart(data_of(rows))
    layers: list[Any] = [
        base.mark_bar(opacity=0.9).encode(y=place, yOffset=within, x=share, color=colour, description="tip:N"),
        base.mark_text(align="right", baseline="middle", fontSize=11, fontWeight=600, aria=False).encode(
            y=place, yOffset=within, x=alt.value(PANEL_WIDTH - 2), text="label:N"
        ),
        alt.Chart(data_of([{"at": 100}])).mark_rule(strokeDash=[5, 4], opacity=0.6, aria=False).encode(x="at:Q"),
    ]
    spans = [row for row in rows if row["high"] > row["low"]]
    if spans:
        strokes = alt.Chart(data_of(spans)).mark_rule(strokeWidth=1.5, aria=False)
        layers.append(strokes.encode(y=place, yOffset=within, x=alt.X("low:Q", scale=scale), x2="high:Q"))
    chart = alt.LayerChart(layer=layers)
    return chart.properties(
        padding=label_room(arrays), width=PANEL_WIDTH, height=_BAR_STEP * len(arrays) * len(series), title=title
    )

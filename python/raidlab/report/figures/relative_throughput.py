"""Throughput against the reference array, beside the simple access-count model and the figure at equal response time.

The bar stands for the heaviest load of the sweep, the upright mark for what counting accesses predicts, the diamond
for the load at which every array keeps the same percentile of response time. Where bar and mark part, the
disks did something that counting accesses does not know: a seek saved, a seek chosen, a queue.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from raidlab.analysis.metrics import Analysis, Comparison
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, layered_bars, level_strokes, names_at_left
from raidlab.report.figures.figure import Chart, Figure, Panel, group_key, key_of
from raidlab.report.figures.style import INK, colours_of
from raidlab.report.figures.words import interval_words, number, of_bars

KIND = "relative_throughput"
MODEL = "access-count model"
HELD = "at equal p{percentile:g}"
_BAR_STEP = 30
# Beside the plot, where no interval runs through them, stand the figures of the bars.
_FIGURES = 46
_UPRIGHT = "M-.13,-1.15H.13V1.15H-.13Z"


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each table of the study and each target; a panel for each workload."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in analysis.comparisons:
        # An interrupted run may lack the reference; then there is nothing to be relative to.
        if all(row.values["relative_throughput_percent"] is None for row in comparison.rows):
            continue
        found.setdefault((comparison.compare.group, comparison.target), []).append(comparison)
    for (group, target), comparisons in found.items():
        compare = comparisons[0].compare
        per = {"disk": "per disk ", "user_capacity": "per user capacity ", "array": ""}[compare.per]
        found_loads = list(dict.fromkeys(comparison.load for comparison in comparisons))
        loads = found_loads[0] if len(found_loads) == 1 else "the heaviest load of each sweep"
        yield Figure(
            KIND,
            key_of(KIND, group_key(analysis.run.study, group), target),
            f"Throughput {per}relative to {compare.reference}",
            f"Bars: at {loads}; lines across their ends: the 95 % interval over repeats, where there are repeats."
            " Upright mark: what counting accesses predicts."
            " Diamond: where all arrays keep the same response-time target.",
            tuple(_panel(comparison) for comparison in comparisons),
        )


def _panel(comparison: Comparison) -> Panel:
    """Bars, with what counting accesses predicts and what is held as marks on them."""
    of_reference = f"% of {comparison.compare.reference}"
    bars, models, held = [], [], []
    for row in comparison.rows:
        relative, model = row.values["relative_throughput_percent"], row.values["access_count_model_percent"]
        if relative is not None:
            sure, label = interval_words(row.relative_interval_percent), f"{relative:.0f} %"
            tip = f"{row.array}, {comparison.load}: {number(relative)} {of_reference}{sure}"
            bars.append(Mark(row.array, relative, interval=row.relative_interval_percent, label=label, tip=tip))
        if model is not None:
            tip = f"{row.array}: counting accesses predicts {number(model)} %"
            models.append(Mark(row.array, model, part=MODEL, tip=tip))
        at = row.held
        if at is not None and at.relative_percent is not None and not at.is_lower_bound:
            where = f"p{at.percentile:g} at {number(at.target_ms)} ms"
            tip = f"{row.array}, {where}: {number(at.relative_percent)} {of_reference}"
            held.append(Mark(row.array, at.relative_percent, part=HELD.format(percentile=at.percentile), tip=tip))
    shares = {mark.line: f"{number(mark.value)}{interval_words(mark.interval)}" for mark in bars}
    said = (
        (shares, f"Throughput in percent of {comparison.compare.reference}, at {comparison.load}"),
        ({mark.line: mark.value for mark in models}, "What counting accesses predicts"),
        ({mark.line: mark.value for mark in held}, "Where all keep the same response time"),
    )
    names = [row.array for row in comparison.rows]
    chart = _chart(names, bars, models, held, of_reference, comparison.workload)
    return Panel(comparison.workload, chart, " ".join(of_bars(values, what) for values, what in said if values))


def _chart(
    names: list[str], bars: list[Mark], models: list[Mark], held: list[Mark], of_reference: str, title: str
) -> Chart:
    largest = max((mark.value for mark in [*bars, *models, *held]), default=100.0)
    # An interval may be wider than what is worth drawing; it is cut at the edge of the panel.
    edge = max(110.0, largest * 1.1)
    cut = [
        Mark(mark.line, mark.value, interval=(max(mark.interval[0], 0.0), min(mark.interval[1], edge)))
        for mark in bars
        if mark.interval is not None
    ]
    place, scale = names_at_left(names), alt.Scale(domain=[0, edge], nice=False)
    along, low_end = (
        alt.X(f"{field}:Q", title=of_reference, scale=scale, axis=alt.Axis(tickCount=5)) for field in ("value", "low")
    )
    kinds = {mark.part: _UPRIGHT if mark.part == MODEL else "diamond" for mark in [*models, *held]}
    legend = alt.Legend(columns=2, symbolFillColor=INK, symbolStrokeWidth=0)
    shape = channel_by_name(alt.Shape, "part", kinds, legend)
    bar = alt.Chart(data_of(bars)).encode(y=place, x=along)
    drawn = bar.mark_bar(height=18, opacity=0.85).encode(
        color=channel_by_name(alt.Color, "line", colours_of(names), None), description="tip:N"
    )
    text = bar.mark_text(align="right", baseline="middle", fontSize=12, fontWeight=600, dx=_FIGURES, aria=False)
    pointed = []
    if models:
        pointed.append(alt.Chart(data_of(models)).mark_point(filled=True, opacity=1, size=420, color=INK))
    if held:
        diamonds = alt.Chart(data_of(held))
        pointed.append(
            diamonds.mark_point(filled=True, opacity=1, size=110, color=INK, stroke="white", strokeWidth=1.2)
        )
    layers = [
        drawn,
        *level_strokes(cut, place, low_end),
        *(marked.encode(y=place, x=along, shape=shape, description="tip:N") for marked in pointed),
        text.encode(x=alt.value("width"), text="label:N"),
    ]
    return layered_bars(layers, title, names, _BAR_STEP, beside=_FIGURES)

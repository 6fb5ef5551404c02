"""Throughput against the reference array, beside the simple access-count model and the figure at equal response time.

The bar stands for the heaviest load of the sweep, the upright mark for what counting accesses predicts, the diamond
for the load at which every array keeps the same percentile of response time. Where bar and mark part, the
disks did something that counting accesses does not know: a seek saved, a seek chosen, a queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis, Comparison, Row
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of, key_of
from raidlab.report.figures.style import INK, PANEL_WIDTH, colours_of
from raidlab.report.figures.words import number, of_bars

KIND = "relative_throughput"
MODEL = "access-count model"
HELD = "at equal p{percentile:g}"
_BAR_STEP = 30
# Beside the plot, where no interval runs through them, stand the figures of the bars.
_WIDTH = PANEL_WIDTH - 46
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
            key_of(KIND, group, target),
            f"Throughput {per}relative to {compare.reference}",
            f"Bars: at {loads}; lines across their ends: the 95 % interval over repeats, where there are repeats."
            " Upright mark: what counting accesses predicts."
            " Diamond: where all arrays keep the same response-time target.",
            tuple(Panel(found.workload, _chart(found), _alt_text(found)) for found in comparisons),
        )


def _alt_text(comparison: Comparison) -> str:
    """What bars, marks and diamonds stand at."""
    bars, models, held = {}, {}, {}
    for row in comparison.rows:
        relative, model = row.values["relative_throughput_percent"], row.values["access_count_model_percent"]
        if relative is not None:
            bars[row.array] = f"{number(relative)}{_sure(row)}"
        if model is not None:
            models[row.array] = model
        if row.held is not None and row.held.relative_percent is not None and not row.held.is_lower_bound:
            held[row.array] = row.held.relative_percent
    parts = (
        (bars, f"Throughput in percent of {comparison.compare.reference}, at {comparison.load}"),
        (models, "What counting accesses predicts"),
        (held, "Where all keep the same response time"),
    )
    return " ".join(of_bars(values, what) for values, what in parts if values)


def _sure(row: Row) -> str:
    """The interval, where there is one."""
    if row.relative_interval_percent is None:
        return ""
    low, high = row.relative_interval_percent
    return f" (95 % interval {number(low)} to {number(high)})"


def _chart(comparison: Comparison) -> Chart:
    names = [row.array for row in comparison.rows]
    colours = colours_of(names)
    bars: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    ranges: list[dict[str, Any]] = []
    for row in comparison.rows:
        relative, model = row.values["relative_throughput_percent"], row.values["access_count_model_percent"]
        if relative is not None:
            tip = f"{row.array}, {comparison.load}: {number(relative)} % of {comparison.compare.reference}{_sure(row)}"
            bars.append({"array": row.array, "percent": relative, "label": f"{relative:.0f} %", "tip": tip})
        if relative is not None and row.relative_interval_percent is not None:
            low, high = row.relative_interval_percent
            ranges.append({"array": row.array, "low": low, "high": high})
        if model is not None:
            tip = f"{row.array}: counting accesses predicts {number(model)} %"
            marks.append({"array": row.array, "percent": model, "what": MODEL, "tip": tip})
        if row.held is not None and row.held.relative_percent is not None and not row.held.is_lower_bound:
            what = HELD.format(percentile=row.held.percentile)
            at = f"p{row.held.percentile:g} at {number(row.held.target_ms)} ms"
            tip = f"{row.array}, {at}: {number(row.held.relative_percent)} % of {comparison.compare.reference}"
            marks.append({"array": row.array, "percent": row.held.relative_percent, "what": what, "tip": tip})
    kinds = list(dict.fromkeys(mark["what"] for mark in marks))
    largest = max((item["percent"] for item in [*bars, *marks]), default=100.0)
    # An interval may be wider than what is worth drawing; it is cut at the edge of the panel.
    edge = max(110.0, largest * 1.1)
    ranges = [{**item, "low": max(item["low"], 0.0), "high": min(item["high"], edge)} for item in ranges]
    place = alt.Y("array:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=140))

    def axis_at(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title=f"% of {comparison.compare.reference}",
            scale=alt.Scale(domain=[0, edge], nice=False),
            axis=alt.Axis(tickCount=5),
        )

    axis = axis_at("percent")
    bar = alt.Chart(data_of(bars)).encode(y=place, x=axis)
    drawn = bar.mark_bar(height=18, opacity=0.85).encode(
        color=alt.Color("array:N", legend=None, scale=alt.Scale(domain=names, range=[colours[name] for name in names])),
        description="tip:N",
    )
    text = bar.mark_text(align="right", baseline="middle", fontSize=12, fontWeight=600, aria=False).encode(
        x=alt.value(PANEL_WIDTH), text="label:N"
    )
    shape = alt.Shape(
        "what:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[_UPRIGHT if kind == MODEL else "diamond" for kind in kinds]),
        legend=alt.Legend(columns=2, symbolFillColor=INK, symbolStrokeWidth=0),
    )
    looks: dict[bool, dict[str, Any]] = {
        True: {"size": 420, "color": INK},
        False: {"size": 110, "color": INK, "stroke": "white", "strokeWidth": 1.2},
    }
    pointed = [
        alt.Chart(data_of(drawn_marks))
        .mark_point(filled=True, opacity=1, **look)
        .encode(y=place, x=axis, shape=shape, description="tip:N")
        for is_model, look in looks.items()
        if (drawn_marks := [mark for mark in marks if (mark["what"] == MODEL) == is_model])
    ]
    spans = (
        [
            alt.Chart(data_of(ranges))
            .mark_rule(strokeWidth=1.5, aria=False)
            .encode(y=place, x=axis_at("low"), x2="high:Q")
        ]
        if ranges
        else []
    )
    chart = alt.LayerChart(layer=[drawn, *spans, *pointed, text])
    return chart.properties(width=_WIDTH, height=_BAR_STEP * max(len(names), 1), title=comparison.workload)

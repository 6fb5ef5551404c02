"""B against A: the ratio of every load that both have, with its interval, a panel for each figure and workload.

B is in percent of A, on a logarithmic axis, so that twice and half are as far from the line of no difference. The axis
is that of the marks: an interval that goes beyond it is cut there, and its tooltip has its ends. Marks without a stroke
were not tested, because a side has a single repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import altair as alt

from raidlab.analysis.metrics.run_comparison import ComparisonRow, RunComparison
from raidlab.report.differences import direction_words, load_words
from raidlab.report.figures.chart import (
    Axes,
    Mark,
    channel_by_name,
    data_of,
    layered_bars,
    level_strokes,
    names_at_left,
    point_layer,
)
from raidlab.report.figures.figure import Chart, Figure, Panel, key_of
from raidlab.report.figures.style import COLOURS
from raidlab.report.figures.throughput_against_p90 import ticks_between
from raidlab.report.figures.words import number

KIND = "ratios"
SHOWN, NOT_SHOWN, NOT_TESTED = "a difference is shown", "none is shown", "not tested"
_COLOURS = {SHOWN: COLOURS[1], NOT_SHOWN: COLOURS[0], NOT_TESTED: COLOURS[6]}
_SHAPES = {SHOWN: "diamond", NOT_SHOWN: "circle", NOT_TESTED: "triangle-up"}
_ROW_STEP = 20
# The axis shows at least so much on both sides of 100.
_LEAST, _MOST = 80.0, 125.0
# Beyond this span the axis is marked at 1, 2 and 5 times powers of ten.
_WIDE_RATIO = 4
# So many percent can be marked at every ten of them.
_FEW_TENS = 60


def figures_of(found: RunComparison) -> Iterator[Figure]:
    """One figure for each kind of figure that was compared."""
    with_arrays = len({(row.a.array, row.b.array) for row in found.rows}) > 1
    for kind in dict.fromkeys(row.figure.kind for row in found.rows):
        mine = [row for row in found.rows if row.figure.kind == kind]
        panels = []
        for subject in dict.fromkeys(_subject(row, mine) for row in mine):
            rows = [row for row in mine if _subject(row, mine) == subject and row.difference.ratio.value is not None]
            if rows:
                said = f"{'; '.join(_said(row) for row in rows)}."
                panels.append(Panel(subject, _chart(rows, subject, with_arrays=with_arrays), said))
        if panels:
            title = f"B against A: {mine[0].figure.title}"
            caption = (
                "B in percent of A (log scale); 100 is no difference. Strokes are intervals as wide as the correction"
                " for all lines asks, cut at the edge of the panel."
            )
            yield Figure(KIND, key_of(KIND, kind), title, caption, tuple(panels))


def _subject(row: ComparisonRow, rows: list[ComparisonRow]) -> str:
    return f"{row.a.workload}{direction_words(row, rows)}"


def _name(row: ComparisonRow, *, with_arrays: bool) -> str:
    return f"{f'{row.arrays}, ' if with_arrays else ''}{load_words(row.level)} ({row.targets})"


def _change(ratio: float) -> float:
    return 100 * (ratio - 1)


def _verdict(row: ComparisonRow) -> str:
    return NOT_TESTED if row.difference.shown is None else SHOWN if row.difference.shown else NOT_SHOWN


def _said(row: ComparisonRow) -> str:
    change = f"{_change(row.difference.ratio.value or 1.0):+.3g} %"
    if row.difference.interval is not None:
        low, high = (f"{_change(end):+.3g}" for end in row.difference.interval)
        change = f"{change} ({low} to {high})"
    values = f"{number(row.values[1])} against {number(row.values[0])}"
    return f"{_name(row, with_arrays=True)}: {values}, {change}, {_verdict(row)}"


def _chart(rows: list[ComparisonRow], title: str, *, with_arrays: bool) -> Chart:
    at = [100 * (row.difference.ratio.value or 1.0) for row in rows]
    ends = [100 * end for row in rows for end in row.difference.interval or ()]
    # As far as intervals go, but not beyond twice the marks: a wide one would press all others to the line.
    least = max(min(_LEAST, *at) / 2, min(_LEAST, *at, *ends))
    most = min(max(_MOST, *at) * 2, max(_MOST, *at, *ends))
    marks = []
    for row, value in zip(rows, at, strict=True):
        low, high = (100 * end for end in row.difference.interval or (value / 100, value / 100))
        span, name = (max(low, least), min(high, most)), _name(row, with_arrays=with_arrays)
        marks.append(Mark(name, value, interval=span, part=_verdict(row), tip=_said(row)))
    names = list(dict.fromkeys(mark.line for mark in marks))
    verdicts = [verdict for verdict in _COLOURS if any(mark.part == verdict for mark in marks)]
    scale = alt.Scale(type="log", domain=[least * 0.98, most * 1.02], nice=False)
    axis = alt.Axis(values=_ticks(least, most), format="d", labelOverlap="greedy")
    along, low_end = (
        alt.X(f"{field}:Q", title="B in percent of A (log scale)", scale=scale, axis=axis) for field in ("value", "low")
    )
    legend = alt.Legend(columns=2)
    colour = channel_by_name(alt.Color, "part", {verdict: _COLOURS[verdict] for verdict in verdicts}, legend)
    shape = channel_by_name(alt.Shape, "part", {verdict: _SHAPES[verdict] for verdict in verdicts}, legend)
    place = names_at_left(names)
    layers = [
        alt.Chart(data_of([Mark("", 100.0)])).mark_rule(opacity=0.6, aria=False).encode(x=along),
        *level_strokes(marks, place, low_end, color=colour),
        point_layer(marks, Axes(along, place, colour), shape, size=70),
    ]
    return layered_bars(layers, title, names, _ROW_STEP)


def _ticks(least: float, most: float) -> list[float]:
    """Places to mark: 1, 2, 5 and ten times that over a wide span, tens over a narrow one."""
    if most / least <= _WIDE_RATIO:
        step = 10 if most - least <= _FEW_TENS else 20
        return [float(tick) for tick in range(step * math.ceil(least / step), int(most) + 1, step)]
    return [tick for tick in ticks_between([least, most]) if least <= tick <= most]

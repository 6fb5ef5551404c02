"""B against A: the ratio of every load that both have, with its interval, a panel for each figure and workload.

B is in percent of A, on a logarithmic axis, so that twice and half are as far from the line of no difference. The axis
is that of the marks: an interval that goes beyond it is cut there, and its tooltip has its ends. Marks without a stroke
were not tested, because a side has a single repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics.run_comparison import Compared, RunComparison
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of, key_of
from raidlab.report.figures.style import COLOURS, PANEL_WIDTH, label_room
from raidlab.report.figures.throughput_against_p90 import ticks_between
from raidlab.report.figures.words import number

KIND = "ratios"
SHOWN, NOT_SHOWN, NOT_TESTED = "a difference is shown", "none is shown", "not tested"
_LOOKS = {SHOWN: (COLOURS[1], "diamond"), NOT_SHOWN: (COLOURS[0], "circle"), NOT_TESTED: (COLOURS[6], "triangle-up")}
_ROW_STEP = 20
# The axis shows at least so much on both sides of 100.
_LEAST, _MOST = 80.0, 125.0
# Beyond this span the axis is marked at 1, 2 and 5 times powers of ten.
_WIDE_RATIO = 4
# So many percent can be marked at every ten of them.
_FEW_TENS = 60
_WIDTH = PANEL_WIDTH - 60


def figures_of(found: RunComparison) -> Iterator[Figure]:
    """One figure for each kind of figure that was compared."""
    for kind in dict.fromkeys(row.figure.kind for row in found.rows):
        mine = [row for row in found.rows if row.figure.kind == kind]
        panels = []
        for subject in dict.fromkeys(_subject(row, mine) for row in mine):
            rows = [row for row in mine if _subject(row, mine) == subject and row.difference.ratio.value is not None]
            if rows:
                with_arrays = len({(row.a.array, row.b.array) for row in found.rows}) > 1
                panels.append(Panel(subject, _chart(rows, subject, with_arrays=with_arrays), _alt_text(rows)))
        if panels:
            title = f"B against A: {mine[0].figure.title}"
            caption = (
                "B in percent of A (log scale); 100 is no difference. Strokes are intervals as wide as the correction"
                " for all lines asks, cut at the edge of the panel."
            )
            yield Figure(KIND, key_of(KIND, kind), title, caption, tuple(panels))


def _subject(row: Compared, rows: list[Compared]) -> str:
    """The workload, and the direction where it has both."""
    ways = {other.operation for other in rows if other.a.workload == row.a.workload} - {"all"}
    return f"{row.a.workload}, {row.operation}s" if row.operation != "all" and len(ways) > 1 else row.a.workload


def _name(row: Compared, *, with_arrays: bool) -> str:
    level = row.level.replace("queue depth", "depth").replace(" requests/s offered", "/s")
    return f"{f'{row.arrays}, ' if with_arrays else ''}{level} ({row.targets})"


def _change(ratio: float) -> float:
    return 100 * (ratio - 1)


def _verdict(row: Compared) -> str:
    return NOT_TESTED if row.difference.shown is None else SHOWN if row.difference.shown else NOT_SHOWN


def _said(row: Compared) -> str:
    change = f"{_change(row.difference.ratio.value or 1.0):+.3g} %"
    if row.difference.interval is not None:
        low, high = (f"{_change(end):+.3g}" for end in row.difference.interval)
        change = f"{change} ({low} to {high})"
    values = f"{number(row.values[1])} against {number(row.values[0])}"
    return f"{_name(row, with_arrays=True)}: {values}, {change}, {_verdict(row)}"


def _alt_text(rows: list[Compared]) -> str:
    return f"{'; '.join(_said(row) for row in rows)}."


def _chart(rows: list[Compared], title: str, *, with_arrays: bool) -> Chart:
    marks = [100 * (row.difference.ratio.value or 1.0) for row in rows]
    ends = [100 * end for row in rows for end in row.difference.interval or ()]
    # As far as intervals go, but not beyond twice the marks: a wide one would press all others to the line.
    least = max(min(_LEAST, *marks) / 2, min(_LEAST, *marks, *ends))
    most = min(max(_MOST, *marks) * 2, max(_MOST, *marks, *ends))
    data: list[dict[str, Any]] = []
    for row, at in zip(rows, marks, strict=True):
        low, high = (100 * end for end in row.difference.interval) if row.difference.interval else (at, at)
        name = _name(row, with_arrays=with_arrays)
        data.append(
            {
                "name": name,
                "at": at,
                "low": max(low, least),
                "high": min(high, most),
                "is": _verdict(row),
                "tip": _said(row),
            }
        )
    names = list(dict.fromkeys(one["name"] for one in data))
    scale = alt.Scale(type="log", domain=[least * 0.98, most * 1.02], nice=False)
    place = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=230))
    axis = alt.Axis(values=_ticks(least, most), format="d", labelOverlap="greedy")

    def along(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title="B in percent of A (log scale)", scale=scale, axis=axis)

    verdicts = [verdict for verdict in _LOOKS if any(one["is"] == verdict for one in data)]
    colours = alt.Scale(domain=verdicts, range=[_LOOKS[verdict][0] for verdict in verdicts])
    shapes = alt.Scale(domain=verdicts, range=[_LOOKS[verdict][1] for verdict in verdicts])
    legend = alt.Legend(columns=2)
    layers: list[Any] = [
        alt.Chart(data_of([{"at": 100.0}])).mark_rule(opacity=0.6, aria=False).encode(x=along("at")),
    ]
    spans = [one for one in data if one["high"] > one["low"]]
    if spans:
        strokes = alt.Chart(data_of(spans)).mark_rule(strokeWidth=1.5, aria=False)
        layers.append(
            strokes.encode(
                y=place, x=along("low"), x2="high:Q", color=alt.Color("is:N", scale=colours, legend=legend, title=None)
            )
        )
    points = alt.Chart(data_of(data)).mark_point(filled=True, size=70, opacity=1)
    layers.append(
        points.encode(
            y=place,
            x=along("at"),
            color=alt.Color("is:N", title=None, scale=colours, legend=legend),
            shape=alt.Shape("is:N", title=None, scale=shapes, legend=legend),
            description="tip:N",
        )
    )
    return alt.LayerChart(layer=layers).properties(
        padding=label_room(names), width=_WIDTH, height=_ROW_STEP * len(names), title=title
    )


def _ticks(least: float, most: float) -> list[float]:
    """Places to mark: 1, 2, 5 and ten times that over a wide span, tens over a narrow one."""
    if most / least <= _WIDE_RATIO:
        step = 10 if most - least <= _FEW_TENS else 20
        return [float(tick) for tick in range(step * math.ceil(least / step), int(most) + 1, step)]
    return [tick for tick in ticks_between([least, most]) if least <= tick <= most]

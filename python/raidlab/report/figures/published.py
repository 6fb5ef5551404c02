"""What a run gives beside what its study printed: how far each figure lies off, and the misses with both figures.

Each mark is one printed figure: at 0 it agrees to half of its last digit. Those that parameters were fitted to are
hollow, misses are orange diamonds; arithmetic, which needs no run, is left out. Below, each miss in percent of what was
printed, which stands at 100. What lies beyond a panel is a triangle at its edge that points outwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import Any

import altair as alt

from raidlab.published.compare import MISS_PERCENT, MISS_POINTS, Comparison, Row
from raidlab.published.compare.row import ARITHMETIC, FITTED
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.style import COLOURS, INK, label_room
from raidlab.report.figures.words import number
from raidlab.study.published import number as printed_number

KIND = "published"
NEAR, MISS = "near", "miss"
_WIDTH = 470
_ROW_STEP = 30
# What lies further off than this stands at the edge.
_EDGE = 30.0
# So many misses are drawn, the largest first; the page's table has all.
_MOST = 14
_JITTER_STEPS = 7
_PRINTED = 100.0
# By the side on which a mark lies beyond its panel.
_OUTWARDS = {-1: "triangle-left", 1: "triangle-right"}


def figures_of(comparison: Comparison) -> Iterator[Figure]:
    """The figure of a comparison; none where no printed figure could be worked out."""
    rows = [
        row
        for row in comparison.rows
        if row.verdict == "compared" and row.error is not None and row.value is not None and row.kind != ARITHMETIC
    ]
    if not rows:
        return
    panels = [Panel("Every printed figure", _errors(rows), _alt_text(rows))]
    missed = sorted((row for row in rows if row.is_miss and _share(row) is not None), key=_size, reverse=True)
    if missed:
        said = "; ".join(_both(row) for row in missed[:_MOST])
        title = "The misses" if len(missed) <= _MOST else f"The {_MOST} largest of {len(missed)} misses"
        panels.append(Panel(title, _misses(missed[:_MOST], title), f"Here against printed: {said}."))
    yield Figure(KIND, KIND, "Printed beside what comes out here", _caption(rows, missed[:_MOST]), tuple(panels))


def _caption(rows: list[Row], missed: list[Row]) -> str:
    said = [
        "One mark a figure, by table: how far it lies beyond half of its last printed digit. Near is within"
        f" {MISS_PERCENT:g} %, of percentages within {MISS_POINTS:g} points; hollow marks were fitted to."
    ]
    if missed:
        said.append("Misses are in percent of what was printed, without the allowance of half a digit.")
    if any(_beyond(row.error or 0.0, -_EDGE, _EDGE) for row in rows) or any(map(_share_beyond, missed)):
        said.append("Triangles at an edge lie beyond it.")
    return " ".join(said)


def _beyond(value: float, low: float, high: float) -> int:
    """On which side of a panel a value lies: -1, 1, or 0 within it."""
    return (value > high) - (value < low)


def _share_beyond(row: Row) -> int:
    return _beyond(_share(row) or 0.0, 0.0, 2 * _PRINTED)


def _size(row: Row) -> float:
    return abs(row.error or 0.0)


def _share(row: Row) -> float | None:
    """What comes out here in percent of what was printed, of a range in percent of its nearer end."""
    ends = [printed_number(text) for text in (row.published.value, row.published.low, row.published.high) if text]
    known = [end for end in ends if end]
    if not known or row.value is None:
        return None
    value = row.value
    return 100 * value / min(known, key=lambda end: abs(end - value))


def _both(row: Row) -> str:
    return f"{row.id} {number(row.value)} against {row.published.text} {row.published.unit}".strip()


def _tip(row: Row) -> str:
    how = f", {row.kind}" if row.kind else ""
    return f"{_both(row)}: {row.error or 0.0:+.2g} {row.error_unit}{how}"


def _alt_text(rows: list[Row]) -> str:
    said = []
    for table in dict.fromkeys(row.table for row in rows):
        mine = [row for row in rows if row.table == table]
        sizes = [_size(row) for row in mine]
        misses = sum(row.is_miss for row in mine)
        said.append(f"{table}: {len(mine)} figures, median error {number(median(sizes))}, {misses} misses")
    return f"Errors by table, in percent, of percentages in points. {'; '.join(said)}."


def _errors(rows: list[Row]) -> Chart:
    """Errors, a line of marks for each table."""
    tables = list(dict.fromkeys(row.table for row in rows))
    counts = dict.fromkeys(tables, 0)
    data: list[dict[str, Any]] = []
    for row in rows:
        error = max(-_EDGE, min(_EDGE, row.error or 0.0))
        counts[row.table] += 1
        # Marks of one table are spread over its height, so that those at one place can be told apart.
        spread = counts[row.table] * 3 % _JITTER_STEPS
        verdict, is_fitted = MISS if row.is_miss else NEAR, row.kind == FITTED
        data.append(
            {
                "table": row.table,
                "error": error,
                "spread": spread,
                "verdict": verdict,
                "tip": _tip(row),
                "fit": is_fitted,
                "beyond": _beyond(row.error or 0.0, -_EDGE, _EDGE),
            }
        )
    most = max(MISS_PERCENT * 1.4, *(abs(one["error"]) for one in data)) * 1.05
    place = alt.Y("table:N", sort=tables, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=170))
    axis = alt.X(
        "error:Q",
        title="error (%; of percentages: points)",
        scale=alt.Scale(domain=[-most, most], nice=False),
        axis=alt.Axis(tickCount=7, format="+d"),
    )
    verdicts = [verdict for verdict in (NEAR, MISS) if any(one["verdict"] == verdict for one in data)]
    looks = {NEAR: (COLOURS[0], "circle"), MISS: (COLOURS[1], "diamond")}
    legend = alt.Legend(symbolSize=90)
    layers: list[Any] = [
        alt.Chart(data_of([{"error": 0}])).mark_rule(aria=False, opacity=0.6).encode(x=axis),
    ]
    colour, shape = (
        channel(
            "verdict:N",
            title=None,
            scale=alt.Scale(domain=verdicts, range=[looks[one][which] for one in verdicts]),
            legend=legend,
        )
        for which, channel in enumerate((alt.Color, alt.Shape))
    )
    offset = alt.YOffset("spread:Q", scale=alt.Scale(domain=[-1, _JITTER_STEPS]))
    for is_fitted, side in product((True, False), (0, *_OUTWARDS)):
        mine = [one for one in data if (one["fit"], one["beyond"]) == (is_fitted, side)]
        if mine:
            marks = alt.Chart(data_of(mine)).mark_point(filled=not is_fitted, size=60, opacity=0.85)
            looking = alt.ShapeValue(_OUTWARDS[side]) if side else shape
            layers.append(
                marks.encode(x=axis, y=place, yOffset=offset, color=colour, shape=looking, description="tip:N")
            )
    chart = alt.LayerChart(layer=layers)
    return chart.properties(
        padding=label_room(tables), width=_WIDTH, height=_ROW_STEP * len(tables), title="Every printed figure"
    )


def _misses(rows: list[Row], title: str) -> Chart:
    """Each miss as a pair of marks: printed, and here."""
    shares = [max(0.0, min(2 * _PRINTED, _share(row) or 0.0)) for row in rows]
    data = [
        {
            "id": row.id,
            "share": share,
            "printed": _PRINTED,
            "tip": _tip(row),
            "label": f"{number(row.value)} / {row.published.text}",
            "shape": _OUTWARDS.get(_share_beyond(row), "diamond"),
        }
        for row, share in zip(rows, shares, strict=True)
    ]
    place = alt.Y(
        "id:N", sort=[row.id for row in rows], title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=230)
    )
    low, high = min(0.95 * _PRINTED, *shares), max(1.05 * _PRINTED, *shares)
    room = (high - low) * 0.06
    scale = alt.Scale(domain=[low - room, high + (high - low) * 0.45], nice=False)
    base = alt.Chart(data_of(data)).encode(y=place)

    def at(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q", title="percent of what was printed (here / printed)", scale=scale, axis=alt.Axis(tickCount=6)
        )

    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6, aria=False).encode(x=at("printed"), x2="share:Q"),
        base.mark_point(filled=False, size=60, color=INK, aria=False).encode(x=at("printed")),
        base.mark_point(filled=True, size=80, color=COLOURS[1], opacity=1).encode(
            x=at("share"), shape=alt.Shape("shape:N", scale=None, legend=None), description="tip:N"
        ),
        base.mark_text(align="right", baseline="middle", fontSize=11, aria=False).encode(
            x=alt.value(_WIDTH - 150), text="label:N"
        ),
    ]
    return alt.LayerChart(layer=layers).properties(
        padding=label_room([row.id for row in rows]), width=_WIDTH - 150, height=24 * len(rows), title=title
    )

"""What a run gives beside what its study printed: how far each figure lies off, and the misses with both figures.

Each mark is one printed figure: at 0 it is what was printed, as far as that was rounded. Those that parameters were
fitted to are hollow, misses are orange diamonds; arithmetic and what is given, which say nothing of the model, are left
out. Below, each miss in percent of what was printed, which stands at 100. What lies beyond a panel is a triangle at its
edge that points outwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import median

import altair as alt

from raidlab.published.compare import MISS_PERCENT, MISS_POINTS, PublishedComparison, PublishedRow
from raidlab.published.compare.evaluate import table_in_words
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, layered_bars, names_at_left
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.style import COLOURS, INK
from raidlab.report.figures.words import number
from raidlab.study.published import number as printed_number
from raidlab.study.units import format_number

KIND = "published"
NEAR, MISS = "near", "miss"
_ROW_STEP = 30
# What lies further off than this stands at the edge.
_EDGE = 30.0
# So many misses are drawn, the largest first; the page's table has all.
_MOST = 14
_JITTER_STEPS = 7
_PRINTED = 100.0
# By the side on which a mark lies beyond its panel.
_OUTWARDS = {-1: "triangle-left", 1: "triangle-right"}


def figures_of(comparison: PublishedComparison) -> Iterator[Figure]:
    """The figure of a comparison; none where no printed figure could be worked out."""
    rows = [
        row
        for row in comparison.rows
        if row.verdict == "compared" and row.error is not None and row.value is not None and row.is_counted
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


def _caption(rows: list[PublishedRow], missed: list[PublishedRow]) -> str:
    said = [
        "One mark a figure, by table: how far it lies from the printed one, beyond what the rounding of that explains."
        f" Near is within {MISS_PERCENT:g} %, of percentages within {MISS_POINTS:g} points and a fifth; hollow marks"
        " were fitted to, or are worked out of such."
    ]
    if missed:
        said.append("Misses are in percent of the number as it was printed, with nothing off for its rounding.")
    if any(_beyond(row.error or 0.0, -_EDGE, _EDGE) for row in rows) or any(map(_share_beyond, missed)):
        said.append("Triangles at an edge lie beyond it.")
    return " ".join(said)


def _beyond(value: float, low: float, high: float) -> int:
    """On which side of a panel a value lies: -1, 1, or 0 within it."""
    return (value > high) - (value < low)


def _share_beyond(row: PublishedRow) -> int:
    return _beyond(_share(row) or 0.0, 0.0, 2 * _PRINTED)


def _size(row: PublishedRow) -> float:
    return abs(row.error or 0.0)


def _share(row: PublishedRow) -> float | None:
    """What comes out here in percent of what was printed, of a range in percent of its nearer end."""
    ends = [printed_number(text) for text in (row.published.value, row.published.low, row.published.high) if text]
    known = [end for end in ends if end]
    if not known or row.value is None:
        return None
    value = row.value
    return 100 * value / min(known, key=lambda end: abs(end - value))


def _here(row: PublishedRow) -> str:
    """What comes out here, by as many digits as it is told with in words."""
    return "-" if row.value is None else format_number(row.value)


def _both(row: PublishedRow) -> str:
    return f"{row.title}: {_here(row)} against {row.published.text} {row.published.unit}".strip()


def _tip(row: PublishedRow) -> str:
    how = f", {row.kind}" if row.kind else ""
    return f"{_both(row)}: {row.error or 0.0:+.2g} {row.error_unit}{how}"


def _alt_text(rows: list[PublishedRow]) -> str:
    said = []
    for table in dict.fromkeys(row.table for row in rows):
        mine = [row for row in rows if row.table == table]
        sizes = [_size(row) for row in mine]
        misses = sum(row.is_miss for row in mine)
        said.append(
            f"{table_in_words(table)}: {len(mine)} figures, median error {number(median(sizes))}, {misses} misses"
        )
    return f"Errors by table, in percent, of percentages in points. {'; '.join(said)}."


def _errors(rows: list[PublishedRow]) -> Chart:
    """Errors, a line of marks for each table."""
    tables = list(dict.fromkeys(table_in_words(row.table) for row in rows))
    counts = dict.fromkeys(tables, 0)
    marks: dict[tuple[bool, int], list[Mark]] = {}
    for row in rows:
        error = row.error or 0.0
        table = table_in_words(row.table)
        counts[table] += 1
        # Marks of one table are spread over its height, so that those at one place can be told apart.
        spread = counts[table] * 3 % _JITTER_STEPS
        mark = Mark(
            table,
            max(-_EDGE, min(_EDGE, error)),
            part=MISS if row.is_miss else NEAR,
            rank=spread,
            tip=_tip(row),
        )
        marks.setdefault((row.is_fitted, _beyond(error, -_EDGE, _EDGE)), []).append(mark)
    every = [mark for mine in marks.values() for mark in mine]
    most = max(MISS_PERCENT * 1.4, *(abs(mark.value) for mark in every)) * 1.05
    along = alt.X(
        "value:Q",
        title="error (%; of percentages: points)",
        scale=alt.Scale(domain=[-most, most], nice=False),
        axis=alt.Axis(tickCount=7, format="+d"),
    )
    legend = alt.Legend(symbolSize=90)
    verdicts = [verdict for verdict in (NEAR, MISS) if any(mark.part == verdict for mark in every)]
    colours, shapes = {NEAR: COLOURS[0], MISS: COLOURS[1]}, {NEAR: "circle", MISS: "diamond"}
    at = {
        "x": along,
        "y": names_at_left(tables),
        "yOffset": alt.YOffset("rank:Q", scale=alt.Scale(domain=[-1, _JITTER_STEPS])),
        "color": channel_by_name(alt.Color, "part", {verdict: colours[verdict] for verdict in verdicts}, legend),
    }
    shape = channel_by_name(alt.Shape, "part", {verdict: shapes[verdict] for verdict in verdicts}, legend)
    layers = [alt.Chart(data_of([Mark("", 0.0)])).mark_rule(aria=False, opacity=0.6).encode(x=along)]
    for is_fitted, side in product((True, False), (0, *_OUTWARDS)):
        if mine := marks.get((is_fitted, side)):
            drawn = alt.Chart(data_of(mine)).mark_point(filled=not is_fitted, size=60, opacity=0.85)
            looking = alt.ShapeValue(_OUTWARDS[side]) if side else shape
            layers.append(drawn.encode(shape=looking, description="tip:N", **at))
    return layered_bars(layers, "Every printed figure", tables, _ROW_STEP)


def _names(rows: list[PublishedRow]) -> list[str]:
    """What each is called, numbered where several are called the same."""
    titles = [row.title for row in rows]
    return [
        f"{title} ({titles[: index + 1].count(title)})" if titles.count(title) > 1 else title
        for index, title in enumerate(titles)
    ]


def _misses(rows: list[PublishedRow], title: str) -> Chart:
    """Each miss as a pair of marks: printed, and here."""
    names = _names(rows)
    marks = [
        Mark(
            name,
            max(0.0, min(2 * _PRINTED, _share(row) or 0.0)),
            _PRINTED,
            part=_OUTWARDS.get(_share_beyond(row), "diamond"),
            label=f"{_here(row)} / {row.published.text}",
            tip=_tip(row),
        )
        for name, row in zip(names, rows, strict=True)
    ]
    shares = [mark.value for mark in marks]
    low, high = min(0.95 * _PRINTED, *shares), max(1.05 * _PRINTED, *shares)
    scale = alt.Scale(domain=[low - (high - low) * 0.06, high + (high - low) * 0.45], nice=False)
    printed, here = (
        alt.X(
            f"{field}:Q", title="percent of what was printed (here / printed)", scale=scale, axis=alt.Axis(tickCount=6)
        )
        for field in ("x", "value")
    )
    base = alt.Chart(data_of(marks)).encode(y=names_at_left(names))
    shape = alt.Shape("part:N", scale=None, legend=None)
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6, aria=False).encode(x=printed, x2="value:Q"),
        base.mark_point(filled=False, size=60, color=INK, aria=False).encode(x=printed),
        base.mark_point(filled=True, size=80, color=COLOURS[1], opacity=1).encode(
            x=here, shape=shape, description="tip:N"
        ),
        base.mark_text(align="right", baseline="middle", fontSize=12, aria=False).encode(
            x=alt.value("width"), text="label:N"
        ),
    ]
    return layered_bars(layers, title, names, _ROW_STEP)

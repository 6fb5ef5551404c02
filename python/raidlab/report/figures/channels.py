"""What charts of lines have in common: how lines are told apart, and the strokes of their intervals.

Invariants:

- A line has its colour and its shape from its place among all names, not among those that are shown.
- Colour and shape share one legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from raidlab.report.figures.figure import data_of
from raidlab.report.figures.style import colours_of, shapes_of

# Names longer than the first do not stand three in a row below a panel, longer than the second not even two. Text is
# measured in a narrow font: these leave room for a reader's, which may be an eighth wider.
_LONG_NAME, _LONGER_NAME = 14, 26


def told_apart(
    field: str, names: Sequence[str], shown: Sequence[str], legend: Any = alt.Undefined
) -> tuple[alt.Color, alt.Shape]:
    """The colour and the shape of each line.

    Parameters
    ----------
    field : str
        What of the data names the line.
    names : sequence of str
        All names there are.
    shown : sequence of str
        Those of them that the chart shows.
    legend : altair.Legend, optional
        When left out, one with as many columns as the names leave room for.
    """
    legend = alt.Legend(columns=columns_for(shown)) if legend is alt.Undefined else legend
    colours, shapes = colours_of(names), shapes_of(names)
    order = list(shown)

    def scale(of: dict[str, str]) -> alt.Scale:
        return alt.Scale(domain=order, range=[of[name] for name in order])

    named = f"{field}:N"
    return (
        alt.Color(named, title=None, sort=order, scale=scale(colours), legend=legend),
        alt.Shape(named, title=None, sort=order, scale=scale(shapes), legend=legend),
    )


def columns_for(shown: Sequence[str], most: int = 3) -> int:
    """How many names of a legend stand side by side."""
    longest = max(map(len, shown), default=0)
    return 1 if longest > _LONGER_NAME else 2 if longest > _LONG_NAME else most


def strokes(
    rows: Sequence[dict[str, Any]], place: alt.X, y_title: str, colour: alt.Color, scale: Any = alt.Undefined
) -> list[Any]:
    """An upright stroke from ``low`` to ``high`` of each row in which they differ, as a layer; none where none do."""
    spans = [row for row in rows if row["high"] > row["low"]]
    if not spans:
        return []
    rule = alt.Chart(data_of(spans)).mark_rule(strokeWidth=1.2, opacity=0.7, aria=False)
    return [rule.encode(x=place, y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q", color=colour)]

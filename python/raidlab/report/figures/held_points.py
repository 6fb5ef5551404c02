"""What the search found at the response-time target, as points on the target's line in charts over response time.

A line joins the loads that were run, which may be few; where it crosses the target says little of what is held there.

Invariants:

- A held point lies where it was found, on the target; one whose search never met the target has none.
- A line passes through it only where that keeps its order: between a lighter load below the target and a heavier one
  above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.comparison import NEVER_EXCEEDED, bound_of, mean_known, mean_rate
from raidlab.report.figures.figure import data_of
from raidlab.report.figures.style import INK
from raidlab.report.figures.words import number

_CAPTION = "Dashed: the response-time target; diamonds on it: what the search held there."


@dataclass(frozen=True)
class HeldPoint:
    """What an array holds at a target, the mean over repeats.

    Attributes
    ----------
    target_ms : float
    percentile : float
    mb_s : float
        The throughput of the whole array.
    depth : float or None
    """

    target_ms: float
    percentile: float
    mb_s: float
    depth: float | None

    def row(self, name: str, value: float, unit: str) -> dict[str, Any]:
        """What the data of every chart hold of it: the load, and in words what was found."""
        depth = "" if self.depth is None else f", with {number(self.depth)} outstanding"
        where = f"held at a p{self.percentile:g} of {number(self.target_ms)} ms{depth}"
        return {"level": self.depth, "tip": f"{name}, {where}: {number(value)} {unit}"}


def with_target(caption: str, analysis: Analysis) -> str:
    """A caption, and what dashed lines and diamonds are where the run has them."""
    return caption if analysis.run.holds.is_empty() else f"{caption} {_CAPTION}"


def held_point(analysis: Analysis, target: str, array: str, workload: str) -> HeldPoint | None:
    """What an array holds; None where it was not searched, or the target was missed or never reached."""
    rows = [row for row in analysis.run.hold_rows(target, workload) if row["array"] == array]
    rate = mean_rate(rows)
    if rate is None or bound_of(rows) == NEVER_EXCEEDED:
        return None
    return HeldPoint(
        target_ms=rows[0]["target_ns"] / 1e6,
        percentile=rows[0]["percentile"],
        mb_s=rate / 1e6,
        depth=mean_known(row["depth"] for row in rows),
    )


def woven(
    rows: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], line: str, along: str
) -> list[dict[str, Any]]:
    """The points through which lines pass: those of the loads, and the held ones that lie between two in order.

    Parameters
    ----------
    rows, found : sequence of dict
        The data of the loads and of the held points, with ``level``.
    line, along : str
        What of the data names the line, and what is along the axis.
    """

    def fits(one: dict[str, Any]) -> bool:
        mine = sorted((row for row in rows if row[line] == one[line]), key=lambda row: row["level"])
        return one["level"] is not None and any(
            before["level"] < one["level"] < after["level"] and before[along] <= one[along] <= after[along]
            for before, after in pairwise(mine)
        )

    return [*rows, *(one for one in found if fits(one))]


def layers_of(
    rows: Sequence[dict[str, Any]],
    held: Sequence[dict[str, Any]],
    fields: tuple[str, str],
    places: tuple[alt.X, alt.Y],
    told: tuple[alt.Color, alt.Shape],
    target_ms: float | None,
    *,
    size: int,
    below: Sequence[Any] = (),
) -> list[Any]:
    """The layers of a chart over response time: the target's line, what lies below the lines, lines, points, diamonds.

    Parameters
    ----------
    rows, held : sequence of dict
        The data of the loads and of the held points, with ``level`` and ``tip``.
    fields : tuple of str
        What of the data names the line, and what is along the axis.
    places : tuple
        Where a point stands, along and upwards.
    told : tuple
        The colour and the shape of each line.
    target_ms : float or None
        The response-time target, where there is one.
    size : int
        Of the points.
    below : sequence, optional
        Layers between the target's line and the lines.
    """
    (line, along), (place, height), (colour, shape) = fields, places, told
    layers: list[Any] = []
    if target_ms is not None:
        mark = alt.Chart(data_of([{along: target_ms}]))
        layers.append(mark.mark_rule(strokeDash=[5, 4], opacity=0.6, aria=False).encode(x=f"{along}:Q"))
    lines = alt.Chart(data_of(woven(rows, held, line, along))).mark_line(strokeWidth=2, aria=False)
    points = alt.Chart(data_of(list(rows))).mark_point(filled=True, size=size, opacity=1)
    return [
        *layers,
        *below,
        lines.encode(x=place, y=height, color=colour, order=alt.Order("level:Q")),
        points.encode(x=place, y=height, color=colour, shape=shape, description="tip:N"),
        *_diamonds(held, place, height, colour),
    ]


def _diamonds(found: Sequence[dict[str, Any]], place: alt.X, height: alt.Y, colour: alt.Color) -> list[Any]:
    """The held points as a layer, rimmed so that none is taken for a load's; none where nothing is held."""
    if not found:
        return []
    mark = alt.Chart(data_of(list(found))).mark_point(
        filled=True, shape="diamond", size=120, opacity=1, stroke=INK, strokeWidth=1
    )
    return [mark.encode(x=place, y=height, color=colour, description="tip:N")]


def in_words(found: Sequence[dict[str, Any]], line: str, value: str) -> str:
    """What is held, for whoever does not see it; empty where nothing is."""
    said = ", ".join(f"{one[line]} {number(one[value])}" for one in found)
    return f" Held at the target: {said}." if said else ""

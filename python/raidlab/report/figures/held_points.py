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
from raidlab.report.figures.chart import DASHED, Axes, Mark, data_of, line_layer, point_layer
from raidlab.report.figures.style import INK
from raidlab.report.figures.words import number

_CAPTION = "Dashed: the response-time target; diamonds on it: what the search held there."


@dataclass(frozen=True)
class HoldPoint:
    """What an array holds at a target, the mean over repeats."""

    target_ms: float
    percentile: float
    mb_s: float
    """The throughput of the whole array."""
    depth: float | None

    def mark(self, line: str, value: float, unit: str) -> Mark:
        """It in a chart over response time, with what was found in words."""
        depth = "" if self.depth is None else f", with {number(self.depth)} outstanding"
        where = f"held at a p{self.percentile:g} of {number(self.target_ms)} ms{depth}"
        return Mark(line, value, self.target_ms, level=self.depth, tip=f"{line}, {where}: {number(value)} {unit}")


def with_target(caption: str, analysis: Analysis) -> str:
    """A caption, and what dashed lines and diamonds are where the run has them."""
    return caption if analysis.run.holds.is_empty() else f"{caption} {_CAPTION}"


def held_point(analysis: Analysis, target: str, array: str, workload: str) -> HoldPoint | None:
    """What an array holds; None where it was not searched, or the target was missed or never reached."""
    rows = [row for row in analysis.run.hold_rows(target, workload) if row["array"] == array]
    rate = mean_rate(rows)
    if rate is None or bound_of(rows) == NEVER_EXCEEDED:
        return None
    return HoldPoint(
        target_ms=rows[0]["target_ns"] / 1e6,
        percentile=rows[0]["percentile"],
        mb_s=rate / 1e6,
        depth=mean_known(row["depth"] for row in rows),
    )


def line_points(marks: Sequence[Mark], held: Sequence[Mark]) -> list[Mark]:
    """The points through which lines pass: those of the loads, and the held ones that lie between two in order."""

    def fits(one: Mark) -> bool:
        mine = sorted((mark for mark in marks if mark.line == one.line), key=by_level)
        return one.level is not None and any(
            by_level(before) < one.level < by_level(after) and before.x <= one.x <= after.x
            for before, after in pairwise(mine)
        )

    return [*marks, *(one for one in held if fits(one))]


def by_level(mark: Mark) -> float:
    """The load behind a mark, by which lines over response time are ordered."""
    return mark.level or 0.0


def layers_of(
    marks: Sequence[Mark],
    held: Sequence[Mark],
    axes: Axes,
    shape: alt.Shape,
    target_ms: float | None,
    *,
    size: int,
    below: Sequence[Any] = (),
) -> list[Any]:
    """The layers of a chart over response time: the target's line, what is ``below``, lines, points, diamonds.

    ``marks`` are those of the loads and ``size`` is theirs, ``held`` are the held points.
    """
    layers: list[Any] = []
    if target_ms is not None:
        rule = alt.Chart(data_of([Mark("", 0.0, target_ms)])).mark_rule(strokeDash=DASHED, opacity=0.6, aria=False)
        layers.append(rule.encode(x="x:Q"))
    layers += [
        *below,
        line_layer(line_points(marks, held), axes, order="level"),
        point_layer(marks, axes, shape, size=size),
    ]
    if held:
        # Rimmed, so that none is taken for a load's.
        rimmed = alt.Chart(data_of(held)).mark_point(
            filled=True, shape="diamond", size=120, opacity=1, stroke=INK, strokeWidth=1
        )
        layers.append(rimmed.encode(x=axes.x, y=axes.y, color=axes.color, description="tip:N"))
    return layers


def held_in_words(held: Sequence[Mark]) -> str:
    """What is held, for whoever does not see it; empty where nothing is."""
    said = ", ".join(f"{mark.line} {number(mark.value)}" for mark in held)
    return f" Held at the target: {said}." if said else ""

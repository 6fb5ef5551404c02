"""What arrays cost, or how many disks they take, against what they give: one mark an array that was simulated.

Filled marks meet the need, hollow ones do not; a line joins those that no other beats in every respect. Up and to the
left is better. It is drawn of a recommendation, not of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.report.figures.chart import (
    Axes,
    Mark,
    colour_and_shape,
    data_of,
    layered,
    point_layer,
    upright_strokes,
    upward,
)
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH
from raidlab.report.figures.throughput_against_p90 import ticks_between
from raidlab.report.figures.words import number
from raidlab.results.recommendation import LEVEL_TITLES, Recommendation, RecommendedArray, money_words

KIND = "cost_against_throughput"

# Disks beside flash: on an axis from 0 the slower all lie on it.
_WIDE = 30.0


def figure_of(answer: Recommendation) -> Figure | None:
    """The figure of a recommendation; None where nothing was simulated."""
    simulated = [one for one in answer["arrays"] if one["figures"] is not None]
    if not simulated:
        return None
    what = "cost" if answer["has_prices"] else "disks"
    takes = "costs" if answer["has_prices"] else "takes in disks"
    caption = f"Each mark is an array: what it {takes}, and the {answer['figure']}. Filled: it meets the need."
    if len(_front_of(simulated, answer)) > 1:
        caption += f" The line joins those that none is shown to beat in {what} and throughput."
    if answer["answer"] is not None:
        caption += " The ring is the answer."
    if any(miss["need"] == "at_most" for one in simulated for miss in one["missed"]):
        caption += " Some hollow marks take a disk more than there are at hand: what one more would give."
    panel = _panel(answer, simulated, what)
    return Figure(KIND, "cost-against-throughput", f"{what.capitalize()} against throughput", caption, (panel,))


def _panel(answer: Recommendation, simulated: list[RecommendedArray], what: str) -> Panel:
    names = [title for level, title in LEVEL_TITLES.items() if any(one["level"] == level for one in simulated)]
    met = [one for one in simulated if one["verdict"] == "meets"]
    filled, hollow = list(_marks(met, answer)), list(_marks([one for one in simulated if one not in met], answer))
    front = _front_of(simulated, answer)
    along = alt.X(
        "x:Q", title=what, scale=alt.Scale(zero=False, nice=True, padding=12), axis=alt.Axis(tickCount=5, tickMinStep=1)
    )
    colour, shape = colour_and_shape(names, names)
    values = [mark.value for mark in (*filled, *hollow)]
    is_wide = max(values) > _WIDE * min(values) > 0
    upright = "requests/s (log scale)" if is_wide else "requests/s"
    axes = Axes(along, _log_upward(upright, values) if is_wide else upward(upright), colour)
    layers: list[Any] = [_front(front, axes)] if len(front) > 1 else []
    layers += upright_strokes(filled, axes, upright)
    layers += [point_layer(hollow, axes, shape, size=60, filled=False)] if hollow else []
    layers += [point_layer(filled, axes, shape, size=70)] if filled else []
    first = [_mark(one, answer) for one in met if one["rank"] == 1]
    if first:
        ring = alt.Chart(data_of(first)).mark_point(size=320, filled=False, strokeWidth=2, color="ink", aria=False)
        layers.append(ring.encode(x=along, y=axes.y))
    # A colour scale of the lines' names is shared by all layers.
    return Panel("", layered(layers, "", PANEL_WIDTH, PANEL_HEIGHT + 40), _alt(answer, met, what))


def _front_of(simulated: list[RecommendedArray], answer: Recommendation) -> list[Mark]:
    return _rising([_mark(one, answer) for one in simulated if one["verdict"] == "meets" and one["on_front"]])


def _rising(marks: list[Mark]) -> list[Mark]:
    """Of those that none beats, the ones that give more than all that are cheaper."""
    found: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.x, -mark.value)):
        if not found or mark.value > found[-1].value:
            found.append(mark)
    return found


def _log_upward(title: str, values: list[float]) -> alt.Y:
    scale = alt.Scale(type="log", nice=False, padding=10)
    axis = alt.Axis(values=ticks_between(values), format="~s", labelOverlap="greedy")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _front(front: list[Mark], axes: Axes) -> Any:
    drawn = alt.Chart(data_of(front)).mark_line(
        strokeWidth=1.5, strokeDash=[5, 4], interpolate="step-after", color="ink", opacity=0.6, aria=False
    )
    return drawn.encode(x=axes.x, y=axes.y, order=alt.Order("x:Q"))


def _marks(arrays: list[RecommendedArray], answer: Recommendation) -> Iterator[Mark]:
    for one in arrays:
        yield _mark(one, answer)


def _mark(one: RecommendedArray, answer: Recommendation) -> Mark:
    figures = one["figures"]
    assert figures is not None, "only what was simulated is drawn"
    interval = figures["requests_per_s_interval"]
    cost = one["cost"]
    said = [f"{number(figures['requests_per_s'])} requests/s"]
    said += [f"{key} {number(value)} ms" for key, value in figures["within_ms"].items()]
    said += [f"{one['disks']} disks", *([] if cost is None else [f"cost {money_words(cost)}"])]
    said += [missed["words"] for missed in one["missed"]] and [
        "misses: " + "; ".join(m["words"] for m in one["missed"])
    ]
    x = cost if answer["has_prices"] and cost is not None else float(one["disks"])
    return Mark(
        LEVEL_TITLES.get(one["level"], one["level"]),
        figures["requests_per_s"],
        x,
        None if interval is None else (interval[0], interval[1]),
        tip=f"{one['name']}: {', '.join(said)}",
    )


def _alt(answer: Recommendation, met: list[RecommendedArray], what: str) -> str:
    told = [
        f"{one['name']} {number(figures['requests_per_s'])} requests/s for "
        f"{number(one['cost'] if answer['has_prices'] else one['disks'])}"
        for one in met
        if one["on_front"] and (figures := one["figures"]) is not None
    ]
    return f"requests/s over {what}, of those that none beats: {'; '.join(told)}." if told else "None meets the need."

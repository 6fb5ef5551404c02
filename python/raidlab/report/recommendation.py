"""The page of a recommendation: the answer, the picture, what would change it, how to build it.

Invariant: it reads a document, and works nothing out but wording.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raidlab.directory import Directory
from raidlab.errors import OutputError
from raidlab.report.figures.cost_against_throughput import figure_of
from raidlab.report.figures.words import number
from raidlab.report.page import PAGE, fill
from raidlab.report.sections import shown
from raidlab.results.recommendation import (
    SIMULATED_TOOL,
    TOO_SLOW,
    Recommendation,
    RecommendedArray,
    chance_words,
    front_title,
    front_words,
    hours_words,
    money_words,
    relaxations_title,
    size_words,
    too_slow_words,
)

_MOST_ROWS = 40


def write_recommendation_page(answer: Recommendation, folder: Path) -> Path:
    """Write the page into a folder that is there; returns its path."""
    try:
        with Directory.open(folder) as place:
            return place.replace(PAGE, render_recommendation(answer).encode())
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def render_recommendation(answer: Recommendation) -> str:
    """The page's text."""
    ranked = [one for one in answer["arrays"] if one["verdict"] == "meets"]
    near = [one for one in answer["arrays"] if one["verdict"] == "not decided"]
    figure = figure_of(answer)
    return fill(
        "recommendation.html.j2",
        answer=answer,
        simulated_tool=SIMULATED_TOOL,
        relaxations_title=relaxations_title(answer),
        front_title=front_title(answer),
        front=front_words(answer),
        figure=None if figure is None else shown(figure),
        keys=answer["percentiles"],
        has_rebuild=any(one["figures"] is not None and one["figures"]["rebuild_hours"] is not None for one in ranked),
        has_loss=any(one["loss_per_year"] is not None for one in answer["arrays"]),
        too_slow_title=TOO_SLOW,
        too_slow=too_slow_words(answer),
        has_against=any(one["against_first"] for one in ranked),
        has_open=bool(near),
        rows=[_row(one, answer) for one in [*ranked[:_MOST_ROWS], *near]],
        more=max(0, len(ranked) - _MOST_ROWS),
    )


def _row(one: RecommendedArray, answer: Recommendation) -> dict[str, Any]:
    figures, loss, cost = one["figures"], one["loss_per_year"], one["cost"]
    interval = None if figures is None else figures["requests_per_s_interval"]
    hours = None if figures is None else figures["rebuild_hours"]
    place = "not decided" if one["verdict"] == "not decided" else "not told apart" if one["is_tied"] else one["rank"]
    place = "not ordered" if place is None else place
    return {
        "place": place,
        "is_first": one["rank"] == 1,
        "name": one["name"],
        "disks": one["disks"],
        "cost": "" if cost is None else money_words(cost),
        "space": size_words(one["user_bytes"]),
        "rate": "-" if figures is None else number(figures["requests_per_s"]),
        "interval": "" if interval is None else f"{number(interval[0])} to {number(interval[1])}",
        "within": ["-" if figures is None else number(figures["within_ms"][key]) for key in answer["percentiles"]],
        "rebuild": "-" if hours is None else hours_words(hours),
        "loss": "" if loss is None else chance_words(loss),
        "against": one["against_first"] or "",
        "on_front": one["on_front"],
    }

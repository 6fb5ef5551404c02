"""The Choice section as the page has it.

Invariant: nothing is worked out here but wording.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.published.rules import Choice, RuleAnswer
from raidlab.published.rules.text import mark, prices_line, turn_lines
from raidlab.report.figures.total_time import total_time_figure
from raidlab.report.sections import Shown, shown

# How a verdict is coloured: as those of claims.
_CLASSES = {"borne out": "holds", "not borne out": "fails"}


@dataclass(frozen=True)
class ShownChoice:
    """The section's parts."""

    title: str
    note: str
    heads: list[tuple[str, str]]
    rows: list[tuple[str, list[tuple[str, bool]]]]
    prices: str
    turns: list[str]
    rules: list[tuple[RuleAnswer, str]]
    missing: str
    totals: Shown | None


def shown_choice(choice: Choice) -> ShownChoice:
    """A Choice section, ready to be shown."""
    columns = [(name, figure) for name, figure in choice.plan.figure.items() if figure.shown]
    return ShownChoice(
        title=choice.plan.title,
        note=choice.plan.note,
        heads=[(figure.title.partition(",")[0], figure.unit) for _, figure in columns],
        rows=[
            (row.array, [(mark(choice, row, name), choice.best(name) == row.name) for name, _ in columns])
            for row in choice.rows
        ],
        prices=prices_line(choice),
        turns=turn_lines(choice),
        rules=[(one, _CLASSES.get(one.verdict, "")) for one in choice.answers],
        missing=", ".join(choice.missing),
        totals=_totals(choice),
    )


def _totals(choice: Choice) -> Shown | None:
    asked = choice.plan.total_time
    if asked is None or not choice.totals:
        return None
    arrays = {row.name: row.array for row in choice.rows}
    times = {arrays[name]: found for name, found in choice.totals.items()}
    return shown(total_time_figure(times, choice.plan.figure[asked.alone].unit))

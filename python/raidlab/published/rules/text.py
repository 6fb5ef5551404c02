"""A Choice section as text to read, and as JSON for programs.

Invariant: a figure that is not there is shown as not there, never as a zero.
"""

from __future__ import annotations

import json
from typing import Any

from raidlab.published.rules.make import UNPRICED, CandidateFigures, Choice
from raidlab.wrapping import WIDTH, wrapped

NOTHING = "-"
_WIDTH = 9


def choice_text(choice: Choice) -> str:
    """The table of candidates, what prices it rests on, and every rule with its answer."""
    lines = [choice.plan.title, ""]
    if choice.plan.note:
        lines += [*wrapped(choice.plan.note.strip()), ""]
    lines += _table(choice)
    for text in ("", prices_line(choice), *turn_lines(choice)):
        lines += wrapped(text, hanging=2) or [""]
    lines += _totals(choice)
    for answer in choice.answers:
        rule = answer.rule
        lines += ["", *wrapped(f"{rule.when}: {rule.says}.")]
        for text in (f"{answer.verdict.upper()}. {answer.sentence}", rule.note.strip()):
            lines += wrapped(text, indent=2)
    if choice.missing:
        lines += ["", *wrapped(f"Not run, and so not judged: {', '.join(choice.missing)}.")]
    return "\n".join(lines) + "\n"


def _table(choice: Choice) -> list[str]:
    """The candidates' figures, in tables of as many columns as a terminal is wide."""
    if not choice.rows:
        return ["No candidate was run."]
    shown = [
        (name, figure.title.partition(",")[0], figure) for name, figure in choice.plan.figure.items() if figure.shown
    ]
    widths = [max(_WIDTH, len(head), len(figure.unit)) for _, head, figure in shown]
    first = max(len(row.array) for row in choice.rows) + 2
    lines: list[str] = []
    while widths:
        fit = 1
        while fit < len(widths) and first + sum(widths[: fit + 1]) + fit + 1 < WIDTH:
            fit += 1
        columns, mine = shown[:fit], widths[:fit]
        texts = [("", [head for _, head, _ in columns]), ("", [figure.unit for _, _, figure in columns])]
        texts += [(row.array, [mark(choice, row, name) for name, _, _ in columns]) for row in choice.rows]
        for name, cells in texts:
            lines.append(
                f"{name:<{first}}" + "".join(f" {cell:>{width}}" for cell, width in zip(cells, mine, strict=True))
            )
        lines.append("")
        shown, widths = shown[fit:], widths[fit:]
    return [*lines[:-1], "'*' is the best figure of a column, told apart by repeats or not."]


def mark(choice: Choice, row: CandidateFigures, figure: str) -> str:
    """A figure with a star where it is the best of its column."""
    value = row.value(figure)
    if value is None:
        return NOTHING
    return f"{'*' if choice.best(figure) == row.name else ''}{value:.4g}"


def prices_line(choice: Choice) -> str:
    """Which prices hold, whose they are, and of when."""
    if not choice.prices:
        return UNPRICED if choice.plan.price else "No prices go into this."
    told = ", ".join(f"{name} {value:g}" for name, value in choice.prices.items())
    theirs = [name for name in choice.prices if name not in choice.own_prices]
    whose = "the study's own" if not choice.own_prices else "yours"
    if choice.own_prices and theirs:
        whose += f", but {', '.join(theirs)} of the study"
    return f"Prices ({whose}; {choice.currency}, {choice.dated}): {told}."


def turn_lines(choice: Choice) -> list[str]:
    """What another price would change."""
    arrays = {row.name: row.array for row in choice.rows}
    lines = []
    for turn in choice.turns:
        title, now = choice.plan.figure[turn.figure].in_a_sentence, choice.prices[turn.price]
        costs, *ends = (_price(now * factor) for factor in (turn.factor, turn.low, turn.high) if factor is not None)
        called = choice.plan.called.get(turn.price)
        paid = f"{turn.price} is" if called is None else f"{called} costs {choice.currency}".rstrip()
        between = f", {' to '.join(ends)}" if len(set(ends)) > 1 else ""
        lines.append(
            f"By {title}: {arrays[turn.instead]} comes before {arrays[turn.first]} once {paid} {costs} "
            f"({100 * (turn.factor - 1):+.0f} %{between})."
        )
    return lines


def _price(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _totals(choice: Choice) -> list[str]:
    asked = choice.plan.total_time
    if asked is None or not choice.totals:
        return []
    unit = choice.plan.figure[asked.alone].unit
    arrays = {row.name: row.array for row in choice.rows}
    lines = ["", f"{asked.up_to} together ({unit}), one after another and all at once:"]
    for name, times in choice.totals.items():
        lines.append(f"  {arrays[name]}: {times[-1][0]:.4g} and {times[-1][1]:.4g}")
    slowest = max(times[-1][1] for times in choice.totals.values())
    quickest = min(times[-1][0] for times in choice.totals.values())
    verdict = "less" if slowest < quickest else "no less"
    lines.append(
        f"  Of these {len(choice.totals)} the slowest at once takes {verdict} than the fastest one after another."
    )
    return lines


def choice_json(choice: Choice) -> str:
    """The same for programs."""

    def row(one: CandidateFigures) -> dict[str, Any]:
        intervals = {name: one.interval(name) for name in one.values}
        return {
            "candidate": one.name,
            "array": one.array,
            "figures": {name: reading.value for name, reading in one.values.items()},
            "intervals_95": {name: interval for name, interval in intervals.items() if interval is not None},
        }

    document = {
        "title": choice.plan.title,
        "target": choice.target,
        "currency": choice.currency,
        "dated": choice.dated,
        "prices": choice.prices,
        "own_prices": list(choice.own_prices),
        "candidates": [row(one) for one in choice.rows],
        "not_run": choice.missing,
        "turns": [vars(turn) for turn in choice.turns],
        "total_time": choice.totals,
        "rules": [
            {"when": one.rule.when, "says": one.rule.says, "verdict": one.verdict, "sentence": one.sentence}
            for one in choice.answers
        ],
    }
    return json.dumps(document, indent=2)

"""Work out the figures of every candidate, and answer every rule with them.

Invariants:

- A rule that names its choice is borne out where that choice is the best, and nothing else is level with it. Level with
  the best is what lies within the rule's margin, or what repeats, paired one by one, do not show to be behind; of
  single runs, what lies within `NOTHING_SHOWN_PERCENT`.
- A candidate that was not run has no figures; a rule of whose choice nothing was run is not answered.
- The sensitivity to a price is found by working everything out again with another price, not by a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from raidlab.analysis.margins.crossing import place_of
from raidlab.analysis.margins.prices import FARTHEST, turn_of
from raidlab.analysis.metrics import Analysis
from raidlab.published.compare.clause import NOISE, Judged, Words, figure_of, judged, sentence_of
from raidlab.published.quantities import Reading, Source, read_planned
from raidlab.published.quantities.kind import each_of, repeats_of
from raidlab.published.rules.plan import CHOICE, ChoiceFigure, ChoicePlan, Rule
from raidlab.published.rules.prices import Prices
from raidlab.stats import NOTHING_SHOWN_PERCENT, differs, mean_interval, ratio_interval
from raidlab.study.expression import read

Verdict = Literal["borne out", "not told apart", "not borne out", "not answered"]


@dataclass(frozen=True)
class CandidateFigures:
    """A candidate with its figures; those that are not there are left out."""

    name: str
    array: str
    values: dict[str, Reading]

    def value(self, figure: str) -> float | None:
        """A figure."""
        reading = self.values.get(figure)
        return None if reading is None else reading.value

    def interval(self, figure: str) -> tuple[float, float] | None:
        """Its 95 % interval over repeats."""
        reading = self.values.get(figure)
        return mean_interval(reading.each) if reading is not None and len(reading.each) > 1 else None


@dataclass(frozen=True)
class RuleAnswer:
    """A rule and its answer."""

    rule: Rule
    verdict: Verdict
    sentence: str


UNPRICED = "Prices of disks of your own are not known; --prices FILE has them."


@dataclass(frozen=True)
class Turn:
    """What another price would change: from a factor on another candidate is first by a figure."""

    figure: str
    price: str
    factor: float
    first: str
    instead: str
    low: float | None = None
    high: float | None = None
    """The 95 % interval of the factor; None where repeats do not all turn there, or there are none."""


@dataclass(frozen=True)
class Choice:
    """The Choice section of a run."""

    plan: ChoicePlan
    target: str
    rows: list[CandidateFigures]
    """Those that were run."""
    missing: list[str]
    """The arrays that were not."""
    answers: list[RuleAnswer]
    prices: dict[str, float]
    """Those that hold; none of disks of the user's whose prices are not known."""
    currency: str
    dated: str
    own_prices: tuple[str, ...]
    """Names of the prices that are the user's."""
    turns: list[Turn] = field(default_factory=list)
    totals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By candidate, the times of 1, 2, ... tasks one after another and at once."""

    def best(self, figure: str) -> str | None:
        """The candidate that is first by a figure."""
        return _first(self.rows, figure, self.plan.figure[figure].want)


# What a candidate's measures are read from: a run, a target, and the array that stands for it there.
Stand = tuple[Source, str]


def make_choice(
    plan: ChoicePlan,
    analysis: Analysis,
    prices: Prices | None = None,
    others: Mapping[str, tuple[Analysis, str]] | None = None,
    *,
    target: str | None = None,
) -> Choice:
    """The Choice section of a run, on its first target with a candidate by default.

    The study's own prices hold where the user's say nothing; of the user's own disks they hold only beside some of the
    user's. ``others`` are candidates whose figures come from other
    runs: by their short names, the run and the array there.
    """
    arrays = {candidate.array for candidate in plan.candidate.values()}
    having = [point.target for point in analysis.points if point.array in arrays]
    chosen = target or next(iter(having or analysis.targets), "")
    own = Source(analysis, chosen, analysis.run.folder)
    stands: dict[str, Stand] = {name: (own, candidate.array) for name, candidate in plan.candidate.items()}
    for name, (other, array) in (others or {}).items():
        of_other = next((point.target for point in other.points if point.array == array), "")
        stands[name] = (Source(other, of_other, other.run.folder), array)
    measured = {name: _measured(plan, stands[name]) for name in plan.candidate}
    is_priced = prices is not None or chosen != "live"
    cost = {**plan.price, **(prices.price if prices is not None else {})} if is_priced else {}
    rows = _rows(plan, measured, cost)
    there = [row for row in rows if row.values]
    return Choice(
        plan=plan,
        target=chosen,
        rows=there,
        missing=[row.array for row in rows if not row.values],
        answers=[_answer(rule, plan, there, cost) for rule in plan.rule],
        prices=cost,
        currency=(prices.currency if prices is not None else "") or plan.currency,
        dated=prices.dated if prices is not None else plan.dated,
        own_prices=tuple(prices.price) if prices is not None else (),
        turns=_turns(plan, measured, cost),
        totals=_totals(plan, there),
    )


def _measured(plan: ChoicePlan, stand: Stand) -> dict[str, Reading]:
    source, array = stand
    found = {}
    for name, figure in plan.figure.items():
        if figure.measure is not None:
            place = f"{CHOICE}: figure.{name}.measure"
            reading = read_planned(place, {**figure.measure, "array": array}, source)
            if reading is not None:
                found[name] = reading
    return found


def _rows(
    plan: ChoicePlan, measured: Mapping[str, Mapping[str, Reading]], prices: Mapping[str, float]
) -> list[CandidateFigures]:
    """Every candidate with all figures that follow from what was measured of it."""
    rows = []
    for name, candidate in plan.candidate.items():
        values = dict(measured[name])
        for key, figure in plan.figure.items() if values else ():
            if figure.value is not None and (reading := _worked_out(figure, values, prices, candidate.numbers)):
                values[key] = reading
        rows.append(CandidateFigures(name, candidate.array, values))
    return rows


def _worked_out(
    figure: ChoiceFigure, values: Mapping[str, Reading], prices: Mapping[str, float], numbers: Mapping[str, float]
) -> Reading | None:
    others, text = {**prices, **numbers}, figure.value or ""
    value = _value(text, {**others, **{name: reading.value for name, reading in values.items()}})
    if value is None:
        return None
    expression = read(text)
    readings = {name: reading for name, reading in values.items() if name in expression.names}
    try:
        return Reading(value, tuple(each_of(repeats_of(readings), lambda each: expression.value({**others, **each}))))
    except ValueError:
        return None


def _first(rows: list[CandidateFigures], figure: str, want: str) -> str | None:
    return _foremost([(value, row.name) for row in rows if (value := row.value(figure)) is not None], want)


def _foremost(known: Sequence[tuple[float, str]], want: str) -> str | None:
    """Of values with their names, the name of the best; None where there is none, or neither end is better."""
    if want == "neither" or not known:
        return None
    return (min if want == "least" else max)(known, key=lambda pair: pair[0])[1]


def _answer(rule: Rule, plan: ChoicePlan, rows: list[CandidateFigures], prices: Mapping[str, float]) -> RuleAnswer:
    if rule.holds is not None:
        return _by_expression(rule, plan, rows, prices)
    assert rule.by is not None, "checked when the plan was loaded"
    by, figure = rule.by, plan.figure[rule.by]
    among = [row for row in rows if rule.among is None or row.name in rule.among or row.name in rule.choose]
    known = [row for row in among if row.value(by) is not None]
    mine = [row for row in known if row.name in rule.choose]
    if not prices and plan.prices_into(by):
        return RuleAnswer(rule, "not answered", f"It is by {figure.in_a_sentence}. {UNPRICED}")
    if not mine or len(known) < 2:
        arrays = ", ".join(plan.candidate[name].array for name in rule.choose)
        return RuleAnswer(rule, "not answered", f"Nothing to set {arrays} against was run, or it was not run itself.")
    ranked = sorted(known, key=lambda row: row.values[by].value, reverse=figure.want == "most")
    best = ranked[0]
    tied = [row for row in ranked if row is best or _is_level(row, best, rule, plan)]
    title, told, level = figure.in_a_sentence, [_told(row, by, figure) for row in tied], _level_words(tied, rule)
    if all(row.name in rule.choose for row in tied):
        rest = [row for row in ranked if row.name not in rule.choose]
        against = f"; next is {_told(rest[0], by, figure)}" if rest else ""
        from_them = f"{level} {'with' if level.endswith('%') else 'from'}"
        among_them = f", {from_them} {', '.join(told[1:])}" if told[1:] else ""
        return RuleAnswer(rule, "borne out", f"{told[0]} is first by {title}{among_them}{against}.")
    if any(row.name in rule.choose for row in tied):
        return RuleAnswer(rule, "not told apart", f"{level[:1].upper()}{level[1:]} by {title}: {', '.join(told)}.")
    own = next(row for row in ranked if row.name in rule.choose)
    first = f"First by {title}, and {level}: {', '.join(told)}" if told[1:] else f"{told[0]} is first by {title}"
    said = f"{first}; {_told(own, by, figure)} is {_behind(own, best, by)} behind"
    return RuleAnswer(rule, "not borne out", f"{said}.")


def _level_words(tied: Sequence[CandidateFigures], rule: Rule) -> str:
    """How the best and others are level: what repeats tell apart is so by the rule's margin alone."""
    by, best = rule.by or "", tied[0]
    if not any(differs(row.values[by].each, best.values[by].each) for row in tied):
        return "not told apart"
    within = f"level within {rule.margin_percent:g} %"
    is_all = all(_behind_percent(row, best, by) <= rule.margin_percent for row in tied)
    return within if is_all else f"{within} or not told apart"


def _behind_percent(row: CandidateFigures, best: CandidateFigures, by: str) -> float:
    return 100 * abs((row.value(by) or 0.0) / (best.value(by) or 1.0) - 1)


def _is_level(row: CandidateFigures, best: CandidateFigures, rule: Rule, plan: ChoicePlan) -> bool:
    """Whether a candidate is not shown to be behind the best: by a margin and, with repeats, beyond their noise."""
    by = rule.by or ""
    percent = _behind_percent(row, best, by)
    if percent <= rule.margin_percent:
        return True
    is_shown = differs(row.values[by].each, best.values[by].each)
    if is_shown is None:
        return _is_measured(plan, by) and percent < NOTHING_SHOWN_PERCENT
    return not is_shown


def _behind(own: CandidateFigures, best: CandidateFigures, by: str) -> str:
    """By how many percent one is behind the other, with the interval over repeats."""
    interval = ratio_interval(own.values[by].each, best.values[by].each)
    ends = sorted(100 * abs(end - 1) for end in interval or ())
    told = f" [{ends[0]:.1f}, {ends[1]:.1f}]" if ends else ""
    return f"{_behind_percent(own, best, by):.1f} %{told}"


def _by_expression(
    rule: Rule, plan: ChoicePlan, rows: list[CandidateFigures], prices: Mapping[str, float]
) -> RuleAnswer:
    expression = read(rule.holds or "")
    readings = {
        f"{figure}_{row.name}": reading
        for row in rows
        for figure, reading in row.values.items()
        if f"{figure}_{row.name}" in expression.names
    }
    known = {**prices, **{name: reading.value for name, reading in readings.items()}}
    missing = sorted(expression.names - set(known))
    if not prices and any(_is_of_prices(plan, name) for name in missing):
        return RuleAnswer(rule, "not answered", UNPRICED)
    if missing:
        arrays = [one.array for name, one in plan.candidate.items() if any(of.endswith(f"_{name}") for of in missing)]
        return RuleAnswer(rule, "not answered", f"The run has no {', '.join(arrays or missing)}.")
    exact = {f"{figure}_{row.name}" for row in rows for figure in row.values if not _is_measured(plan, figure)}
    titles = {name: {"as": name} for name in expression.names}
    titles |= {
        f"{key}_{row.name}": {"array": row.array, "as": figure.title.partition(",")[0], "unit": figure.unit}
        for row in rows
        for key, figure in plan.figure.items()
    }
    try:
        repeats = [{**prices, **each} for each in repeats_of(readings)]
        verdict, clauses = judged(expression, known, repeats, Words(titles), exact | set(prices))
        said = _sides(rule, known, repeats) or sentence_of(clauses)
    except ValueError as error:
        return RuleAnswer(rule, "not answered", f"It cannot be worked out: {error}.")
    return RuleAnswer(rule, _VERDICTS[verdict], f"{said[:1].upper()}{said[1:]}.")


_VERDICTS: dict[Judged, Verdict] = {"holds": "borne out", "fails": "not borne out", NOISE: "not told apart"}


def _sides(rule: Rule, known: Mapping[str, float], repeats: Sequence[Mapping[str, float]]) -> str:
    """What both sides of a rule's comparison come to, in its own words; nothing where it has none."""
    sides = read(rule.holds or "").sides
    if sides is None or rule.sides is None:
        return ""
    return "; ".join(f"{word}: {figure_of(side, known, repeats)}" for word, side in zip(rule.sides, sides, strict=True))


def _told(row: CandidateFigures, by: str, figure: ChoiceFigure) -> str:
    interval = row.interval(by)
    ends = f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval is not None else ""
    return f"{row.array} ({row.value(by):.4g}{ends} {figure.unit})".replace(" )", ")")


def _turns(plan: ChoicePlan, measured: Mapping[str, Mapping[str, Reading]], prices: Mapping[str, float]) -> list[Turn]:
    """For every figure that prices go into: how far each price may move before another candidate is first."""
    repeats = _repeats(measured)
    found = []
    for figure in plan.figure:
        into = plan.prices_into(figure)
        first = _leader(plan, measured, prices, figure, into[0])(1.0) if into and prices else None
        if first is None:
            continue
        for price in into:
            for direction in (FARTHEST, 1 / FARTHEST):
                turn = turn_of(_leader(plan, measured, prices, figure, price), first, direction)
                if turn is None:
                    continue
                each = [turn_of(_leader(plan, one, prices, figure, price), first, direction) for one in repeats]
                logs = [math.log(one[0]) for one in each if one is not None and one[1] == turn[1]]
                low, high = place_of(logs, math.log)[1:] if len(logs) == len(repeats) > 1 else (None, None)
                found.append(Turn(figure, price, turn[0], first, turn[1], low, high))
    return found


def _leader(
    plan: ChoicePlan,
    measured: Mapping[str, Mapping[str, Reading]],
    prices: Mapping[str, float],
    figure: str,
    price: str,
) -> Callable[[float], str | None]:
    """Who is first by a figure where a price is so many times what it is."""
    way, want = [(name, plan.figure[name].value) for name in plan.leading_to(figure)], plan.figure[figure].want

    def leader(factor: float) -> str | None:
        dearer = {**prices, price: prices[price] * factor}
        known = []
        for name, candidate in plan.candidate.items():
            values = {**dearer, **candidate.numbers, **{key: one.value for key, one in measured[name].items()}}
            value = None
            for key, text in way if measured[name] else ():
                value = values.get(key) if text is None else _value(text, values)
                values.update({key: value} if value is not None else {})
            if value is not None:
                known.append((value, name))
        return _foremost(known, want)

    return leader


def _value(text: str, values: Mapping[str, float]) -> float | None:
    expression = read(text)
    try:
        return float(expression.value(values)) if expression.names <= values.keys() else None
    except ValueError:
        return None


def _repeats(measured: Mapping[str, Mapping[str, Reading]]) -> list[dict[str, dict[str, Reading]]]:
    """What each repeat by itself measured of every candidate; nothing where they have not been repeated alike."""
    counts = {len(reading.each) for values in measured.values() for reading in values.values() if reading.each}
    if len(counts) != 1:
        return []
    return [
        {
            name: {key: Reading(reading.each[number]) if reading.each else reading for key, reading in values.items()}
            for name, values in measured.items()
        }
        for number in range(counts.pop())
    ]


def _is_of_prices(plan: ChoicePlan, name: str) -> bool:
    """Whether a name of a rule is a price, or a candidate's figure that prices go into."""
    figure = name.rpartition("_")[0]
    return name in plan.price or (figure in plan.figure and bool(plan.prices_into(figure)))


def _is_measured(plan: ChoicePlan, figure: str) -> bool:
    """Whether something that was measured goes into a figure, be it by way of others."""
    return any(plan.figure[name].measure is not None for name in plan.leading_to(figure))


def _totals(plan: ChoicePlan, rows: list[CandidateFigures]) -> dict[str, list[tuple[float, float]]]:
    asked = plan.total_time
    if asked is None:
        return {}
    return {
        row.name: totals(alone, each, asked.up_to)
        for row in rows
        if row.name in asked.candidates
        and (alone := row.value(asked.alone)) is not None
        and (each := row.value(asked.each)) is not None
    }


def totals(alone: float, each: float, up_to: int) -> list[tuple[float, float]]:
    """The times of 1, 2, ... tasks: one after another, and at once.

    Examples
    --------
    >>> totals(100.0, 30.0, 3)
    [(100.0, 100.0), (200.0, 130.0), (300.0, 160.0)]
    """
    return [(n * alone, alone + (n - 1) * each) for n in range(1, up_to + 1)]

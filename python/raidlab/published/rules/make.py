"""Work out the figures of every candidate, and answer every rule with them.

Invariants:

- A rule that names its choice is borne out where that choice is the best. Nothing is shown to be better within the
  rule's margin, or where the 95 % intervals over repeats overlap.
- A candidate that was not run has no figures; a rule of whose choice nothing was run is not answered.
- The sensitivity to a price is found by working everything out again with another price, not by a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare.clause import Words, judged, sentence_of
from raidlab.published.quantities import Reading, Source, read_planned
from raidlab.published.quantities.kind import repeats_of
from raidlab.published.rules.plan import CHOICE, ChoiceFigure, ChoicePlan, Rule
from raidlab.published.rules.prices import Prices
from raidlab.stats import mean_interval
from raidlab.study.expression import read

Verdict = Literal["borne out", "no difference shown", "not borne out", "not answered"]
# A price is looked at up to so many times higher and lower.
_FARTHEST = 10.0
_STEPS = 40
_HALVINGS = 20


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


@dataclass(frozen=True)
class Turn:
    """What another price would change: from a factor on another candidate is first by a figure."""

    figure: str
    price: str
    factor: float
    first: str
    instead: str


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
    """Those that hold."""
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

    The study's own prices hold where the user's say nothing. ``others`` are candidates whose figures come from other
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
    cost = {**plan.price, **(prices.price if prices is not None else {})}
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
    expression = read(figure.value or "")
    others = {**prices, **numbers}
    if not expression.names <= {*values, *others}:
        return None
    readings = {name: reading for name, reading in values.items() if name in expression.names}
    try:
        value = float(expression.value(others | {name: reading.value for name, reading in readings.items()}))
        return Reading(value, tuple(float(expression.value(others | each)) for each in repeats_of(readings)))
    except ValueError:
        return None


def _first(rows: list[CandidateFigures], figure: str, want: str) -> str | None:
    if want == "neither":
        return None
    known = [(value, row.name) for row in rows if (value := row.value(figure)) is not None]
    if not known:
        return None
    return (min if want == "least" else max)(known, key=lambda pair: pair[0])[1]


def _answer(rule: Rule, plan: ChoicePlan, rows: list[CandidateFigures], prices: Mapping[str, float]) -> RuleAnswer:
    if rule.holds is not None:
        return _by_expression(rule, plan, rows, prices)
    assert rule.by is not None, "checked when the plan was loaded"
    figure = plan.figure[rule.by]
    among = [row for row in rows if rule.among is None or row.name in rule.among or row.name in rule.choose]
    known = [row for row in among if row.value(rule.by) is not None]
    mine = [row for row in known if row.name in rule.choose]
    if not mine or len(known) < 2:
        arrays = ", ".join(plan.candidate[name].array for name in rule.choose)
        return RuleAnswer(rule, "not answered", f"Nothing to set {arrays} against was run, or it was not run itself.")
    by_name = {row.name: row for row in known}
    best = by_name[_first(known, rule.by, figure.want) or ""]
    own = by_name[_first(mine, rule.by, figure.want) or ""]
    if best is own:
        rest = [row for row in known if row.name not in rule.choose]
        second = by_name.get(_first(rest, rule.by, figure.want) or "")
        against = "" if second is None else f"; next is {_told(second, rule.by, figure)}"
        return RuleAnswer(rule, "borne out", f"{_told(own, rule.by, figure)} is first by {figure.title}{against}.")
    percent = 100 * abs((own.value(rule.by) or 0.0) / (best.value(rule.by) or 1.0) - 1)
    first, behind = _told(best, rule.by, figure), _told(own, rule.by, figure)
    said = f"{first} is first by {figure.title}, {behind} {percent:.1f} % behind"
    if percent <= rule.margin_percent:
        return RuleAnswer(
            rule, "no difference shown", f"{said}, within the {rule.margin_percent:g} % that show nothing."
        )
    if _overlap(best.interval(rule.by), own.interval(rule.by)):
        return RuleAnswer(rule, "no difference shown", f"{said}, within the noise of the repeats.")
    return RuleAnswer(rule, "not borne out", f"{said}.")


def _by_expression(
    rule: Rule, plan: ChoicePlan, rows: list[CandidateFigures], prices: Mapping[str, float]
) -> RuleAnswer:
    expression = read(rule.holds or "")
    known = dict(prices) | {
        f"{figure}_{row.name}": value
        for row in rows
        for figure in plan.figure
        if (value := row.value(figure)) is not None
    }
    missing = sorted(expression.names - set(known))
    if missing:
        return RuleAnswer(rule, "not answered", f"The run has no {', '.join(missing)}.")
    try:
        holds = bool(expression.value(known))
        titles = {name: {"as": name} for name in expression.names}
        titles |= {
            f"{figure}_{row.name}": {"array": row.array, "as": plan.figure[figure].title}
            for row in rows
            for figure in plan.figure
        }
        said = sentence_of(judged(expression, known, [], Words(titles))[1])
    except ValueError as error:
        return RuleAnswer(rule, "not answered", f"It cannot be worked out: {error}.")
    return RuleAnswer(rule, "borne out" if holds else "not borne out", f"{said[:1].upper()}{said[1:]}.")


def _told(row: CandidateFigures, by: str, figure: ChoiceFigure) -> str:
    return f"{row.array} ({row.value(by):.4g} {figure.unit})".replace(" )", ")")


def _overlap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return one is not None and other is not None and one[0] <= other[1] and other[0] <= one[1]


def _turns(plan: ChoicePlan, measured: Mapping[str, Mapping[str, Reading]], prices: Mapping[str, float]) -> list[Turn]:
    """For every figure that prices go into: how far each price may move before another candidate is first."""
    found = []
    for figure, spec in plan.figure.items():
        first = _first(_rows(plan, measured, prices), figure, spec.want)
        if first is None or not _is_priced(plan, figure):
            continue
        for price in plan.price:

            def leader(factor: float, figure: str = figure, price: str = price) -> str | None:
                dearer = {**prices, price: prices[price] * factor}
                return _first(_rows(plan, measured, dearer), figure, plan.figure[figure].want)

            for direction in (_FARTHEST, 1 / _FARTHEST):
                turn = _turn_of(leader, first, direction)
                if turn is not None:
                    found.append(Turn(figure, price, turn[0], first, turn[1]))
    return found


def _is_priced(plan: ChoicePlan, figure: str) -> bool:
    """Whether a price goes into a figure, be it by way of others."""
    text = plan.figure[figure].value
    if text is None:
        return False
    names = read(text).names
    return any(name in plan.price or (name in plan.figure and _is_priced(plan, name)) for name in names)


def _turn_of(leader: Callable[[float], str | None], first: str, farthest: float) -> tuple[float, str] | None:
    """The factor nearest to 1 at which another is first; None up to the farthest."""
    before = 1.0
    for step in range(1, _STEPS + 1):
        factor = farthest ** (step / _STEPS)
        if leader(factor) in (first, None):
            before = factor
            continue
        low, high = before, factor
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if leader(middle) == first else (low, middle)
        return high, leader(high) or ""
    return None


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

"""``choice.toml`` of a study: candidates, the figures they are judged by, prices, rules.

Invariants:

- Data only. Expressions are read when the file is, and every name in one is known: of a candidate's figure the figures
  before it, prices and the candidate's own numbers; of a rule ``FIGURE_CANDIDATE`` and prices.
- Unknown keys are errors, as in a study file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from raidlab.errors import InputError
from raidlab.stats import NOTHING_SHOWN_PERCENT
from raidlab.study.expression import read
from raidlab.study.find import did_you_mean, nearest
from raidlab.study.mapping import check_expression
from raidlab.study.places import Place
from raidlab.study.table_file import Reporter, read_table
from raidlab.study.words import Line, Name, Positive, Prose, Table

CHOICE = "choice.toml"
_UNKNOWN = "is not known"
# Of the five studies one has a plan: 15 candidates, 16 figures, 10 rules; its prices take 900 steps.
_MOST_FIGURES = 256
_MOST_CELLS = 1 << 20
_MOST_EFFORT = 1 << 13


class Candidate(Table):
    """An arrangement to choose."""

    array: Name
    """The study's array."""
    numbers: dict[str, float] = {}
    """Numbers of its own, for expressions: what a run does not tell, such as its share of the raw capacity."""


class ChoiceFigure(Table):
    """A figure that candidates are judged by; one of ``measure``, ``value``."""

    title: Line
    """How it is called."""
    unit: Line = ""
    """Its unit."""
    want: Literal["least", "most", "neither"]
    """Which end is better, if one is."""
    measure: dict[str, object] | None = None
    """What is taken from a run, as in ``quantities.toml``, without ``array``: that is the candidate's."""
    value: Line | None = None
    """An expression over figures before it, prices, and the candidate's numbers."""
    shown: bool = True
    """Whether it is a column of the table."""

    @property
    def in_a_sentence(self) -> str:
        """How it is called there: what stands behind the first comma of its title in brackets."""
        name, comma, rest = self.title.partition(", ")
        return f"{name} ({rest})" if comma else name


class Rule(Table):
    """What is to be chosen when; one of ``by``, ``holds``."""

    when: Line
    """The need, in the user's words."""
    says: Line
    """What the study says to choose."""
    choose: list[Name] = []
    """The candidates that it names: any of them will do."""
    among: list[Name] | None = None
    """Those that meet the need; all when left out."""
    by: Name | None = None
    """The figure that decides."""
    margin_percent: Annotated[float, Field(ge=0)] = NOTHING_SHOWN_PERCENT
    """What lies within so much of the best is level with it, however exactly it is known."""
    holds: Line | None = None
    """Or an expression over ``FIGURE_CANDIDATE`` and prices, which is true where the rule is borne out."""
    sides: Annotated[list[Line], Field(min_length=2, max_length=2)] | None = None
    """What the two sides of ``holds`` are, where that is one comparison."""
    note: Prose = ""
    """A remark for the reader."""


class TotalTime(Table):
    """How long n tasks take: one after another, and all at once."""

    alone: Name
    """The figure with the time of one alone."""
    each: Name
    """The figure with what each further one adds."""
    up_to: Annotated[int, Field(ge=2, le=10_000)] = 10
    """The most tasks."""
    candidates: list[Name]
    """Of whom it is told."""


class ChoicePlan(Table):
    """The file."""

    title: Line
    """The heading."""
    note: Prose = ""
    """What stands below it."""
    currency: Line = ""
    """What prices are in."""
    dated: Line = ""
    """When they held."""
    price: dict[str, Positive] = {}
    """The study's own prices, and what goes with them; a user's file replaces them by name."""
    called: dict[str, Line] = {}
    """Of prices: what costs so much, in words. What has none, such as a number of disks, is said by its name."""
    candidate: Annotated[dict[str, Candidate], Field(min_length=1)]
    """The candidates, by a short name."""
    figure: Annotated[dict[str, ChoiceFigure], Field(min_length=1)]
    """The figures, in the order in which they are worked out."""
    total_time: TotalTime | None = None
    """The time of several tasks."""
    rule: list[Rule] = []
    """The rules, in their order."""

    def leading_to(self, figure: str) -> list[str]:
        """The figures that go into one, be it by way of others, in the order of working out; itself last."""
        before = list(self.figure)
        wanted = {figure}
        for at in range(before.index(figure), -1, -1):
            if before[at] in wanted:
                wanted |= _names(self.figure[before[at]]).intersection(before[:at])
        return [name for name in before[: before.index(figure) + 1] if name in wanted]

    def prices_into(self, figure: str) -> list[str]:
        """The prices that go into a figure, be it by way of others."""
        names = {name for leading in self.leading_to(figure) for name in _names(self.figure[leading])}
        return [price for price in self.price if price in names]


def _names(figure: ChoiceFigure) -> frozenset[str]:
    return frozenset() if figure.value is None else read(figure.value).names


def has_choice(study_file: Path) -> bool:
    """Whether a study has rules of choice."""
    return (study_file.parent / CHOICE).is_file()


def load_choice(study_file: Path) -> ChoicePlan:
    """Read the plan beside a study file."""
    file = study_file.parent / CHOICE
    if not file.is_file():
        message = f"has no {CHOICE}, which says what is chosen by what"
        raise InputError.one("study", message, value=f"'{study_file}'", accepted="a study with rules of choice")
    plan, reporter = read_table(file, ChoicePlan)
    _known(("called",), plan.called, plan.price, reporter)
    _check_figures(plan, reporter)
    if not reporter.problems:
        _check_effort(plan, reporter)
    for index, rule in enumerate(plan.rule):
        _check_rule(("rule", index), rule, plan, reporter)
    if plan.total_time is not None:
        _known(("total_time", "candidates"), plan.total_time.candidates, plan.candidate, reporter)
        _known(("total_time",), [plan.total_time.alone, plan.total_time.each], plan.figure, reporter)
    reporter.complain()
    return plan


def _check_figures(plan: ChoicePlan, reporter: Reporter) -> None:
    numbers = {name for candidate in plan.candidate.values() for name in candidate.numbers}
    before: set[str] = set()
    for name, figure in plan.figure.items():
        if (figure.measure is None) == (figure.value is None):
            reporter.add(("figure", name), "needs to come from somewhere", accepted="either measure or value")
        if figure.value is not None:
            known = {*before, *plan.price, *numbers}
            check_expression(("figure", name, "value"), figure.value, known, reporter, unknown=_UNKNOWN)
        before.add(name)


def _check_effort(plan: ChoicePlan, reporter: Reporter) -> None:
    """Refuse what could not be worked out again for other prices in seconds."""
    if len(plan.figure) > _MOST_FIGURES:
        reporter.add(("figure",), "has too many figures", len(plan.figure), f"at most {_MOST_FIGURES}")
        return
    cells = len(plan.figure) * len(plan.candidate) * (1 + len(plan.rule))
    if cells > _MOST_CELLS:
        message = "are too many to be judged (figures, by candidates, by rules)"
        reporter.add(("rule",), message, cells, f"at most {_MOST_CELLS}")
    ways = sum(len(plan.leading_to(figure)) * len(plan.prices_into(figure)) for figure in plan.figure)
    if (effort := ways * len(plan.candidate)) > _MOST_EFFORT:
        message = "need too many steps for other prices (figures that go into each, by prices, by candidates)"
        reporter.add(("figure",), message, effort, f"at most {_MOST_EFFORT}")


def _check_rule(place: Place, rule: Rule, plan: ChoicePlan, reporter: Reporter) -> None:
    if (rule.by is None) == (rule.holds is None):
        reporter.add(place, "needs something that decides", accepted="either by or holds")
    _known((*place, "choose"), rule.choose, plan.candidate, reporter)
    _known((*place, "among"), rule.among or [], plan.candidate, reporter)
    if rule.by is not None:
        _known((*place, "by"), [rule.by], plan.figure, reporter)
        if rule.by in plan.figure and plan.figure[rule.by].want == "neither":
            reporter.add((*place, "by"), "has no better end", rule.by, "another figure")
        if not rule.choose:
            reporter.add(place, "names nobody to choose", accepted="choose = [...]")
    if rule.holds is not None:
        joined = {f"{figure}_{candidate}" for figure in plan.figure for candidate in plan.candidate}
        known = {*joined, *plan.price}
        check_expression((*place, "holds"), rule.holds, known, reporter, holds=True, unknown=_UNKNOWN)
    if rule.sides is not None and not _has_sides(rule):
        reporter.add(
            (*place, "sides"), "names two sides, of which there are none", rule.holds, "holds = 'FIRST < SECOND'"
        )


def _known(place: Place, names: Iterable[str], known: Iterable[str], reporter: Reporter) -> None:
    listed = list(known)
    for name in names:
        if name not in listed:
            reporter.add(place, f"{_UNKNOWN}{did_you_mean(name, listed)}", name, nearest(name, listed))


def _has_sides(rule: Rule) -> bool:
    try:
        return rule.holds is not None and read(rule.holds).sides is not None
    except ValueError:
        return False

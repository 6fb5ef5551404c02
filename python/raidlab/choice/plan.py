"""``choice.toml`` of a study: candidates, the figures they are judged by, prices, rules.

Invariants:

- Data only. Expressions are read when the file is, and every name in one is known: of a candidate's figure the figures
  before it, prices and the candidate's own numbers; of a rule ``FIGURE_CANDIDATE`` and prices.
- Unknown keys are errors, as in a study file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from raidlab.errors import InputError
from raidlab.study.expression import read
from raidlab.study.find import did_you_mean
from raidlab.study.words import Line, Name, Prose, Table

CHOICE = "choice.toml"


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
    measure: dict[str, Any] | None = None
    """What is taken from a run, as in ``quantities.toml``, without ``array``: that is the candidate's."""
    value: Line | None = None
    """An expression over figures before it, prices, and the candidate's numbers."""
    shown: bool = True
    """Whether it is a column of the table."""


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
    margin_percent: Annotated[float, Field(ge=0)] = 5.0
    """Within so much of the best nothing is shown to be better."""
    holds: Line | None = None
    """Or an expression over ``FIGURE_CANDIDATE`` and prices, which is true where the rule is borne out."""
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
    price: dict[str, float] = {}
    """The study's own prices, and what goes with them; a user's file replaces them by name."""
    candidate: Annotated[dict[str, Candidate], Field(min_length=1)]
    """The candidates, by a short name."""
    figure: Annotated[dict[str, ChoiceFigure], Field(min_length=1)]
    """The figures, in the order in which they are worked out."""
    total_time: TotalTime | None = None
    """The time of several tasks."""
    rule: list[Rule] = []
    """The rules, in their order."""


def has_choice(study_file: Path) -> bool:
    """Whether a study has rules of choice."""
    return (study_file.parent / CHOICE).is_file()


def load_choice(study_file: Path) -> ChoicePlan:
    """Read the plan beside a study file.

    Raises
    ------
    InputError
        With the first mistake.
    """
    file = study_file.parent / CHOICE
    if not file.is_file():
        message = f"has no {CHOICE}, which says what is chosen by what"
        raise InputError.one("study", message, value=f"'{file.parent.name}'", accepted="a study with rules of choice")
    plan: ChoicePlan = read_table(file, ChoicePlan)
    _check_figures(plan)
    for index, rule in enumerate(plan.rule):
        _check_rule(index, rule, plan)
    if plan.total_time is not None:
        _known("total_time.candidates", plan.total_time.candidates, plan.candidate)
        _known("total_time", [plan.total_time.alone, plan.total_time.each], plan.figure)
    return plan


def _check_figures(plan: ChoicePlan) -> None:
    numbers = {name for candidate in plan.candidate.values() for name in candidate.numbers}
    before: set[str] = set()
    for name, figure in plan.figure.items():
        if (figure.measure is None) == (figure.value is None):
            raise InputError.one(f"{CHOICE}: figure.{name}", "needs to come from somewhere: either measure or value")
        if figure.value is not None:
            _check_expression(f"figure.{name}.value", figure.value, {*before, *plan.price, *numbers})
        before.add(name)


def _check_rule(index: int, rule: Rule, plan: ChoicePlan) -> None:
    place = f"rule[{index}]"
    if (rule.by is None) == (rule.holds is None):
        raise InputError.one(f"{CHOICE}: {place}", "needs something that decides: either by or holds")
    _known(f"{place}.choose", rule.choose, plan.candidate)
    _known(f"{place}.among", rule.among or [], plan.candidate)
    if rule.by is not None:
        _known(f"{place}.by", [rule.by], plan.figure)
        if plan.figure[rule.by].want == "neither":
            raise InputError.one(f"{CHOICE}: {place}.by", "has no better end", value=f"'{rule.by}'", accepted="another")
        if not rule.choose:
            raise InputError.one(f"{CHOICE}: {place}", "names nobody to choose", accepted="choose = [...]")
    if rule.holds is not None:
        joined = {f"{figure}_{candidate}" for figure in plan.figure for candidate in plan.candidate}
        _check_expression(f"{place}.holds", rule.holds, {*joined, *plan.price})


def _known(place: str, names: Iterable[str], known: Iterable[str]) -> None:
    listed = list(known)
    for name in names:
        if name not in listed:
            hint = did_you_mean(name, listed)
            raise InputError.one(
                f"{CHOICE}: {place}", f"is not known{hint}", value=f"'{name}'", accepted=", ".join(listed)
            )


def _check_expression(place: str, text: str, known: set[str]) -> None:
    try:
        names = read(text).names
    except ValueError as error:
        raise InputError.one(f"{CHOICE}: {place}", str(error)) from None
    _known(place, sorted(names), sorted(known))


def read_table(file: Path, model: type[Any]) -> Any:
    """A TOML file as a table, or one clear error."""
    try:
        return model.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise InputError.one(f"{file.name}: {place}", first["msg"]) from None
    except OSError as error:
        raise InputError.one(file.name, f"cannot be read: {error.strerror}", value=f"'{file}'") from None
    except ValueError as error:
        raise InputError.one(file.name, f"is not valid TOML: {error}", value=f"'{file}'") from None

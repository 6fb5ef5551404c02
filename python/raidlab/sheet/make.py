"""Work out the sheet of every box of a run.

Invariants:

- A qualifying test passes where the whole interval of its result meets the requirement, and fails where none of it
  does; in between it is undecided. A single repeat has no interval and says so.
- Quiet runs decide; what a loaded run gave stands beside it and decides nothing.
- Boxes are ranked by their quiet results, direction by direction, never by a mean of tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from raidlab.checks import Finding, run_checks
from raidlab.errors import InputError
from raidlab.metrics import Analysis
from raidlab.quantities import KINDS, NotThereError, Reading, Source
from raidlab.sheet.facts import BoxFacts
from raidlab.sheet.plan import SHEET, PlannedTest, SheetPlan
from raidlab.stats import mean_interval

PASSES, FAILS, UNDECIDED = "passes", "fails", "undecided"


@dataclass(frozen=True)
class SheetRow:
    """One test of a box.

    Attributes
    ----------
    test : PlannedTest
    value, low, high : float or None
        Its result and the 95 % interval over repeats.
    repeats : int
    verdict : str
        Of a qualifying test; empty for others, and where there is no result.
    rank : int or None
        Of a discriminating test: the box's place among those of the run.
    left_percent : float or None
        What is left of the rate of the same stream alone.
    stops : float or None
        How often the tape stopped, a run.
    baseline_percent : float or None
        The result in percent of the baseline's.
    loaded : float or None
        The result of a loaded run.
    published : float or None
        The seller's own figure.
    """

    test: PlannedTest
    value: float | None
    low: float | None = None
    high: float | None = None
    repeats: int = 0
    verdict: str = ""
    rank: int | None = None
    left_percent: float | None = None
    stops: float | None = None
    baseline_percent: float | None = None
    loaded: float | None = None
    published: float | None = None


@dataclass(frozen=True)
class BoxSheet:
    """The sheet of one box."""

    box: str
    tree: str
    rows: list[SheetRow]
    facts: BoxFacts = field(default_factory=BoxFacts)

    @property
    def qualifies(self) -> str:
        """Whether it passes all that it must; undecided where one of them is, or was not run."""
        verdicts = [row.verdict for row in self.rows if row.test.kind == "qualifying"]
        if FAILS in verdicts:
            return FAILS
        return PASSES if verdicts and all(verdict == PASSES for verdict in verdicts) else UNDECIDED


@dataclass(frozen=True)
class Sheet:
    """All sheets of a run."""

    plan: SheetPlan
    target: str
    boxes: list[BoxSheet]
    findings: list[Finding]


def make_sheet(
    plan: SheetPlan,
    analysis: Analysis,
    facts: Mapping[str, BoxFacts] | None = None,
    loaded: Analysis | None = None,
    network: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Sheet:
    """The sheet of every box that a run measured.

    Parameters
    ----------
    plan : SheetPlan
    analysis : Analysis
        Of a quiet run of the study.
    facts : mapping, optional
        What was entered by hand, by box.
    loaded : Analysis, optional
        Of a run with hosts and network under load.
    network : mapping, optional
        By box, what machines on a network measured on it: the rows of ``raidlab measure-network --json``.

    Raises
    ------
    InputError
        When a measure of the plan is none, or nothing of the plan was run.
    """
    points = [point for point in analysis.points if point.is_swept]
    target = points[0].target if points else ""
    names = list(dict.fromkeys(point.array for point in points if point.target == target))
    quiet = Source(analysis, target, analysis.run.folder)
    busy = Source(loaded, target, loaded.run.folder) if loaded is not None else None
    steps = dict(network or {})
    _known_boxes("--network", steps, names)
    found = {
        name: [_of_network(_row(test, name, quiet, busy), steps.get(name, ())) for test in plan.test] for name in names
    }
    boxes = [name for name in names if any(row.value is not None for row in found[name])]
    if not boxes:
        raise InputError.one("--run", f"has no result of a test of {SHEET}", value=f"'{analysis.run.folder}'")
    known = dict(facts or {})
    _known_boxes("--facts", known, names)
    sheets = []
    for name in boxes:
        box = known.get(name, BoxFacts())
        rows = [_beside(index, plan, found, name, box, boxes) for index in range(len(plan.test))]
        sheets.append(BoxSheet(name, _tree(analysis, name), rows, box))
    return Sheet(plan, target, sheets, [one for one in run_checks(analysis) if one.target == target])


def _known_boxes(option: str, given: Iterable[str], names: list[str]) -> None:
    unknown = sorted(set(given) - set(names))
    if unknown:
        message = "no box of the run is called so"
        raise InputError.one(option, message, value=f"'{unknown[0]}'", accepted=", ".join(names))


def _of_network(row: SheetRow, steps: Sequence[Mapping[str, Any]]) -> SheetRow:
    """The row with what machines on a network measured, where the run itself has nothing."""
    wanted = row.test.network
    if row.value is not None or wanted is None:
        return row
    for step in steps:
        if (step["test"], step["work"]) == (wanted.test, wanted.work):
            value, low, high = (step[key] for key in ("total_mb_s", "low", "high"))
            return replace(row, value=value, low=low, high=high, verdict=_verdict(row.test, value, low, high))
    return row


def _row(test: PlannedTest, box: str, quiet: Source, busy: Source | None) -> SheetRow:
    reading = _reading(test.measure, box, quiet)
    if reading is None:
        return SheetRow(test, None)
    interval = mean_interval(reading.each) if len(reading.each) > 1 else None
    low, high = interval or (None, None)
    stops = _reading(test.stops, box, quiet) if test.stops is not None else None
    beside = _reading(test.measure, box, busy) if busy is not None else None
    return SheetRow(
        test,
        reading.value,
        low,
        high,
        repeats=max(1, len(reading.each)),
        verdict=_verdict(test, reading.value, low, high),
        stops=None if stops is None else stops.value,
        loaded=None if beside is None else beside.value,
    )


def _verdict(test: PlannedTest, value: float, low: float | None, high: float | None) -> str:
    if test.at_least is None:
        return ""
    if low is None or high is None:
        return PASSES if value >= test.at_least else FAILS
    return PASSES if low >= test.at_least else FAILS if high < test.at_least else UNDECIDED


def _beside(
    index: int, plan: SheetPlan, found: dict[str, list[SheetRow]], name: str, box: BoxFacts, boxes: list[str]
) -> SheetRow:
    """A row with what other rows and boxes say of it."""
    row = found[name][index]
    if row.value is None:
        return row
    others = [found[other][index].value for other in boxes]
    better = sum(1 for value in others if value is not None and value > row.value)
    alone = next((one.value for one in found[name] if one.test.name == row.test.alone), None)
    base = found[plan.baseline][index].value if plan.baseline in found and plan.baseline != name else None
    return SheetRow(
        **{
            **row.__dict__,
            "rank": better + 1 if row.test.kind == "discriminating" and len(boxes) > 1 else None,
            "left_percent": 100 * row.value / alone if alone else None,
            "baseline_percent": 100 * row.value / base if base else None,
            "published": box.published.get(row.test.name),
        }
    )


def _reading(measure: dict[str, Any], box: str, source: Source) -> Reading | None:
    keys = {**measure, "array": box}
    kind = KINDS.get(str(keys.pop("kind", "")))
    if kind is None:
        accepted = ", ".join(KINDS)
        raise InputError.one(SHEET, "is no kind of measure", value=f"'{measure.get('kind')}'", accepted=accepted)
    try:
        return kind.read(kind.check(keys), source)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError.one(f"{SHEET}: measure.{'.'.join(map(str, first['loc']))}", first["msg"]) from None
    except NotThereError:
        return None


def _tree(analysis: Analysis, name: str) -> str:
    return next(array.tree for array in analysis.run.study.array if array.name == name)

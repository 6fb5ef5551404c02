"""Work out the sheet of every box.

Invariants:

- A qualifying test passes where the whole interval of its result meets the requirement, and fails where none of it
  does; in between it is undecided. A single repeat has no interval and says so.
- Quiet runs decide; what a loaded run gave stands beside it and decides nothing.
- Boxes are ranked by their quiet results, direction by direction, never by a mean of tests; those whose intervals meet
  are not told apart and share a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from raidlab.analysis.checks import Finding, run_checks
from raidlab.errors import InputError
from raidlab.published.quantities import Source, read_planned
from raidlab.published.scorecard.boxes import Box, not_alike, refuse_twins
from raidlab.published.scorecard.facts import BoxFacts, NetworkFacts
from raidlab.published.scorecard.plan import SHEET, PlannedTest, SheetPlan
from raidlab.stats import mean_interval

PASSES, FAILS, UNDECIDED = "passes", "fails", "undecided"
_PLACE = f"{SHEET}: measure"


@dataclass(frozen=True)
class SheetRow:
    """One test of a box."""

    test: PlannedTest
    value: float | None
    """Its result."""
    low: float | None = None
    high: float | None = None
    """The ends of its 95 % interval over repeats."""
    repeats: int = 0
    verdict: str = ""
    """Of a qualifying test; empty for others, and where there is no result."""
    rank: int | None = None
    """Of a discriminating test: the box's place among those that have a result, one more than the boxes that are ahead;
    None where it is the only one."""
    left_percent: float | None = None
    """What is left of the rate of the same stream alone."""
    stops: float | None = None
    """How often the tape stopped, a run."""
    baseline_percent: float | None = None
    """The result in percent of the baseline's."""
    behind_baseline: bool | None = None
    """Whether the baseline is ahead, told apart and by more than the plan allows; None where it has no result."""
    loaded: float | None = None
    """The result of a loaded run."""
    published: float | None = None
    """The seller's own figure."""


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

    @property
    def is_asked(self) -> bool:
        """Whether it ran all that it must pass."""
        return all(row.value is not None for row in self.rows if row.test.kind == "qualifying")

    @property
    def places(self) -> list[int]:
        """Its place in each test that ranks boxes."""
        return [row.rank for row in self.rows if row.rank is not None]

    @property
    def against_baseline(self) -> tuple[list[str], int] | None:
        """The tests in which it is behind the baseline, and of how many; None where there is no baseline beside it."""
        rows = [row for row in self.rows if row.behind_baseline is not None and row.test.kind != "beside"]
        return ([row.test.name for row in rows if row.behind_baseline], len(rows)) if rows else None


@dataclass(frozen=True)
class Sheet:
    """All sheets, side by side."""

    plan: SheetPlan
    target: str
    boxes: list[BoxSheet]
    findings: list[Finding]


def make_sheet(
    plan: SheetPlan,
    boxes: Sequence[Box],
    facts: Mapping[str, BoxFacts] | None = None,
    network: Mapping[str, Sequence[NetworkFacts]] | None = None,
) -> Sheet:
    """The sheet of every box of quiet runs, with what was entered by hand of it and what a network measured."""
    refuse_twins(boxes)
    boxes = [box for box in boxes if box.array not in plan.leave_out]
    names, steps, known = [box.name for box in boxes], dict(network or {}), dict(facts or {})
    _known_boxes("--network", steps, names)
    _known_boxes("--facts", known, names)
    found = {box.name: [_of_network(_row(test, box), steps.get(box.name, ())) for test in plan.test] for box in boxes}
    shown = [box for box in boxes if any(row.value is not None for row in found[box.name])]
    if not shown:
        folders = ", ".join(f"'{box.quiet.run.folder}'" for box in boxes)
        raise InputError.one("--run", f"has no result of a test of {SHEET}", value=folders)
    on_it, sheets = [box.name for box in shown], []
    for box in shown:
        entered = known.get(box.name, BoxFacts())
        rows = [_beside(index, plan, found, box.name, entered, on_it) for index in range(len(plan.test))]
        sheets.append(BoxSheet(box.name, box.tree, rows, entered))
    targets = ", ".join(dict.fromkeys(box.target for box in shown))
    return Sheet(plan, targets, sheets, [*not_alike(shown), *_findings(shown)])


def _findings(boxes: Sequence[Box]) -> list[Finding]:
    """What the checks say of each run, by the boxes it is of where there are several."""
    runs = {id(box.quiet): box for box in boxes}
    found = []
    for key, box in runs.items():
        of_it = [one for one in run_checks(box.quiet) if one.target in (box.target, "run")]
        names = ", ".join(other.name for other in boxes if id(other.quiet) == key)
        found += [replace(one, evidence=f"{names}: {one.evidence}") for one in of_it] if len(runs) > 1 else of_it
    return found


def _known_boxes(option: str, given: Iterable[str], names: list[str]) -> None:
    unknown = sorted(set(given) - set(names))
    if unknown:
        message = "no box of the sheet is called so"
        raise InputError.one(option, message, value=f"'{unknown[0]}'", accepted=", ".join(names))


def _of_network(row: SheetRow, steps: Sequence[NetworkFacts]) -> SheetRow:
    """The row with what machines on a network measured, where the run itself has nothing."""
    wanted = row.test.network
    if row.value is not None or wanted is None:
        return row
    for step in steps:
        if (step["test"], step["work"]) == (wanted.test, wanted.work):
            value, low, high = step["total_mb_s"], step["low"], step["high"]
            return replace(row, value=value, low=low, high=high, verdict=_verdict(row.test, value, low, high))
    return row


def _row(test: PlannedTest, box: Box) -> SheetRow:
    quiet = Source(box.quiet, box.target, box.quiet.run.folder)
    busy = Source(box.loaded, box.target, box.loaded.run.folder) if box.loaded is not None else None
    reading = read_planned(_PLACE, {**test.measure, "array": box.array}, quiet)
    if reading is None:
        return SheetRow(test, None)
    interval = mean_interval(reading.each) if len(reading.each) > 1 else None
    # No rate is below nothing, however few the repeats.
    low, high = (max(0.0, interval[0]), interval[1]) if interval else (None, None)
    stops = read_planned(_PLACE, {**test.stops, "array": box.array}, quiet) if test.stops is not None else None
    beside = read_planned(_PLACE, {**test.measure, "array": box.array}, busy) if busy is not None else None
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
    better = sum(1 for other in boxes if is_ahead(found[other][index], row))
    rivals = sum(1 for other in boxes if found[other][index].value is not None)
    alone = next((one.value for one in found[name] if one.test.name == row.test.alone), None)
    base_row = found[plan.baseline][index] if plan.baseline in found and plan.baseline != name else None
    base = None if base_row is None else base_row.value
    return replace(
        row,
        rank=better + 1 if row.test.kind == "discriminating" and rivals > 1 else None,
        left_percent=100 * row.value / alone if alone else None,
        baseline_percent=100 * row.value / base if base else None,
        behind_baseline=_is_behind(row, base_row, plan.baseline_within),
        published=box.published.get(row.test.name),
    )


def _is_behind(row: SheetRow, base: SheetRow | None, within: float) -> bool | None:
    if base is None or base.value is None or row.value is None:
        return None
    return is_ahead(base, row) and row.value < (1 - within) * base.value


def is_ahead(one: SheetRow, other: SheetRow) -> bool:
    """Whether a result is the better one, told apart from the other: by its interval, or by itself in single runs."""
    if one.value is None or other.value is None or one.value <= other.value:
        return False
    if one.low is None or other.high is None:
        return True
    return one.low > other.high

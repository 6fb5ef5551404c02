"""``sheet.toml`` of a study: its tests, what they require, and what they are for.

Invariant: data only; a test's measure is checked by its kind when it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from raidlab.errors import InputError
from raidlab.study.table_file import read_table
from raidlab.study.words import Line, Name, Prose, Share, Table

SHEET = "sheet.toml"


class NetworkStep(Table):
    """A row of what `raidlab measure network --json` prints."""

    test: Line
    """Its test, such as ``3 write``."""
    work: Literal["read", "write"]
    """Its direction."""


class PlannedTest(Table):
    """A test of the plan."""

    name: Name
    """How the sheet calls it."""
    measure: dict[str, object]
    """What is taken from a run, as in ``quantities.toml``, without ``array``: that is the box."""
    kind: Literal["qualifying", "discriminating", "beside"]
    """Whether a box must pass it, whether boxes are ranked by it, or whether it is only shown."""
    at_least: Annotated[float, Field(gt=0)] | None = None
    """What a qualifying test requires, in the measure's unit."""
    alone: Name | None = None
    """The test in which the same stream runs without the others; the sheet shows what is left of its rate."""
    network: NetworkStep | None = None
    """Where its result is among those of machines on a network, for a box that these loaded."""
    stops: dict[str, object] | None = None
    """A measure of how often the tape stopped."""


class SheetPlan(Table):
    """The file."""

    title: Line
    unit: Line = "MB/s"
    baseline: Name | None = None
    """The box that each box must match in every test: plain disks under software RAID."""
    baseline_within: Share = 0.01
    """By how much of its result it may be missed: where something else limits both, they are alike."""
    leave_out: list[Name] = []
    """Arrays of the study that nobody offers, such as a box with its redundancy off."""
    note: Prose = ""
    """What stands at the head of a sheet."""
    test: Annotated[list[PlannedTest], Field(min_length=1)]
    """The tests."""


def has_plan(study_file: Path) -> bool:
    """Whether a study is an acceptance test."""
    return (study_file.parent / SHEET).is_file()


def load_plan(study_file: Path) -> SheetPlan:
    """Read the plan beside a study file."""
    file = study_file.parent / SHEET
    if not file.is_file():
        message = f"has no {SHEET}, which says what its tests require"
        raise InputError.one("study", message, value=f"'{study_file}'", accepted="an acceptance test")
    plan, reporter = read_table(file, SheetPlan)
    names = [test.name for test in plan.test]
    for index, test in enumerate(plan.test):
        if (test.kind == "qualifying") != (test.at_least is not None):
            reporter.add(("test", index), f"of '{test.name}': at_least goes with kind = 'qualifying', and only with it")
        if test.alone is not None and test.alone not in names:
            reporter.add(("test", index, "alone"), "is no test", test.alone, ", ".join(names))
    reporter.complain()
    return plan

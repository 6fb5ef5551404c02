"""The first screen of a report, on a page and in a terminal: of each target the answer, and what spoils it.

Invariant: a card says nothing that an answer or a finding does not say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from raidlab.analysis.checks import PASS, Finding
from raidlab.analysis.margins import BestMargins
from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.answer import Clause, TableAnswer, answers, margins_of_run, speaks_of
from raidlab.report.measured import measured
from raidlab.report.sections import failures_words, target_title
from raidlab.stats import NOTHING_SHOWN_PERCENT, taken_for_granted
from raidlab.study.words import ON_THE_CLOCK

ONE_RUN_EACH = (
    "One run each: no interval over repeats. What differs by less than "
    f"{NOTHING_SHOWN_PERCENT:g} points is called level."
)


@dataclass(frozen=True)
class Card:
    """What the first screen says of one target."""

    title: str
    headline: str
    basis: str
    clauses: tuple[Clause, ...]
    reference_note: str
    """What is to be said behind the name of the reference: that it has no redundancy, or none left."""
    failures_borne: str
    others: str
    margins: dict[str, BestMargins]
    """By workload, what would change who is best."""
    sureness: str
    care: list[Finding]

    @property
    def apart(self) -> list[BestMargins]:
        """Margins of workloads that have no line of their own."""
        lines = {clause.workload for clause in self.clauses}
        return [one for workload, one in self.margins.items() if workload not in lines]

    @property
    def more_margins(self) -> list[BestMargins]:
        """Those that have more margins than are shown at first sight."""
        return [one for one in self.margins.values() if one.more]


def cards_of(analysis: Analysis, findings: list[Finding], *, has_published: bool) -> list[Card]:
    """The answers, each with what its reader has to know; where nothing is asked, what was measured.

    Findings come with the worst first.
    """
    if analysis.run.study.compare:
        found = answers(analysis, findings)
    elif has_published or any(array.twin_of is not None for array in analysis.run.study.array):
        # What it asked is answered beside what it published, or beside what was predicted.
        found = []
    else:
        found = measured(analysis)
    margins = margins_of_run(analysis, findings) if found else []
    return [
        _card(analysis, answer, findings, {one.workload: one for one in margins if one.target == answer.target})
        for answer in found
    ]


def _card(analysis: Analysis, answer: TableAnswer, findings: list[Finding], margins: dict[str, BestMargins]) -> Card:
    has_many = len(answer.clauses) > 1 or bool(answer.caution and answer.clauses)
    compare = analysis.run.study.compare
    compared = _compared(analysis, answer.target)
    reference_note = _note_of(point for point in compared if point.array == compare[0].reference)
    headline = (answer.summary or answer.sentence) if has_many else answer.sentence
    if reference_note and not has_many and answer.basis:
        headline = headline.replace(f"{answer.basis}:", f"{answer.basis}{reference_note}:", 1)
    return Card(
        title=target_title(analysis, answer.target),
        headline=headline if not answer.caution else answer.caution if has_many else f"{answer.caution} {headline}",
        basis=answer.basis,
        clauses=answer.clauses if has_many else (),
        reference_note=reference_note,
        failures_borne=failures_words(compared) if answer.clauses else "",
        others=answer.others if has_many else "",
        margins=margins,
        sureness=_sureness(analysis, answer),
        care=_care(findings, answer.target),
    )


def _note_of(reference: Iterable[Point]) -> str:
    """A reference without redundancy is a yardstick, not a choice."""
    bare = [point for point in reference if point.failures_borne == 0]
    return f", which has no redundancy{' left' if any(point.missing for point in bare) else ''}" if bare else ""


def _care(findings: list[Finding], target: str) -> list[Finding]:
    """What the reader of a target's answer has to know first."""
    return [finding for finding in findings if finding.target == target and finding.verdict != PASS]


def _compared(analysis: Analysis, target: str) -> list[Point]:
    """The points of the first table, as far as the answer speaks of their arrays."""
    compare = analysis.run.study.compare
    return [
        point
        for point in analysis.points
        if compare and (point.group, point.target) == (compare[0].group, target) and speaks_of(compare[0], point.array)
    ]


def _sureness(analysis: Analysis, answer: TableAnswer) -> str:
    """How often it was run, which says how far to trust an interval, or a figure without one."""
    repeats = {len(point.rows) for point in analysis.points if point.target == answer.target and point.is_swept}
    if answer.clauses and analysis.run.study.compare and repeats == {1}:
        return ONE_RUN_EACH
    if "interval" in answer.sentence:
        listed = sorted(repeats)
        number = f"{listed[0]} to {listed[-1]}" if len(listed) > 1 else f"{listed[0]}"
        granted = taken_for_granted(listed[0]) if answer.target in ON_THE_CLOCK else None
        return f"Intervals are of {number} repeats of each cell" + (f", {granted}." if granted else ".")
    return ""

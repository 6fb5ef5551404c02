"""The first screen of a report, on a page and in a terminal: of each target the answer, and what spoils it.

Invariant: a card says nothing that an answer or a finding does not say.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.analysis.checks import PASS, Finding
from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.answer import Clause, TableAnswer, answers, listed, speaks_of
from raidlab.report.measured import measured
from raidlab.report.sections import target_title
from raidlab.stats import NOTHING_SHOWN_PERCENT


@dataclass(frozen=True)
class Card:
    """What the first screen says of one target."""

    title: str
    headline: str
    basis: str
    clauses: tuple[Clause, ...]
    has_no_redundancy: bool
    unprotected: str
    others: str
    sureness: str
    care: list[Finding]


def cards_of(analysis: Analysis, findings: list[Finding], *, has_published: bool) -> list[Card]:
    """The answers, each with what its reader has to know; where nothing is asked, what was measured.

    Findings come with the worst first.
    """
    if analysis.run.study.compare:
        found = answers(analysis, findings)
    elif has_published:
        # What it asked is answered beside what it published.
        found = []
    else:
        found = measured(analysis)
    return [_card(analysis, answer, findings) for answer in found]


def _card(analysis: Analysis, answer: TableAnswer, findings: list[Finding]) -> Card:
    has_many = len(answer.clauses) > 1 or bool(answer.caution and answer.clauses)
    bare = _without_redundancy(analysis, answer.target)
    reference = analysis.run.study.compare[0].reference if analysis.run.study.compare else ""
    has_no_redundancy = reference in bare
    headline = (answer.summary or answer.sentence) if has_many else answer.sentence
    if has_no_redundancy and not has_many and answer.basis:
        headline = headline.replace(f"{answer.basis}:", f"{answer.basis}, which has no redundancy:", 1)
    return Card(
        title=target_title(analysis, answer.target),
        headline=headline if not answer.caution else answer.caution if has_many else f"{answer.caution} {headline}",
        basis=answer.basis,
        clauses=answer.clauses if has_many else (),
        has_no_redundancy=has_no_redundancy,
        unprotected=_unprotected(bare) if answer.clauses and not has_no_redundancy else "",
        others=answer.others if has_many else "",
        sureness=_sureness(analysis, answer),
        care=_care(findings, answer.target),
    )


def _care(findings: list[Finding], target: str) -> list[Finding]:
    """What the reader of a target's answer has to know first."""
    return [finding for finding in findings if finding.target == target and finding.verdict != PASS]


def _without_redundancy(analysis: Analysis, target: str) -> list[str]:
    """The arrays of the first table, as far as the answer speaks of them, that keep nothing twice."""
    compare = analysis.run.study.compare
    of_table = [
        point
        for point in analysis.points
        if compare and (point.group, point.target) == (compare[0].group, target) and speaks_of(compare[0], point.array)
    ]
    return list(dict.fromkeys(point.array for point in of_table if _keeps_nothing_twice(point)))


def _keeps_nothing_twice(point: Point) -> bool:
    # What is kept twice takes a member's space at least; chunks that do not divide a member leave far less over.
    return point.storage_efficiency is not None and point.storage_efficiency > 1.0 - 0.5 / point.members


def _unprotected(names: list[str]) -> str:
    """What is to be known of those that do without what the reference has."""
    return f"{listed(names)} {'has' if len(names) == 1 else 'have'} no redundancy." if names else ""


def _sureness(analysis: Analysis, answer: TableAnswer) -> str:
    """How often it was run, which says how far to trust an interval, or a figure without one."""
    repeats = {len(point.rows) for point in analysis.points if point.target == answer.target and point.is_swept}
    if answer.clauses and analysis.run.study.compare and repeats == {1}:
        margin = f"{NOTHING_SHOWN_PERCENT:g} points"
        return f"One run each: no interval over repeats. What differs by less than {margin} is called level."
    if "interval" in answer.sentence:
        listed = sorted(repeats)
        number = f"{listed[0]} to {listed[-1]}" if len(listed) > 1 else f"{listed[0]}"
        return f"Intervals are of {number} repeats of each cell."
    return ""

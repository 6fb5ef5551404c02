"""The report of a comparison of runs, or of arrays of runs, as one HTML page.

Invariant: it reads a comparison and its checks, and works nothing out but wording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raidlab.analysis.checks import SEVERITY, Finding
from raidlab.analysis.metrics.run_comparison import ComparisonRow, RunComparison, Side
from raidlab.report.differences import (
    answer_words,
    footnotes,
    four_digits,
    headline,
    how,
    load_words,
    mean_words,
    percent,
    subject_of,
)
from raidlab.report.figures.ratios import figures_of
from raidlab.report.page import fill, verdict_counts
from raidlab.report.provenance import rerun_command
from raidlab.report.sections import shown


@dataclass(frozen=True)
class DifferenceLine:
    """One line of a table of differences."""

    load: str
    a: str
    b: str
    answer: str
    is_shown: bool
    finds: str


@dataclass(frozen=True)
class DifferenceTable:
    """All lines of one figure, by where they come from; with the geometric mean of their ratios."""

    title: str
    subjects: list[tuple[str, list[DifferenceLine]]]
    mean: str


def render_comparison(found: RunComparison, findings: list[list[Finding]]) -> str:
    """The page's text, with what the checks say of A and of B."""
    worst = [sorted(own, key=lambda finding: -SEVERITY[finding.verdict]) for own in findings]
    return fill(
        "comparison.html.j2",
        found=found,
        title=f"{_short(found.b)} against {_short(found.a)}",
        headline=headline(found),
        basis=_basis(found),
        sides=[_side(side, own, letter) for side, own, letter in zip((found.a, found.b), worst, "AB", strict=True)],
        figures=[shown(figure) for figure in figures_of(found)],
        tables=[_table(found, kind) for kind in dict.fromkeys(row.figure.kind for row in found.rows)],
        footnotes=" ".join(footnotes(found)),
    )


def _short(side: Side) -> str:
    """A side as it was named, without the folders before it."""
    return side.words.rstrip("/").rpartition("/")[2] or side.words


def _basis(found: RunComparison) -> str:
    count = sum(1 for row in found.rows if row.difference.p is not None)
    per = "" if found.per == "array" else f"; rates per {found.per.replace('_', ' ')}"
    return f"B against A{how(count)}{per}"


def _side(side: Side, findings: list[Finding], letter: str) -> dict[str, Any]:
    facts = side.run.facts
    return {
        "letter": letter,
        "words": side.words,
        "title": side.run.study.title,
        "array": side.array,
        "seed": facts["seed"],
        "started": facts["times"]["started"],
        "raidlab": facts["raidlab"]["version"],
        "command": rerun_command(facts),
        "verdicts": verdict_counts(findings),
        "findings": findings,
        "broken": [finding.check for finding in findings if finding.verdict == "INVALID"],
    }


def _table(found: RunComparison, kind: str) -> DifferenceTable:
    rows = [row for row in found.rows if row.figure.kind == kind]
    subjects = [
        (subject, [_line(row) for row in rows if subject_of(row, found.rows) == subject])
        for subject in dict.fromkeys(subject_of(row, found.rows) for row in rows)
    ]
    mean = found.geometric_means().get(kind)
    return DifferenceTable(rows[0].figure.title, subjects, "" if mean is None else mean_words(mean))


def _line(row: ComparisonRow) -> DifferenceLine:
    finds = row.difference.found_percent()
    a, b = (four_digits(value) for value in row.values)
    tail = "-" if finds is None else f"{percent(finds)} %"
    return DifferenceLine(load_words(row.level), a, b, answer_words(row.difference), bool(row.difference.shown), tail)

"""What the checks say of a run, for exports: a figure must not travel without its verdict."""

from __future__ import annotations

import re

from raidlab.analysis.checks import INVALID, UNKNOWN, WARN, run_checks, that_concern, words_of
from raidlab.analysis.metrics import Analysis, Point


def verdicts_by_target(analysis: Analysis) -> dict[str, str]:
    """By target, the names of the checks that say INVALID, WARN or UNKNOWN of it, in a line; empty where none does."""
    findings = run_checks(analysis)
    targets = list(dict.fromkeys(point.target for point in analysis.points))
    told = (INVALID, WARN, UNKNOWN)
    return {target: words_of(that_concern(findings, {target}, among=targets), told) for target in targets}


def file_of(number: int, point: Point, suffix: str) -> str:
    """The name of the file of a point."""
    name = f"{number:04}-{point.target}-{point.array}-{point.workload}-{point.level}"
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-').lower()}.{suffix}"


def title_with_verdicts(title: str, point: Point, verdicts: dict[str, str]) -> str:
    """A title, with the verdicts on its point behind it."""
    return f"{title}; {verdicts[point.target]}" if verdicts[point.target] else title

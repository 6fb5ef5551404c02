"""Figures of which a study has one for each of its tables and each target.

Invariant: the order is that of the run's targets, then of the study's tables; a figure without panels is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from raidlab.analysis.metrics import Analysis
from raidlab.report.figures.figure import Figure, Panel, group_key, key_of
from raidlab.study.schema import Compare

Panels = Callable[[Analysis, Compare, str], Iterable[Panel]]


def figure_per_table(analysis: Analysis, kind: str, title: str, caption: str, panels: Panels) -> Iterator[Figure]:
    """One figure for each table of the study and each target that has panels."""
    for target in analysis.targets:
        for compare in analysis.run.study.compare:
            made = tuple(panels(analysis, compare, target))
            if made:
                key = key_of(kind, group_key(analysis.run.study, compare.group), target)
                yield Figure(kind, key, title, caption, made)

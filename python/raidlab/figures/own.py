"""Figures that a study asks for under its own names: what curves and bars have in common.

Invariants:

- A figure is drawn for each target on which at least one of its lines was run; what was not run is left out.
- A line keeps its colour and shape in all panels of a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from raidlab.figures.figure import Figure, Panel, key_of
from raidlab.metrics import METRICS, Analysis, Metric
from raidlab.study.figure import StudyFigure

OWN = "own"
BY_KIND: dict[str, Metric] = {metric.kind: metric for metric in METRICS}

Panels = Callable[[Analysis, StudyFigure, str], Iterable[Panel]]


@dataclass(frozen=True)
class Line:
    """A line or bar: an array under a workload, and how it is called."""

    array: str
    workload: str
    name: str


def lines_of(spec: StudyFigure, workload: str) -> list[Line]:
    """The lines of a panel, in their order."""
    listed = [Line(array, workload, array) for array in spec.arrays]
    return listed + [Line(one.array, one.workload or workload, one.name or one.array) for one in spec.also]


def own_key(spec: StudyFigure, target: str) -> str:
    """A figure's identity within a report."""
    return key_of(OWN, spec.number, target)


def own_figures(analysis: Analysis, kind: str, caption: str, panels: Panels) -> Iterator[Figure]:
    """The figures of a kind that the study asks for.

    Parameters
    ----------
    analysis : Analysis
    kind : str
        ``curves`` or ``bars``, the file that draws it.
    caption : str
        How to read figures of this kind.
    panels : callable
        Makes the panels of an analysis, a figure and a target.
    """
    for target in dict.fromkeys(point.target for point in analysis.points):
        for spec in analysis.run.study.figure:
            made = tuple(panels(analysis, spec, target)) if spec.draw == kind else ()
            if made:
                text = " ".join(part for part in (caption, spec.note) if part)
                yield Figure(kind, own_key(spec, target), f"{spec.number}: {spec.title}", text, made)


def axis_title(metrics: Iterable[Metric]) -> str:
    """What an axis of one metric, or of parts of one whole, is called."""
    first = next(iter(metrics))
    return f"{first.title.partition(',')[0]} ({first.unit})" if first.unit not in ("1", "1/s") else first.title

"""A metric against the size of requests, one line an array: one panel for reads, one for writes.

The figure's workloads are its points: each has requests of one size. Strokes show the lowest and the highest run.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.over_blocks import RUNS, LinePoint, kib, panels, sizes_of, swept_point
from raidlab.report.figures.own import of_repeats, own_figures, places_of
from raidlab.report.figures.printed_points import Printed
from raidlab.study.figure import StudyFigure

KIND = "sizes"


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target."""
    yield from own_figures(analysis, KIND, of_repeats(analysis, RUNS), _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    lines = [(array, array) for array in spec.arrays] + [(one.array, one.name or one.array) for one in spec.also]
    measured = [
        LinePoint(name, kib(size_bytes), point, is_read=workload.read > 0)
        for array, name in lines
        for workload, size_bytes in sizes_of(analysis, spec)
        if (point := swept_point(analysis, target, array, workload.name)) is not None
    ]
    yield from panels(
        spec, measured, places_of(analysis.run.study, [name for _, name in lines]), "block (KiB)", printed
    )

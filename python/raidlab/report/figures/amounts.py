"""A metric against the amount that a run moves, one line a block size: from which amount on a rate is a sustained one.

The figure's workloads are its points: each moves so many requests of one size (`count`). Caches take the first bytes,
so short runs tell of them; where a line becomes level, of what lies behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.over_blocks import RUNS, LinePoint, kib, panels, sizes_of, swept_point
from raidlab.report.figures.own import of_repeats, own_figures
from raidlab.report.figures.printed_points import Printed
from raidlab.study.figure import StudyFigure

KIND = "amounts"
_MB = 1e6


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target."""
    yield from own_figures(analysis, KIND, of_repeats(analysis, RUNS), _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    names, measured = [], []
    for array in spec.arrays:
        for workload, size_bytes in sizes_of(analysis, spec):
            block = f"{kib(size_bytes):g} KiB"
            names.append(block if len(spec.arrays) == 1 else f"{array}, {block}")
            point = swept_point(analysis, target, array, workload.name)
            if point is not None and point.rows:
                moved = point.total("all_bytes") / len(point.rows) / _MB
                measured.append(LinePoint(names[-1], moved, point, is_read=workload.read > 0))
    yield from panels(spec, measured, list(dict.fromkeys(names)), spec.along or "moved (MB)", printed)

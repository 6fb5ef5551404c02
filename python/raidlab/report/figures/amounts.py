"""A metric against the amount that a run moves, one line a block size: from which amount on a rate is a sustained one.

The figure's workloads are its points: each moves so many requests of one size (`count`). Caches take the first bytes,
so short runs tell of them; where a line becomes level, of what lies behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.metrics import Analysis
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.over_blocks import RUNS, Mark, kib, panels, sizes_of, swept_point
from raidlab.report.figures.own import of_repeats, own_figures
from raidlab.study.figure import StudyFigure
from raidlab.study.workload import Workload

KIND = "amounts"
_MB = 1e6


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target."""
    yield from own_figures(analysis, KIND, of_repeats(analysis, RUNS), _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    sizes = [size for _, size in sizes_of(analysis, spec)]
    names = list(dict.fromkeys(_name(array, size, spec) for array in spec.arrays for size in sizes))
    yield from panels(spec, _marks(analysis, spec, target), names, "moved (MB)")


def _marks(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[tuple[Workload, Mark]]:
    for array in spec.arrays:
        for workload, size_bytes in sizes_of(analysis, spec):
            point = swept_point(analysis, target, array, workload.name)
            if point is not None and point.rows:
                moved = point.total("all_bytes") / len(point.rows) / _MB
                yield workload, Mark(_name(array, size_bytes, spec), moved, point)


def _name(array: str, size_bytes: int, spec: StudyFigure) -> str:
    block = f"{kib(size_bytes):g} KiB"
    return block if len(spec.arrays) == 1 else f"{array}, {block}"

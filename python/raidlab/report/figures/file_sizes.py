"""How large the files were that were read: a bar for each size, with its share of all files.

Sizes that no array of the figure read are left out; all of its arrays count together.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures.chart import Mark
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.own import own_figures, panels_of
from raidlab.report.figures.printed_points import Printed
from raidlab.report.figures.quantities import bars_chart
from raidlab.report.figures.words import number, of_bars
from raidlab.study.figure import StudyFigure

KIND = "file_sizes"
_AXIS = "share of the files read (%)"
_KIB = 1024


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, "", _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, _printed: Printed) -> Iterator[Panel]:
    for workload, title in panels_of(spec):
        cells = [
            cell
            for array in spec.arrays
            for point in analysis.swept(target, workload, array=array)
            for cell in point.cells
        ]
        of_cells = (
            analysis.run.file_sizes.filter(pl.col("cell").is_in(cells)).group_by("size_bytes").agg(pl.sum("files"))
        )
        files = {size: count for size, count in of_cells.sort("size_bytes").iter_rows() if count}
        marks = [
            Mark(f"{size / _KIB:g} KB", 100 * count / sum(files.values()), tip=f"{size / _KIB:g} KB: {count} files")
            for size, count in files.items()
        ]
        if marks:
            mean = sum(size * count for size, count in files.items()) / sum(files.values()) / _KIB
            said = of_bars({mark.line: mark.value for mark in marks}, f"{_AXIS}, mean {number(mean)} KB")
            yield Panel(title, bars_chart(marks, [], f"{_AXIS}; their mean: {number(mean)} KB", title), said)

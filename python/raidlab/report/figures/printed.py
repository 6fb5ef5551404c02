"""Columns of printed tables as bars, in the order of the print: what comes out here, and over it what was printed.

A bar is a row of the table, called after the array that it speaks of; where several rows speak of one, after what tells
them apart. Of a row that no run tells of there is only what was printed; on hardware of the user's only ours, and
nothing that rests on printed prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison, PublishedRow
from raidlab.published.compare.evaluate import CLAIMS
from raidlab.published.quantities import printed as printed_number
from raidlab.report.figures.chart import Mark
from raidlab.report.figures.figure import Figure, Panel
from raidlab.report.figures.own import own_figures
from raidlab.report.figures.printed_points import PRINTED, Printed, hollow_marks, in_words, rows_named
from raidlab.report.figures.quantities import bars_chart
from raidlab.report.figures.words import number, of_bars
from raidlab.study.figure import StudyFigure

KIND = PRINTED


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, on the target that is compared."""
    yield from own_figures(analysis, KIND, "", _panels, published)


def _panels(_analysis: Analysis, spec: StudyFigure, _target: str, printed: Printed) -> Iterator[Panel]:
    for index, pattern in enumerate(spec.printed):
        rows = [row for row in rows_named(printed.rows, [pattern]) if list(hollow_marks(row, Mark("", 0.0)))]
        rows = [row for row in rows if not printed.is_elsewhere or is_of_run(row)]
        names = _names(rows)
        marks: list[Mark] = []
        over: list[Mark] = []
        for name, row in zip(names, rows, strict=True):
            over += () if printed.is_elsewhere else hollow_marks(row, Mark(name, 0.0))
            if row.value is not None:
                interval = None if row.low is None or row.high is None else (row.low, row.high)
                tip = f"{name}: {number(row.value)} {row.published.unit}".rstrip()
                marks.append(Mark(name, row.value, interval=interval, tip=tip))
        if marks or over:
            column = rows[0].id.rpartition(":")[2].replace("_", " ")
            title = spec.panels[index] if spec.panels else column
            axis = f"{title} ({rows[0].published.unit})"
            said = of_bars({mark.line: mark.value for mark in marks}, axis) + in_words(over)
            yield Panel(title, bars_chart(marks, over, axis, title, names), said)


def is_of_run(row: PublishedRow) -> bool:
    """Whether all of a row was run here: what was printed, such as a price, is not of the user's hardware."""
    return row.value is not None and all(measure["kind"] != printed_number.KIND.kind for measure in row.measures)


def _names(rows: Sequence[PublishedRow]) -> list[str]:
    """What the bars are called."""
    arrays = [{str(measure["array"]) for measure in row.measures if "array" in measure} for row in rows]
    alone = [found.pop() for found in arrays if len(found) == 1]
    if len(set(alone)) == len(rows):
        return alone
    return [_name(row) for row in rows]


def _name(row: PublishedRow) -> str:
    """A row of a table after what tells it apart; a claim after the arrays that it was taken from."""
    if row.table == CLAIMS:
        arrays = dict.fromkeys(str(measure["array"]) for measure in row.measures if "array" in measure)
        return f"{len(arrays)} arrays" if len(arrays) > 1 else next(iter(arrays), row.id)
    return row.title.partition(", ")[2].rpartition(":")[0]

"""What a row rests on: figures that parameters were fitted to, predicted ones, or both.

Invariants:

- A figure is a metric of an array under a workload, at whatever load: where one point of a curve was fitted to, no
  other point of it counts as predicted.
- What follows from figures that were fitted to is called fitted, as the figures themselves are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from raidlab.published.compare.row import FITTED, PARTLY, PREDICTED, PublishedRow
from raidlab.published.quantities import KINDS

# A metric or a kind of measure, array, workload.
Figure = tuple[str, str, str]


def fitted_figures(rows: Iterable[PublishedRow]) -> frozenset[Figure]:
    """The figures behind rows that were fitted to."""
    return frozenset(figure for row in rows for figure in _behind(row))


def with_basis(row: PublishedRow, fitted: frozenset[Figure]) -> PublishedRow:
    """The row, its kind that of the figures behind it: what is worked out of fitted ones predicts nothing either."""
    if row.kind != PREDICTED:
        return row
    behind = set(_behind(row))
    return replace(row, kind=FITTED if behind <= fitted else PARTLY) if behind & fitted else row


def _behind(row: PublishedRow) -> Iterator[Figure]:
    for measure in row.measures:
        if KINDS[str(measure["kind"])].is_run:
            yield from _figures(measure)


def _figures(measure: Mapping[str, object]) -> Iterator[Figure]:
    kind = str(measure["kind"])
    what = str(measure.get(KINDS[kind].metric_key) or KINDS[kind].metric or kind)
    workload = str(measure.get("workload") or measure.get("workloads") or "")
    yield what, str(measure.get("array", "")), workload
    if "reference" in measure:
        yield what, str(measure["reference"]), str(measure.get("reference_workload", workload))
    if isinstance(reaches := measure.get("reaches"), Mapping):
        yield str(reaches.get("metric")), str(reaches.get("array")), workload

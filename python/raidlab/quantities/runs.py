"""How far the runs of a point lie apart: highest minus lowest, in percent of the value; of several points the most.

Reference: A. C. Uselton, *The Raw Disk I/O Performance of Compaq StorageWorks RAID arrays under Tru64 UNIX*, 2000,
whose points are five runs each.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from raidlab.metrics import METRICS, Metric, Point
from raidlab.quantities.kind import Kind, Need, NotThereError, Reading, Source
from raidlab.quantities.metric import needs_at
from raidlab.study import Study
from raidlab.study.words import Name, Table

_METRICS: dict[str, Metric] = {metric.kind: metric for metric in METRICS}


class Keys(Table):
    """What a measure of this kind says."""

    metric: str
    """Which metric."""
    array: Name
    """Which arrays: a name or a pattern."""
    workloads: Name = "*"
    """Which workloads: a name or a pattern."""
    least_runs: Annotated[int, Field(ge=2)] = 2
    """Points with fewer runs do not count."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The widest spread; it has no value for each repeat, being of them all."""
    if keys.metric not in _METRICS:
        raise NotThereError(f"there is no metric '{keys.metric}'")
    metric = _METRICS[keys.metric]
    points = [
        point
        for (array, workload), points in source.points.items()
        if fnmatchcase(array, keys.array) and fnmatchcase(workload, keys.workloads)
        for point in points
        if point.is_swept and len(point.rows) >= keys.least_runs
    ]
    spreads = [spread for point in points if (spread := _spread(metric, point)) is not None]
    return Reading(max(spreads)) if spreads else None


def _spread(metric: Metric, point: Point) -> float | None:
    value = metric.compute(point, None)
    each = [metric.compute(replace(point, rows=(row,)), None) for row in point.rows]
    known = [one for one in each if one is not None]
    return 100 * (max(known) - min(known)) / value if value and len(known) == len(each) else None


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """Every load of the arrays and workloads that match."""
    found: set[Need] = set()
    for array in study.array:
        for workload in study.workload:
            if fnmatchcase(array.name, keys.array) and fnmatchcase(workload.name, keys.workloads):
                found |= needs_at({array.name}, workload.name, "maximum", study) or set()
    return found


KIND = Kind(kind="runs", title="how far runs lie apart", keys=Keys, is_run=True, read=read, needs=needs)

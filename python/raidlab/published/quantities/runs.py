"""How far the runs of a point lie apart (highest minus lowest, in percent of the value), and how long they lasted.

Of several points the widest, and the shortest.

Reference: A. C. Uselton, *The Raw Disk I/O Performance of Compaq StorageWorks RAID arrays under Tru64 UNIX*, 2000,
whose points are five runs each.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from raidlab.analysis.metrics import Metric, Point
from raidlab.published.quantities.kind import Kind, Need, Reading, Source, metric_named
from raidlab.published.quantities.metric import needs_at
from raidlab.study import Study
from raidlab.study.words import Name, Table


class Keys(Table):
    """What a measure of this kind says."""

    of: Literal["spread", "shortest"] = "spread"
    """The spread in percent, or the time of the shortest run in seconds of the run's clock."""
    metric: str = "throughput_mb_s"
    """Which metric; of a spread."""
    array: Name
    """Which arrays: a name or a pattern."""
    workloads: Name = "*"
    """Which workloads: a name or a pattern."""
    least_runs: Annotated[int, Field(ge=1)] = 2
    """Points with fewer runs do not count; nor do workloads with a ``count``, which are as short as they are meant to
    be."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The widest spread, or the shortest time; it has no value for each repeat, being of them all."""
    metric = metric_named(keys.metric)
    short = {workload.name for workload in source.run.study.workload if workload.count is not None}
    points = [
        point
        for (array, workload), points in source.points.items()
        if fnmatchcase(array, keys.array) and fnmatchcase(workload, keys.workloads) and workload not in short
        for point in points
        if point.is_swept and len(point.rows) >= keys.least_runs
    ]
    if keys.of == "shortest":
        times = [row["elapsed_ns"] / 1e9 for point in points for row in point.rows]
        return Reading(min(times)) if times else None
    spreads = [spread for point in points if (spread := _spread(metric, point)) is not None]
    return Reading(max(spreads)) if spreads else None


def _spread(metric: Metric, point: Point) -> float | None:
    value = metric.compute(point, None)
    each = metric.each(point)
    known = [one for one in each if one is not None]
    return 100 * (max(known) - min(known)) / value if value and len(known) == len(each) else None


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """Every load of the arrays and workloads that match."""
    arrays = {array.name for array in study.array if fnmatchcase(array.name, keys.array)}
    return {
        need
        for workload in study.workload
        if workload.count is None and fnmatchcase(workload.name, keys.workloads)
        for need in needs_at(arrays, workload.name, "maximum", study) or ()
    }


KIND = Kind("runs", "how far runs lie apart", Keys, read, needs)

"""Metrics: what is worked out from a run, one file a metric or family of them.

Adding one: a file named after its kind, a line in `METRICS`, a test.

Invariants:

- Metrics read a `Run` through points; they never read a file and never measure.
- Percentiles come from merged histograms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from raidlab.analysis.metrics import (
    device_bytes_percent,
    disk_time_ms,
    energy,
    idle_stages,
    outstanding,
    processors,
    relative_throughput,
    response_time,
    storage_efficiency_percent,
    task_time_ms,
    throughput,
    write_amplification,
)
from raidlab.analysis.metrics.comparison import ComparedArray, Comparison, HoldResult, comparisons_of
from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import KEYS, Point, points_of
from raidlab.results import Run
from raidlab.stats import interval_above_zero

METRICS: tuple[Metric, ...] = (
    *throughput.METRICS,
    *response_time.METRICS,
    *relative_throughput.METRICS,
    storage_efficiency_percent.METRIC,
    write_amplification.METRIC,
    outstanding.METRIC,
    task_time_ms.METRIC,
    disk_time_ms.METRIC,
    *idle_stages.METRICS,
    *processors.METRICS,
    *device_bytes_percent.METRICS,
    *energy.METRICS,
)


@dataclass(frozen=True)
class Analysis:
    """Everything worked out from a run, each thing once."""

    run: Run

    @cached_property
    def points(self) -> list[Point]:
        """All points, in the order of the run's cells."""
        return points_of(self.run)

    @cached_property
    def targets(self) -> list[str]:
        """The targets of its points."""
        return list(dict.fromkeys(point.target for point in self.points))

    def swept(
        self, target: str, workload: str | None = None, *, array: str | None = None, group: str | None = None
    ) -> list[Point]:
        """The points of a target whose load the study lists; of one workload, array or group where they are named.

        Parameters
        ----------
        target : str
            Where the load ran, as the points have it.
        workload, array, group : str, optional
            Only the points of these.
        """
        wanted = (workload, array, group)
        return [
            point
            for point in self.points
            if point.is_swept
            and point.target == target
            and all(
                name in (None, own)
                for name, own in zip(wanted, (point.workload, point.array, point.group), strict=True)
            )
        ]

    @cached_property
    def values(self) -> dict[int, dict[str, float | None]]:
        """All metrics of each point, by its position in `points`."""
        by_identity = {self._identity(point, point.array): point for point in self.points}
        references = {compare.group: compare.reference for compare in self.run.study.compare}
        found = {}
        for index, point in enumerate(self.points):
            name = references.get(point.group)
            reference = by_identity.get(self._identity(point, name)) if name is not None else None
            found[index] = {metric.kind: metric.compute(point, reference) for metric in METRICS}
        return found

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The tables the study asks for."""
        return comparisons_of(self.run, self.points, self.values)

    def compared(self, target: str, group: str) -> list[Comparison]:
        """The comparisons of one table on one target, a workload each.

        Parameters
        ----------
        target : str
            Where the load ran, as the points have it.
        group : str
            The group of arrays that the table compares.
        """
        return [one for one in self.comparisons if (one.target, one.compare.group) == (target, group)]

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row a point: its identity, all metrics, the 95 % interval of its throughput over repeats."""
        rows = []
        for index, point in enumerate(self.points):
            interval = interval_above_zero([rate / 1e6 for rate in point.each_per_s("all_bytes")])
            rows.append(
                {key: getattr(point, key) for key in KEYS}
                | {"swept": point.is_swept, "repeats": len(point.rows), "members": point.members}
                | self.values[index]
                | {"throughput_mb_s_low": interval[0] if interval else None}
                | {"throughput_mb_s_high": interval[1] if interval else None}
            )
        return pl.DataFrame(rows, infer_schema_length=None)

    @staticmethod
    def _identity(point: Point, array: str) -> tuple[object, ...]:
        return point.target, array, point.workload, point.load, point.depth, point.rate_per_s


__all__ = ["METRICS", "Analysis", "ComparedArray", "Comparison", "HoldResult", "Metric", "Point"]

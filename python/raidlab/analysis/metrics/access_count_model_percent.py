"""What the simple access-count model says of a point's relative throughput per disk."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.model import throughput_per_member_percent
from raidlab.study.workload import Workload


def access_count_model_percent(point: Point, reference: Point | None) -> float | None:
    """The model's value for an array in percent of its value for the reference; None without a reference."""
    workload = _workload(point)
    if reference is None or point.is_open or workload.trace is not None or workload.streams is not None:
        return None
    try:
        return 100 * _against_no_redundancy(point) / _against_no_redundancy(reference)
    except ValueError:
        # A run folder may hold a tree that no engine wrote.
        return None


def _against_no_redundancy(point: Point) -> float:
    workload = _workload(point)
    return throughput_per_member_percent(point.run.tree(point.array), workload.size.typical_bytes, workload.read)


def _workload(point: Point) -> Workload:
    return next(found for found in point.run.study.workload if found.name == point.workload)


METRIC = Metric(
    kind="access_count_model_percent",
    title="simple access-count model",
    unit="%",
    meaning="relative throughput per disk if every access to a member cost the same (Chen et al. 1990, section 3)",
    compute=access_count_model_percent,
)

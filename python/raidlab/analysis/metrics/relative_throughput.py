"""Throughput against the reference array under the same load, and what counting accesses says it would be."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.model import throughput_per_member_percent
from raidlab.study.workload import Workload


def share_basis(point: Point, per: str) -> float:
    """What throughput is divided by: physical disks, user bytes, or nothing."""
    if per == "disk":
        return float(point.disks)
    return float(point.rows[0]["user_bytes"]) if per == "user_capacity" else 1.0


def per_of(point: Point) -> str:
    """What the study compares the point's group by."""
    compares = [compare for compare in point.run.study.compare if compare.group == point.group]
    return compares[0].per if compares else "disk"


def relative_throughput_percent(point: Point, reference: Point | None) -> float | None:
    """Throughput of a point in percent of its reference's, on the basis the study names.

    None in an open loop, where throughput is what was offered and says nothing of the array.
    """
    if reference is None or point.is_open:
        return None
    per = per_of(point)
    own = point.per_s("all_bytes") / share_basis(point, per)
    other = reference.per_s("all_bytes") / share_basis(reference, per)
    return 100 * own / other if other else None


def access_count_model_percent(point: Point, reference: Point | None) -> float | None:
    """The model's value for an array in percent of its value for the reference; None without a reference."""
    workload = _workload(point)
    if reference is None or point.is_open or workload.trace is not None or workload.streams is not None:
        return None
    if point.standing is not None or reference.standing is not None or point.missing or reference.missing:
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


METRICS = (
    Metric(
        kind="relative_throughput_percent",
        title="relative throughput",
        unit="%",
        meaning="throughput in percent of the reference array's at the same load, on the basis the study names",
        compute=relative_throughput_percent,
    ),
    Metric(
        kind="access_count_model_percent",
        title="simple access-count model",
        unit="%",
        meaning="relative throughput per disk if every access to a member cost the same (Chen et al. 1990, section 3)",
        compute=access_count_model_percent,
    ),
)

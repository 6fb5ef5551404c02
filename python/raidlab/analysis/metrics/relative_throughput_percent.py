"""Throughput against the reference array under the same load, per disk, per user capacity or as it is."""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point


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


METRIC = Metric(
    kind="relative_throughput_percent",
    title="relative throughput",
    unit="%",
    meaning="throughput in percent of the reference array's at the same load, on the basis the study names",
    compute=relative_throughput_percent,
)

"""What is held when a percentile of response time meets its target: the target itself, the depth, the throughput."""

from __future__ import annotations

from typing import Literal

from raidlab.analysis.metrics import Point
from raidlab.published.quantities.kind import Kind, Need, NotThereError, PointKeys, Reading, Source
from raidlab.published.quantities.metric import chosen, needs_at, reading_of
from raidlab.results.answer import HoldRow
from raidlab.study import Study
from raidlab.study.expand import load_of
from raidlab.study.workload import Hold, IdleMultiple


class Keys(PointKeys):
    """What a measure of this kind says."""

    of: Literal["target_ms", "depth", "throughput_mb_s", "throughput_per_disk_mb_s"]
    """Which number; a target that is a multiple of an idle response is worked out from that response."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number, the mean over repeats; each repeat's own beside it."""
    points = source.points_of(keys.array, keys.workload)
    if keys.of == "target_ms":
        return _target(keys, source)
    rows = [row for row in source.run.hold_rows(source.target, keys.workload) if row["array"] == keys.array]
    disks = points[0].disks if points else 1
    each = [_taken(keys, row, disks) for row in rows]
    known = tuple(one for one in each if one is not None)
    if not known or len(known) != len(each):
        return None
    return Reading(sum(known) / len(known), known)


def _taken(keys: Keys, row: HoldRow, disks: int) -> float | None:
    if keys.of == "depth":
        return row["depth"]
    rate = row["throughput_bytes_per_s"]
    if rate is None:
        return None
    return rate / 1e6 / (disks if keys.of == "throughput_per_disk_mb_s" else 1)


def _hold(keys: Keys, study: Study) -> Hold:
    for array in study.array:
        for work in study.workload:
            if (array.name, work.name) == (keys.array, keys.workload) and (hold := load_of(study, array, work).hold):
                return hold
    raise NotThereError(f"'{keys.workload}' holds no response time on '{keys.array}'")


def _target(keys: Keys, source: Source) -> Reading | None:
    hold = _hold(keys, source.run.study)
    if not isinstance(hold.target, IdleMultiple):
        return Reading(hold.target / 1e6)
    idle = chosen(source.points_of(hold.target.of, keys.workload), "idle")
    times = hold.target.times_idle

    def take(point: Point) -> float | None:
        percentile_ns = point.response.percentile_ns(hold.percentile)
        return None if percentile_ns is None else times * percentile_ns / 1e6

    return None if idle is None else reading_of(idle, take)


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """The idle response that sets a target; what a search finds is not known before."""
    if keys.of != "target_ms":
        return None
    hold = _hold(keys, study)
    if not isinstance(hold.target, IdleMultiple):
        return set()
    return needs_at({hold.target.of}, keys.workload, "idle", study)


KIND = Kind("held", "what is held at a response-time target", Keys, read, needs, metric_key="of")

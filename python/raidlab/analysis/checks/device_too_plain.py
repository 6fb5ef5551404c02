"""Does a stream lose most of a modelled disk's rate only because the model does not read ahead?

Such a model serves one request after another: the next sectors have passed when the next request comes, and a
revolution is lost. Disks that are sold read on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.point import Point
from raidlab.study.device import medium_mb_s
from raidlab.study.workload import DrawnRequests, SequentialAddress

NAME = "device_too_plain"
_LEAST_SHARE = 0.5
# Shorter requests are bound by what each of them takes, whatever the disk reads ahead.
_LEAST_BYTES = 64 << 10


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN where a stream of reads gets less than half of the medium's rate from disks that do not read ahead."""
    streams = {work.name for work in analysis.run.study.workload if _is_stream(work)}
    for target in ("sim", "emulated"):
        found = [
            (_share(point, medium), medium, point)
            for point in analysis.points
            if point.target == target and point.workload in streams and (medium := _plain_medium(analysis, point))
        ]
        if not found:
            continue
        share, medium, point = min(found, key=lambda one: one[0])
        evidence = (
            f"A stream gets {100 * share:.0f} % of the {medium:.0f} MB/s of the medium from each disk of data"
            f" ({point.array}, {point.workload}, {point.level}); the model does not read ahead."
        )
        if share < _LEAST_SHARE:
            remedy = "Take a disk that does, such as hdd-7200, or give yours a [buffer] with read_ahead."
            yield Finding(NAME, target, WARN, evidence, remedy)
        else:
            yield Finding(NAME, target, PASS, evidence)


def _is_stream(work: DrawnRequests) -> bool:
    return work.read == 1 and isinstance(work.address, SequentialAddress) and work.size.typical_bytes >= _LEAST_BYTES


def _plain_medium(analysis: Analysis, point: Point) -> float | None:
    """The medium's rate at the front in MB/s, of disks that do not read ahead; None of all others."""
    facts = analysis.run.facts
    own = facts.get("array_devices", {}).get(point.array)
    device: Mapping[str, Any] = own or facts["devices"].get(point.target) or {}
    reads_ahead = (device.get("buffer") or {}).get("read_ahead", "none") != "none"
    return None if reads_ahead else medium_mb_s(device)


def _share(point: Point, medium_mb_s: float) -> float:
    """What each member that holds data gives, copies and parity left out, of the medium's rate."""
    data_members = point.members * (point.storage_efficiency or 1.0)
    return point.per_s("all_bytes") / 1e6 / data_members / medium_mb_s

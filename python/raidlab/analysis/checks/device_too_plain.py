"""Does a stream lose most of a modelled disk's rate only because the model neither reads ahead nor caches writes?

Such a model serves one request after another: the next sectors have passed when the next request comes, and a
revolution is lost. Disks that are sold read on, and answer writes from their cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raidlab.analysis.checks.finding import PASS, WARN, Concern, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.metrics.utilisation import MEMBERS, limit_of, parts_of
from raidlab.study.device import medium_mb_s
from raidlab.study.workload import SequentialAddress, Workload

NAME = "device_too_plain"
_LEAST_SHARE = 0.5
# Shorter requests are bound by what each of them takes, whatever the disk does of itself.
_LEAST_BYTES = 64 << 10
# What disks as they are sold do of themselves: the share of reads in a stream, the key of their buffer, and in words.
_DONE = ((1.0, "read_ahead", "read ahead"), (0.0, "write_back", "cache writes"))


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN where a stream gets less than half of the medium's rate: the disks do not read ahead, or cache no writes."""
    for target in ("sim", "emulated"):
        for read, key, does in _DONE:
            streams = {work.name for work in analysis.run.study.workload if _is_stream(work, read)}
            found = [
                (point, _share(point, medium), medium)
                for point in analysis.points
                if point.target == target and point.workload in streams and (read or not _has_parity(point))
                # What gets all that was offered says nothing of how much there would be.
                if not (point.is_open and point.keeps_up)
                if point.rows_of("streams").is_empty() or _waits_for_members(point)
                if (medium := _plain_medium(analysis, point, key))
            ]
            if found:
                yield _finding(target, found, does)


def _finding(target: str, found: list[tuple[Point, float, float]], does: str) -> Finding:
    """What streams of one direction come to; told of the fewest disks: what they lose, no arrangement of them does."""
    found = sorted(found, key=lambda one: (one[1] >= _LEAST_SHARE, one[0].members, one[1]))
    point, share, medium = found[0]
    evidence = f"{_gets(point, share, medium)}; the model does not {does}"
    if share >= _LEAST_SHARE:
        return Finding(NAME, target, PASS, f"{evidence}.")
    loses = f"the model does not {does}, and a revolution is lost between one request and the next, as on no disk sold"
    # Of several loads under one workload the worst.
    slow: dict[tuple[str, str], tuple[Point, float, float]] = {}
    for one in found:
        if one[1] < _LEAST_SHARE:
            slow.setdefault((one[0].array, one[0].workload), one)
    concerns = tuple(Concern(*names, f"{_gets(*one)}; {loses}") for names, one in slow.items())
    remedy = "Take a disk that does, such as hdd-7200, or give yours a [buffer] with read_ahead and write_back."
    return Finding(NAME, target, WARN, f"{_gets(point, share, medium)}; {loses}.", remedy, concerns)


def _gets(point: Point, share: float, medium: float) -> str:
    return (
        f"A stream gets {100 * share:.0f} % of the {medium:.0f} MB/s of the medium from each disk of data"
        f" ({point.array}, {point.workload}, {point.level})"
    )


def _is_stream(work: Workload, read: float) -> bool:
    is_long = isinstance(work.address, SequentialAddress) and work.size.typical_bytes >= _LEAST_BYTES
    return work.read == read and (is_long or work.streams is not None)


def _waits_for_members(point: Point) -> bool:
    """Whether copies are as slow as the disks, and not as a tape or a link at their other end."""
    limit = limit_of(parts_of(point))
    return limit is not None and limit.name == MEMBERS


def _has_parity(point: Point) -> bool:
    """Whether a write reads first, which costs revolutions whatever the disk does."""
    borne = point.failures_borne
    return borne is None or (point.storage_efficiency or 0.0) * (borne + 1) > 1


def _plain_medium(analysis: Analysis, point: Point, key: str) -> float | None:
    """The medium's rate at the front in MB/s, of disks whose buffer does not do that; None of all others."""
    facts = analysis.run.facts
    own = facts.get("array_devices", {}).get(point.array)
    device: Mapping[str, Any] = own or facts["devices"].get(point.target) or {}
    does = (device.get("buffer") or {}).get(key, "none") != "none"
    return None if does else medium_mb_s(device)


def _share(point: Point, medium_mb_s: float) -> float:
    """What each member that holds data gives, copies and parity left out, of the medium's rate."""
    data_members = point.members * (point.storage_efficiency or 1.0)
    return point.per_s("all_bytes") / 1e6 / data_members / medium_mb_s

"""What a trial is given: a target that is open to reading, and perhaps to writing, and how to run requests on it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from raidlab.results.facts import SpeedRatio
from raidlab.run.runner import run_request
from raidlab.stats import ratio_interval
from raidlab.study.cell import ClosedLoad, DirectCell, Limit, Opaque, Span, text_of
from raidlab.study.workload import DrawnRequests, FixedSize, SequentialAddress


@dataclass(frozen=True)
class TrialTarget:
    """A target under trial."""

    path: Path
    member: Opaque
    """As the engine takes it."""
    size_bytes: int
    disks: list[str]
    """The physical disks that it lies on."""
    writable: bool
    """Whether it may be overwritten: a file of raidlab's own, or a device given up by name."""


def scan(
    target: TrialTarget,
    offset: int,
    length: int,
    *,
    block: int,
    depth: int = 1,
    seed: int = 1,
    read: float = 1.0,
    compressible_percent: int = 0,
) -> float:
    """Go once through a part of a target from front to back; the rate in bytes a second, 0 if nothing was done."""
    cell = DirectCell(
        seed=seed,
        targets=[target.member if read < 1 else read_only(target.member)],
        spans=[Span(offset_bytes=offset, size_bytes=length)],
        load=ClosedLoad(depth=depth),
        workload=DrawnRequests(
            read=read, size=FixedSize(bytes=block), address=SequentialAddress(kind="sequential", streams=1)
        ),
        measure=Limit(requests=length // block),
        compressible_percent=compressible_percent,
        # Nothing is read but what is asked for: what moves at the disks is counted.
        verify="off",
    )
    answer = run_request(text_of(cell))
    return float(answer["all"]["bytes"] / answer["elapsed_ns"] * 1e9) if answer["elapsed_ns"] else 0.0


def read_only(member: Opaque) -> Opaque:
    """A target as the engine takes it, not given up for writing."""
    return {key: value for key, value in member.items() if key != "destroy"}


def compared(own: list[float], other: list[float]) -> SpeedRatio | None:
    """How many times as fast: the median ratio of the pairs, and its 95 % interval; None where there is none."""
    interval = ratio_interval(own, other)
    if interval is None:
        return None
    ratio = statistics.median(a / b for a, b in zip(own, other, strict=True))
    return {"ratio": ratio, "low": interval[0], "high": interval[1], "pairs": len(own)}

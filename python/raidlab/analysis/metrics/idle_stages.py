"""Where the time of a lone request goes: stages that add up to its mean response time, all but one of them timed.

With one request outstanding nothing queues, and a request that touches several disks is done with the slowest of them.
The stages are those of one access: the host's work until it is issued, the controller's, the arm's and the platters'
until the first sector, the transfer; of a small write to parity also the revolution until the sectors just read come
round again, and their transfer. Added to them is what waiting for the slowest costs (*synchronisation*), which is
calculated and not timed: the mean of the longest of n times less the mean of one. Arms that always work together stay
together, so that only rotations differ; those of a part of a parity stripe do not, so that seeks differ too.

Invariants:

- Only where it holds: requests of one size, each disk visited once (or once for a read and the write of what was read).
- Nothing is fitted: that the stages add up to the response time is a test of the calculation.

Reference: Chen, Gibson, Katz, Patterson, *An Evaluation of Redundant Arrays of Disks using an Amdahl 5890*, SIGMETRICS
1990, section 7.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
import numpy.typing as npt

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.model.slowest import mean_of_slowest, rotations
from raidlab.study.cell import text_of
from raidlab.study.expand import IDLE_DEPTH
from raidlab.study.schema import Policy
from raidlab.study.target import HostCost

_REPLAYED = 20_000
# What plans are made for: any member, cut as finely as studies cut requests.
_SECTOR_BYTES, _MEMBER_BYTES = 512, 2**30
_SEED = 1


@dataclass(frozen=True)
class IdleStages:
    """The stages of a lone request, in ms, in the order in which they pass."""

    request_overhead: float
    io_cpu: float
    disconnect: float
    synchronisation: float
    connect: float
    write_back: float

    @property
    def sum(self) -> float:
        """What they add up to: the mean response time, if the calculation is right."""
        return sum(float(getattr(self, field.name)) for field in fields(self))


def idle_stages(point: Point) -> IdleStages | None:
    """The stages of a point with one request outstanding; None where they would not add up, or are not told."""
    from raidlab import _core

    try:
        return _stages(point)
    except _core.CellError:
        # A run folder may name a device, or a tree, that this engine does not know.
        return None


def _stages(point: Point) -> IdleStages | None:
    visits = _visits(point)
    overhead, disconnect, transfer, paired = (
        point.weighted_mean(f"stage_{stage}_ns") for stage in ("overhead", "disconnect", "transfer", "paired")
    )
    device = point.run.facts.get("array_devices", {}).get(point.array, point.run.facts["devices"].get(point.target))
    if visits is None or overhead is None or disconnect is None or transfer is None or paired is None or device is None:
        return None
    if visits.is_rewrite and not paired:
        # Reads and writes are two rounds, each of which waits for its slowest.
        return None
    host = _host(point)
    times = _times(json.dumps(device), visits.access_bytes if visits.is_rewrite else 0)
    gap = host.issue / 1e6
    delay = gap * (visits.disks - 1) / 2
    return IdleStages(
        request_overhead=(host.request + host.access) / 1e6 + delay,
        io_cpu=overhead / visits.disks / 1e6 + host.completion / 1e6,
        disconnect=disconnect / visits.disks / 1e6,
        synchronisation=mean_of_slowest(times, visits.disks, gap) - float(times.mean()) - delay,
        connect=transfer / visits.disks / 1e6,
        write_back=paired / visits.disks / 1e6,
    )


@dataclass(frozen=True)
class _Visits:
    """How many disks a request visits, how much is moved on each, and whether what is read is written back."""

    disks: int
    access_bytes: int
    is_rewrite: bool


def _visits(point: Point) -> _Visits | None:
    """By the array's own plan; None where a disk is visited more than once, or requests differ."""
    from raidlab import _core

    study = point.run.study
    work = next(found for found in study.workload if found.name == point.workload)
    array = next(found for found in study.array if found.name == point.array)
    is_plain = work.trace is None and work.streams is None and work.files is None and work.task is None
    is_idle = point.load == "closed" and point.depth == IDLE_DEPTH
    if point.missing or not is_idle or not is_plain or work.size.kind != "fixed" or work.read not in (0, 1):
        return None
    policy: Policy = array.policy or study.policy
    plan = _core.plan_io(
        json.dumps(point.run.tree(point.array)),
        _SECTOR_BYTES,
        _MEMBER_BYTES,
        text_of(policy),
        "read" if work.read else "write",
        0,
        work.size.bytes,
        [],
        0,
    )
    reads = [node["member"] for node in plan["nodes"] if node["op"] == "read"]
    writes = [node["member"] for node in plan["nodes"] if node["op"] == "write"]
    is_rewrite = bool(reads and writes)
    if len(set(reads)) < len(reads) or len(set(writes)) < len(writes) or (is_rewrite and set(reads) != set(writes)):
        return None
    longest = max((int(node["bytes"]) for node in plan["nodes"] if node["op"] in ("read", "write")), default=0)
    return _Visits(len(set(reads) | set(writes)), longest, is_rewrite)


def _host(point: Point) -> HostCost:
    section = getattr(point.run.study, point.target, None)
    return getattr(section, "host", None) or HostCost()


@cache
def _times(device: str, seeking_bytes: int) -> npt.NDArray[np.float64]:
    """Times until the first sector, in ms: of rotations alone, or with the seeks of requests of a size at random."""
    from raidlab import _core

    facts = _core.device_facts(device)
    if not seeking_bytes:
        # A place that may be anywhere is half a revolution away, on average.
        return rotations(2 * facts["idle_rotation_ns"] / 1e6)
    sectors = max(1, seeking_bytes // facts["sector_bytes"])
    places = max(1, facts["capacity_bytes"] // (sectors * facts["sector_bytes"]))
    rng = np.random.default_rng(_SEED)
    replayed = _core.device_replay(
        device,
        np.zeros(_REPLAYED, dtype=np.uint8),
        (rng.integers(places, size=_REPLAYED) * sectors).astype(np.uint64),
        np.full(_REPLAYED, sectors, dtype=np.uint64),
        rng.integers(10**8, size=_REPLAYED).astype(np.uint64),
        _SEED,
    )
    return (np.asarray(replayed["seek_ns"]) + np.asarray(replayed["rotation_ns"])).astype(float) / 1e6


def _metric(stage: str, title: str, meaning: str) -> Metric:
    def taken(point: Point, _reference: Point | None) -> float | None:
        found = idle_stages(point)
        return None if found is None else float(getattr(found, stage))

    compute: Callable[[Point, Point | None], float | None] = taken
    return Metric(kind=f"idle_{stage}_ms", title=title, unit="ms", meaning=meaning, compute=compute)


METRICS = (
    _metric(
        "request_overhead",
        "request overhead",
        "idle, modelled disks: the host's work before an access is issued, the mean of the accesses of a request",
    ),
    _metric("io_cpu", "I/O CPU", "idle, modelled disks: work for one access besides"),
    _metric("disconnect", "disconnect", "idle, modelled disks: seek and rotation of one access"),
    _metric(
        "synchronisation",
        "synchronisation (calculated)",
        "idle, modelled disks: what waiting for the slowest of a request's disks adds, calculated",
    ),
    _metric("connect", "connect", "idle, modelled disks: transfer of one access"),
    _metric(
        "write_back",
        "turn and write back",
        "idle, modelled disks: after a read of old data or parity, the time until its sectors are written",
    ),
    _metric(
        "sum",
        "all stages",
        "idle, modelled disks: the stages of a request added up; its mean response, if they are right",
    ),
)

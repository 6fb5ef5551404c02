"""The part of the study schema that says what is asked: sizes, places, tasks, workloads, loads.

Invariant: data, and what follows from one table alone; a ``kind`` here is a ``kind`` of the engine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from raidlab.study.words import (
    Bytes,
    Depth,
    Engines,
    Few,
    Line,
    Name,
    Rate,
    Requests,
    Share,
    Table,
    TimeNs,
    kind_from_text,
    size_from_text,
)

# Ends of streams that every target has.
ARRAY, MEMORY = "array", "memory"
Weight = Annotated[float, Field(ge=0)]


class FixedSize(Table):
    """Every request has the same size; ``size = "8KiB"`` is short for it."""

    typical: ClassVar[str] = "a request"
    kind: Literal["fixed"] = "fixed"
    bytes: Bytes
    """The size."""

    @property
    def typical_bytes(self) -> int:
        """The one size."""
        return self.bytes


class DrawnSize(Table, ABC):
    """Sizes drawn from a distribution: what other tools are told of it."""

    typical: ClassVar[str] = "a mean"

    @property
    @abstractmethod
    def typical_bytes(self) -> int:
        """The size that must fit into every volume: the mean, or the largest where there is one."""

    @abstractmethod
    def quantile(self, share: float) -> float:
        """The size below which a share of requests is, from 0 to 1, in bytes."""


class SizeOfMean(DrawnSize):
    """Sizes drawn about a mean."""

    mean: Bytes
    """The mean size."""

    @property
    def typical_bytes(self) -> int:
        """The mean."""
        return self.mean


class ExponentialSize(SizeOfMean):
    """Sizes drawn from an exponential distribution, in whole sectors, at least one."""

    kind: Literal["exponential"]

    def quantile(self, share: float) -> float:
        """The inverse of the distribution function."""
        return -self.mean * math.log1p(-share)


class NormalSize(SizeOfMean):
    """Sizes drawn from a normal distribution, in whole sectors, at least one."""

    kind: Literal["normal"]
    sd: Bytes
    """The standard deviation."""

    def quantile(self, share: float) -> float:
        """The inverse of the distribution function."""
        return NormalDist(self.mean, self.sd).inv_cdf(share)


class LognormalSize(SizeOfMean):
    """Sizes drawn from a lognormal distribution, in whole sectors, at least one."""

    kind: Literal["lognormal"]
    sigma: Annotated[float, Field(gt=0)]
    """The standard deviation of the logarithm."""

    def quantile(self, share: float) -> float:
        """The inverse of the distribution function."""
        return self.mean * math.exp(self.sigma * NormalDist().inv_cdf(share) - self.sigma * self.sigma / 2)


class TableSize(Table):
    """Sizes drawn from a table."""

    typical: ClassVar[str] = "the largest size"
    kind: Literal["table"]
    bytes: Annotated[list[Bytes], Field(min_length=1)]
    """The sizes."""
    weights: Annotated[list[Weight], Field(min_length=1)]
    """How often each size is drawn, relative to the others."""

    @property
    def typical_bytes(self) -> int:
        """The largest."""
        return max(self.bytes)


Size = Annotated[
    Annotated[
        FixedSize | ExponentialSize | NormalSize | LognormalSize | TableSize,
        Field(discriminator="kind"),
    ],
    BeforeValidator(size_from_text),
]


class UniformAddress(Table):
    """Starts drawn uniformly over the volume."""

    kind: Literal["uniform"]


class SequentialAddress(Table):
    """Each stream goes through its own part of the volume from front to back."""

    kind: Literal["sequential"]
    streams: Few = 1
    """How many streams there are."""


class ZipfAddress(Table):
    """Few places are asked for often: popularity falls as a power of the rank."""

    kind: Literal["zipf"]
    theta: Annotated[float, Field(gt=0)]
    """The power."""


class HotMembersAddress(Table):
    """The column of chunks a request starts on is drawn with unequal weights."""

    kind: Literal["hot_members"]
    weights: Annotated[list[Weight], Field(min_length=1)]
    """One a column."""
    chunk: Bytes
    """The chunk that a column is made of."""


class StridedAddress(Table):
    """Each start lies a fixed stride after the last."""

    kind: Literal["strided"]
    stride: Bytes
    """The stride."""


class MixedAddress(Table):
    """Some requests go on where the last one ended, some begin near its start, the rest anywhere."""

    kind: Literal["mixed"]
    sequential: Share
    """The share that goes on."""
    local: Share = 0.0
    """The share that begins near the start of the last; both together are at most 1."""
    local_sd: Annotated[Bytes, Field(gt=0)] | None = None
    """The standard deviation of the distance between the two starts; needed where any begin near."""
    alike: bool = False
    """Whether what goes on is as long as the last request and does the same, reads or writes."""


class ListedAddress(Table):
    """The starts of a list, one after another; from its beginning again at its end."""

    kind: Literal["listed"]
    offset_bytes: Annotated[list[Annotated[int, Field(ge=0, le=2**60, strict=True)]], Field(min_length=1)]
    """The starts in bytes, whole sectors."""


class AlignedStripeAddress(Table):
    """Requests of a stripe or more begin or end on a stripe boundary; smaller ones start on a drawn chunk."""

    kind: Literal["aligned_stripe"]
    stripe: Bytes
    """The user data of a stripe."""
    chunk: Bytes
    """One member's part of it."""


Address = Annotated[
    Annotated[
        UniformAddress
        | SequentialAddress
        | ZipfAddress
        | HotMembersAddress
        | StridedAddress
        | MixedAddress
        | ListedAddress
        | AlignedStripeAddress,
        Field(discriminator="kind"),
    ],
    BeforeValidator(kind_from_text),
]


class Step(Table):
    """One request of a task; the next begins when it is done."""

    op: Literal["read", "write"]
    """What it does."""
    size: Size | None = None
    """Its size; the workload's when left out."""
    address: Address | None = None
    """Its place; the workload's when left out."""
    same_extent_as: Annotated[int, Field(ge=0)] | None = None
    """An earlier step, counted from 0, whose place and size it repeats."""


class IdleMultiple(Table):
    """A response-time target as a multiple of the idle percentile of a reference array."""

    times_idle: Annotated[float, Field(gt=1)]
    """The multiple."""
    of: Name
    """The array whose idle response counts."""


class Hold(Table):
    """Find the load at which a percentile of response time meets a target."""

    percentile: Annotated[float, Field(gt=0, lt=100)] = 90
    """The percentile."""
    target: IdleMultiple | TimeNs
    """A time, or a multiple of an idle response: ``{ times_idle = 4, of = "raid0" }``."""
    method: Literal["search", "adjust"] = "search"
    """``search`` measures fixed depths and interpolates between them; ``adjust`` moves the depth while running."""
    max_depth: Depth = 1024
    """The deepest queue tried."""


class OpenLoop(Table):
    """Requests arrive whether or not the last one is done."""

    arrival: Literal["poisson", "uniform", "h2"] = "poisson"
    """How arrivals are spread; ``h2`` is bursty."""
    rates_per_s: Annotated[list[Rate], Field(min_length=1)]
    """The rates to run, in requests a second."""
    cv2: Annotated[float, Field(gt=1, le=1e6)] | None = None
    """For ``h2``: the squared coefficient of variation of the time between arrivals."""


class Load(Table):
    """How hard the arrays are driven: closed loop over depths, or open loop over rates; never both."""

    depths: list[Depth] = []
    """Closed loop: so many requests are always outstanding, counted over all volumes together."""
    quick_depths: list[Depth] | None = None
    """The depths that ``--quick`` runs instead."""
    hold: Hold | None = None
    """Also find the depth at which a percentile of response time meets a target."""
    open: OpenLoop | None = None
    """Open loop instead."""


class WholeFiles(Table):
    """Whole files of the workload's sizes in place of requests, in the simulator; the depth is how many read."""

    count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """How many files there are, over all volumes together; beside ``fill`` the most in the simulator, which spreads
    them over the whole of each volume, however few they are."""
    fill: Share | None = None
    """In place of ``count``: as many as take up this share of the array's user capacity."""
    numbers: Literal["drawn", "even"] = "drawn"
    """Whether each file's size is drawn, or a table's shares are kept exactly."""
    lists: Few = 1
    """Disjoint lists that the files are dealt into, reader k reading list k; with 1 every reader reads all files."""
    run: Bytes | Literal["whole"] | None = None
    """The mean length of the runs in which their blocks lie side by side, or that they lie whole; that of the target's
    file system when left out. Real file systems decide themselves."""
    order: Literal["once", "shuffled", "random"] = "shuffled"
    """A list is read once, again and again in an order shuffled anew, or drawn from with replacement."""

    def total_bytes(self, user_bytes: int, mean_bytes: int) -> int | None:
        """Bytes of all files together where `fill` says how many there are; None where `count` alone does."""
        if self.fill is None:
            return None
        filled = int(self.fill * user_bytes)
        return filled if self.count is None else min(filled, self.count * mean_bytes)


class RecordedRequests(Table):
    """What of a trace is replayed, as the engine is told it."""

    file: Annotated[Line, Field(min_length=1)]
    """The trace; a relative path counts from the study file."""
    format: (
        Literal["msr", "spc", "blkparse", "fio_v2", "fio_v3", "disksim", "disksim_validation", "alibaba", "tencent"]
        | None
    ) = None
    """Its format; told by its first lines when left out."""
    volumes: dict[Name, Annotated[int, Field(ge=0, lt=2**16)]] = {}
    """The array's volume of each of the trace's; in order of first appearance when left out."""
    others: Literal["refuse", "leave_out"] = "refuse"
    """What becomes of volumes of the trace that have none."""
    beyond: Literal["refuse", "wrap"] = "refuse"
    """What becomes of requests beyond the end of their volume; ``wrap`` takes addresses modulo its length."""
    only: Literal["all", "reads", "writes"] = "all"
    """Which requests are replayed; only with ``reads`` is nothing written."""


class TraceReplay(RecordedRequests):
    """Requests that were recorded elsewhere, in place of ``read``, ``size`` and ``address``."""

    pace: Literal["stamps", "depths"] = "stamps"
    """By its time stamps, whatever the load says; or as fast as each depth of the load allows."""
    speed: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    """How many times as fast as recorded its time stamps pass."""
    warmup: Annotated[int, Field(ge=0, le=10**12, strict=True)] = 0
    """Requests at its beginning that are replayed and not counted."""
    requests: Requests | None = None
    """How many are counted; all to its end when left out. With ``--quick`` no more than the quick budget says."""

    @property
    def writes(self) -> bool:
        """Whether it may write: what is in it is not known before it is read."""
        return self.only != "reads"


class CopyStream(Table):
    """A sequential stream of a workload: one program that copies a file from one end to another."""

    name: Name
    """What it is called in tables."""
    source: Name
    """Where its bytes come from: ``memory``, ``array``, or an ``end`` of the target by its name."""
    sink: Name
    """Where they go."""
    bytes: Bytes
    """How much it moves."""
    quick_bytes: Bytes | None = None
    """How much with ``--quick`` on the real clock; as much when left out. In the simulator all of it is moved."""
    volume: Annotated[int, Field(ge=0, lt=2**16)] = 0
    """Which volume of the array its file is on, counted from 0."""
    begin: Share = 0.0
    """Where on the volume files begin, as a share of it; one stream's file lies behind the other's."""
    buffers: Few = 1
    """Blocks under way between the ends; with 1 reading and writing take turns."""
    direct: bool = False
    """Past the file system: each block is one request, nothing is read ahead, written behind or copied (modelled)."""
    request: Bytes | None = None
    """What is asked of the array at a time; the file system's cluster when left out (modelled)."""

    @property
    def reads(self) -> bool:
        """Whether it reads from the array."""
        return self.source == ARRAY


class VolumeShares(Table):
    """Over separate volumes: each keeps its own share of the requests outstanding."""

    shares: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """One a volume, in any unit; in an open loop shares of the requests."""


class _Named(Table):
    name: Name
    """How it is called in tables and figures."""


class DrawnRequests(Table):
    """What a workload says of requests that are drawn, as the engine is told it."""

    read: Share
    """The share of requests that read, from 0 to 1."""
    size: Size
    """How large requests are."""
    address: Address = UniformAddress(kind="uniform")
    """Where they start."""
    align: Bytes | Literal["sector"] | None = None
    """What starts are aligned to; the size where it is fixed, else the sector, when left out."""
    volumes: Literal["uniform", "even"] | VolumeShares = "uniform"
    """Over separate volumes: each drawn alike, each with the same number of requests outstanding, or with its share of
    them: ``{ shares = [3, 1] }``."""
    span: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The share of each volume that is used, from its front: 0.5 is half a stroke."""
    task: list[Step] | None = None
    """Requests issued one after another as one task; a task is a single request when left out."""

    def align_bytes(self, sector_bytes: int) -> int:
        """What starts are aligned to: as said; else a fixed size, as fio does; else the sector."""
        if isinstance(self.align, int):
            return self.align
        return self.size.bytes if self.align is None and self.size.kind == "fixed" else sector_bytes


class Workload(DrawnRequests, _Named):
    """What is asked of every array."""

    files: WholeFiles | None = None
    """Whole files of these sizes in place of requests."""
    trace: TraceReplay | None = None
    """Requests recorded elsewhere in place of drawn ones; ``read``, ``size`` and ``address`` are then not given."""
    streams: Annotated[list[CopyStream], Field(min_length=1)] | None = None
    """Streams in place of requests, all started together; ``size`` is their block, the depth how many of each run."""
    count: Requests | None = None
    """So many requests a slot of the load, from a cold start, none discarded; as the target says when left out."""
    arrays: list[Name] | None = None
    """The arrays it is run on; all when left out."""
    on: Engines | None = None
    """The targets it is run on; all when left out."""
    load: Load | None = None
    """A load of its own; the study's when left out."""

    def runs_on(self, engine: str) -> bool:
        """Whether it is run on a target."""
        return self.on is None or engine in self.on

    @model_validator(mode="before")
    @classmethod
    def _recorded(cls, value: Any) -> Any:
        """Fill in what nobody looks at where a trace is replayed; refuse what would be drawn beside it."""
        if not isinstance(value, dict) or value.get("trace") is None:
            return value
        given = [key for key in _DRAWN if value.get(key) is not None]
        if given:
            raise ValueError(f"a trace stands in place of {', '.join(given)}")
        trace = value["trace"]
        only = trace.only if isinstance(trace, TraceReplay) else trace.get("only") if isinstance(trace, dict) else None
        return {**value, "read": 1.0 if only == "reads" else 0.0, "size": {"kind": "fixed", "bytes": "4KiB"}}


# What a workload says of requests that are drawn.
_DRAWN = ("read", "size", "address", "align", "span", "task", "files", "streams", "count")

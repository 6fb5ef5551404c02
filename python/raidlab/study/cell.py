"""A cell as it crosses to the engine: the study's own tables, and beside them what is worked out from the study.

Invariants:

- A key that a study has is the study's here and the engine's there: it crosses as it stands, under the same name.
- A quantity is a number: bytes, or nanoseconds. A key of the study says no unit, for its value does; a key that only a
  cell has ends in it.
- What is None is not written: the engine then takes its own default.
- ``tests/python/test_cell_schema.py`` holds these tables equal to the structs that the engine reads them into.

Reference: ``docs/internals/cell-contract.md``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from raidlab.study.schema import Policy
from raidlab.study.target import (
    CacheSizes,
    FileSystemShape,
    HostCost,
    PairPricing,
    ParityWork,
    PathVisit,
    Servers,
    TapeDrive,
)
from raidlab.study.words import Table
from raidlab.study.workload import DrawnRequests, RecordedRequests

# What the engine judges, and Python only hands on: an arrangement, a device's parameters, a target.
Opaque = dict[str, Any]


class Limit(Table):
    """When warm-up, or measuring, is over."""

    requests: int | None = None
    duration: int | None = None


class ClosedLoad(Table):
    """One of the study's ``depths``."""

    kind: Literal["closed"] = "closed"
    depth: int


class PoissonArrival(Table):
    """One of the study's ``rates_per_s``."""

    kind: Literal["poisson"] = "poisson"
    rate_per_s: float


class UniformArrival(Table):
    """One of the study's ``rates_per_s``, evenly spaced."""

    kind: Literal["uniform"] = "uniform"
    rate_per_s: float


class BurstyArrival(Table):
    """One of the study's ``rates_per_s``, in bursts."""

    kind: Literal["h2"] = "h2"
    rate_per_s: float
    cv2: float


class RecordedArrival(Table):
    """By the time stamps of a trace."""

    kind: Literal["trace"] = "trace"
    speed: float = 1.0


Arrival = Annotated[
    PoissonArrival | UniformArrival | BurstyArrival | RecordedArrival,
    Field(discriminator="kind"),
]


class OpenLoad(Table):
    """An open loop at one rate."""

    kind: Literal["open"] = "open"
    arrival: Arrival
    max_in_flight: int | None = None


class HeldLoad(Table):
    """A percentile that is held while the depth moves."""

    kind: Literal["hold"] = "hold"
    percentile: float
    target: int
    initial_depth: int
    max_depth: int


CellLoad = Annotated[ClosedLoad | OpenLoad | HeldLoad, Field(discriminator="kind")]


class CellPolicy(Policy):
    """An array's policy; how much of a long request is planned at once has the engine's default."""

    window_bytes: int | None = None
    windows_in_flight: int | None = None


class CellCache(CacheSizes):
    """A controller's cache of the volumes of one array."""

    only: list[int] | None = None
    copy_path: list[PathVisit] = []


class CellPath(Table):
    """What lies between clients and disks, for one array: ``each`` and ``arrays`` of a study are settled."""

    station: list[Servers] = []
    request_path: list[PathVisit] = []
    member_path: list[PathVisit] = []
    transfer_quantum: int | None = None
    write_quantum: int | None = None
    member_quantum: int | None = None
    parity: ParityWork | None = None
    ways: list[list[PathVisit]] = []
    end_quantum: int | None = None
    cache: list[CellCache] = []


class CellFiles(Table):
    """Whole files in place of requests; ``fill`` of a study is ``total_bytes`` here."""

    numbers: Literal["drawn", "even"] = "drawn"
    count: int | None = None
    total_bytes: int | None = None
    lists: int = 1
    order: Literal["once", "shuffled", "random"] = "once"
    file_system: FileSystemShape | None = None


class MemoryEnd(Table):
    """The program's own memory."""

    kind: Literal["memory"] = "memory"


class ArrayEnd(Table):
    """A file on a modelled array; ``begin`` of a study is ``offset_bytes`` here."""

    kind: Literal["array"] = "array"
    volume: int = 0
    offset_bytes: int = 0
    request: int | None = None
    ahead_bytes: int = 0
    file_per_kib: int = 0


class TapeEnd(TapeDrive):
    """A tape drive of the study."""

    kind: Literal["tape"] = "tape"


class WayEnd(Table):
    """An end behind stations: the number of its way in the path."""

    kind: Literal["way"] = "way"
    way: int


StreamEnd = Annotated[MemoryEnd | ArrayEnd | TapeEnd | WayEnd, Field(discriminator="kind")]


class SimulatedStream(Table):
    """A stream between modelled ends; its block is the workload's ``size``."""

    name: str
    source: StreamEnd
    sink: StreamEnd
    block_bytes: int
    bytes: int
    buffers: int = 1


class ArrayCell(Table):
    """A cell of the engines ``sim`` and ``live``: an array, and what is asked of it."""

    engine: Literal["sim", "live"]
    seed: int
    sector_bytes: int | None = None
    tree: Opaque
    policy: CellPolicy = CellPolicy()
    members: list[Opaque]
    missing: list[int] = []
    destroy: list[str] = []
    content: Literal["random", "verify"] = "random"
    faults: list[Opaque] = []
    speed: float | None = None
    pair_pricing: PairPricing | None = None
    host: HostCost | None = None
    path: CellPath | None = None
    load: CellLoad
    workload: DrawnRequests | None = None
    trace: RecordedRequests | None = None
    files: CellFiles | None = None
    streams: list[SimulatedStream] | None = None
    verify: Literal["full", "sample", "off"] | None = None
    warmup: Limit = Limit()
    measure: Limit


class Span(Table):
    """The part of a target that is used."""

    offset_bytes: int = 0
    size_bytes: int | None = None


class DirectCell(Table):
    """A cell of the engine ``direct``: plain targets, one a volume."""

    engine: Literal["direct"] = "direct"
    seed: int
    targets: list[Opaque]
    spans: list[Span] = []
    workers: int = 1
    cpus: list[int] = []
    interface: Literal["auto", "io_uring", "threads"] = "auto"
    buffered: bool = False
    busy: bool = False
    poll_completions: bool = False
    batch: int | None = None
    compressible_percent: int = 0
    sector_bytes: int | None = None
    destroy: list[str] = []
    load: CellLoad
    workload: DrawnRequests
    verify: Literal["full", "sample", "off"] | None = None
    warmup: Limit = Limit()
    measure: Limit

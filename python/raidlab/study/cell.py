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

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from raidlab.study.schema import MemberEvent, Policy, Rebuild
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
from raidlab.study.workload import DrawnRequests, RecordedRequests, Size

# What the engine judges, and Python only hands on: an arrangement, a device's parameters, a target.
Opaque = dict[str, Any]


@dataclass(frozen=True)
class DerivedFrom:
    """On a key that a cell has and a study has not: the study's key that it is worked out from."""

    key: str


RatePerS = Annotated[float, DerivedFrom("rates_per_s")]


# The text of each key of a cell.
Parts = dict[str, str]


def text_of(cell: Table) -> str:
    """The JSON text of a cell, with sorted keys; what is None is not written."""
    return joined(parts_of(cell))


def parts_of(cell: Table) -> Parts:
    """The texts of a cell's keys."""
    found = cell.model_dump(exclude_none=True)
    return {key: json.dumps(value, sort_keys=True, default=os.fspath) for key, value in found.items()}


def joined(parts: Parts) -> str:
    """The text of a cell whose keys have these texts."""
    return "{" + ", ".join([f'"{key}": {parts[key]}' for key in sorted(parts)]) + "}"


class Limit(Table):
    """When warm-up, or measuring, is over."""

    requests: int | None = None
    duration: int | None = None


class ClosedLoad(Table):
    """One of the study's ``depths``."""

    kind: Literal["closed"] = "closed"
    depth: Annotated[int, DerivedFrom("depths")]


class PoissonArrival(Table):
    """One of the study's ``rates_per_s``."""

    kind: Literal["poisson"] = "poisson"
    rate_per_s: RatePerS


class UniformArrival(Table):
    """One of the study's ``rates_per_s``, evenly spaced."""

    kind: Literal["uniform"] = "uniform"
    rate_per_s: RatePerS


class BurstyArrival(Table):
    """One of the study's ``rates_per_s``, in bursts."""

    kind: Literal["h2"] = "h2"
    rate_per_s: RatePerS
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
    total_bytes: Annotated[int | None, DerivedFrom("fill")] = None
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
    offset_bytes: Annotated[int, DerivedFrom("begin")] = 0
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


SimulatedEnd = Annotated[MemoryEnd | ArrayEnd | TapeEnd | WayEnd, Field(discriminator="kind")]


class SimulatedStream(Table):
    """A stream between modelled ends; its block is the workload's ``size``."""

    name: str
    source: SimulatedEnd
    sink: SimulatedEnd
    block_bytes: Annotated[int, DerivedFrom("size")]
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
    area_bytes: int | None = None
    missing: list[int] = []
    events: list[MemberEvent] = []
    rebuild: Rebuild | None = None
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
    fill_caches: bool | None = None
    measure: Limit


def study_key(key: str) -> str:
    """The key of a study that a key of a simulated or live cell is, or is worked out from."""
    tables = (ClosedLoad, PoissonArrival, CellFiles, ArrayEnd, SimulatedStream)
    fields = [table.model_fields[key] for table in tables if key in table.model_fields]
    return next((mark.key for field in fields for mark in field.metadata if isinstance(mark, DerivedFrom)), key)


class Span(Table):
    """The part of a target that is used."""

    offset_bytes: int = 0
    size_bytes: int | None = None


class Drive(Table):
    """How the direct engine drives its targets.

    There are ``workers`` threads, bound to the processors ``cpus`` if any are named. They may go through the page cache
    (``buffered``), watch for completions instead of sleeping (``busy``), ask the device for them, and submit or take at
    most a ``batch`` in one turn.
    """

    workers: int = 1
    cpus: list[int] = []
    interface: Literal["auto", "io_uring", "threads"] = "auto"
    buffered: bool = False
    busy: bool = False
    poll_completions: bool = False
    batch: int | None = None
    compressible_percent: int = 0
    verify: Literal["full", "sample", "off"] | None = "sample"


class DirectCell(Drive):
    """A cell of the engine ``direct``: plain targets, one a volume."""

    engine: Literal["direct"] = "direct"
    seed: int
    targets: list[Opaque]
    spans: list[Span] = []
    verify: Literal["full", "sample", "off"] | None = None
    sector_bytes: int | None = None
    destroy: list[str] = []
    load: CellLoad
    workload: DrawnRequests
    begin_at_unix_ns: int | None = None
    warmup: Limit = Limit()
    measure: Limit


class NullEnd(Table):
    """Hands over and takes at once: what remains is the meter."""

    kind: Literal["null"] = "null"


class BufferEnd(MemoryEnd):
    """Memory of this process, used round and round; 64 MiB when left out."""

    size_bytes: int | None = None


class FileEnd(Table):
    """A part of a regular file; written only if raidlab made it, made if it is not there."""

    kind: Literal["file"] = "file"
    path: Path
    offset_bytes: int = 0
    buffered: bool = False


class BlockEnd(Table):
    """A part of a block device; written only if it is given up, here or in the cell's ``destroy``."""

    kind: Literal["block"] = "block"
    path: Path
    offset_bytes: int = 0
    buffered: bool = False
    destroy: bool = False


class VolumeEnd(Table):
    """A part of a volume of one of the cell's arrays, by its number."""

    kind: Literal["array"] = "array"
    array: int = 0
    volume: int = 0
    offset_bytes: int = 0


class ConnectionEnd(Table):
    """Another machine, by a connection of this process that is open already; a sink only."""

    kind: Literal["connection"] = "connection"
    descriptor: int


LiveEnd = Annotated[
    NullEnd | BufferEnd | FileEnd | BlockEnd | VolumeEnd | TapeEnd | ConnectionEnd, Field(discriminator="kind")
]


class LiveStream(Table):
    """A stream between any two ends.

    It moves ``bytes``, or ``count`` blocks, at a pace of ``rate_mb_s`` or as fast as the ends allow. With one of the
    ``buffers`` the ends take turns.
    """

    name: str
    source: LiveEnd
    sink: LiveEnd
    block_bytes: int = 256 * 1024
    bytes: int | None = None
    count: int | None = None
    rate_mb_s: float | None = None
    buffers: int = 2


class LiveArray(Table):
    """An array that streams use."""

    tree: Opaque
    policy: CellPolicy = CellPolicy()
    members: list[Opaque]
    missing: list[int] = []
    sector_bytes: int | None = None


class StreamsCell(Table):
    """A cell of the engine ``streams``: all begin together, and none begins a block after ``duration``.

    Memory and tapes hand over ``data``, round and round; made up, incompressible and unrepeated when left out. With
    ``content = "verify"`` what arrived is compared with what was sent: for testing, not for measuring.
    """

    engine: Literal["streams"] = "streams"
    seed: int = 1
    streams: list[LiveStream]
    arrays: list[LiveArray] = []
    destroy: list[Path] = []
    data: Path | None = None
    content: Literal["random", "verify"] = "random"
    begin_at_unix_ns: int | None = None
    duration: int | None = None


class MadeFiles(Table):
    """Files that raidlab makes in a subdirectory of its own, spread evenly over the directories.

    There are ``count`` of them, or as many as fit into ``total_bytes``; with ``numbers = "even"`` a table's shares are
    kept exactly. What is to be kept is there for the next measurement of the same files.
    """

    kind: Literal["made"] = "made"
    directories: list[Path]
    sizes: Size
    numbers: Literal["drawn", "even"] = "drawn"
    count: int | None = None
    total_bytes: int | None = None
    sync: Literal["each", "end"] = "each"
    keep: bool = False


class GivenFiles(Table):
    """Files that exist; they are only read."""

    kind: Literal["list"] = "list"
    paths: list[Path]


class FilesWarmup(Table):
    """Files read first that do not count, over all readers together."""

    files: int = 0


class FilesMeasure(Table):
    """When reading ends: after so many files of all readers together; no file is begun after ``duration``."""

    files: int | None = None
    duration: int | None = None


class FilesCell(Table):
    """A cell of the engine ``files``: so many ``readers`` at the same time; with 0 files are only written.

    Files are dealt into ``lists``, reader k reading list k; with one every reader reads all. ``drop_caches`` (root)
    drops inodes and directory entries of the whole system too, before reading.
    """

    engine: Literal["files"] = "files"
    seed: int = 1
    files: Annotated[MadeFiles | GivenFiles, Field(discriminator="kind")]
    readers: int = 1
    lists: int = 1
    order: Literal["once", "shuffled", "random"] = "once"
    block_bytes: int | Literal["whole"] = 128 * 1024
    io: Literal["auto", "direct", "buffered"] = "auto"
    verify: Literal["full", "sample", "off"] = "sample"
    drop_caches: bool = False
    begin_at_unix_ns: int | None = None
    warmup: FilesWarmup = FilesWarmup()
    measure: FilesMeasure = FilesMeasure()

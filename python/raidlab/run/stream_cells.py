"""Cells of streams: programs that copy files from one end to another, modelled or for real.

Invariants:

- Each stream has a file of its own on the array; files lie one behind the other from where the study has them begin.
- Another machine is connected for the cell that is run, and for no longer: the number of a connection is put in then.
- Streams have no warm-up: they begin together and end when they have moved what they were to move.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from raidlab.run.data_path import way
from raidlab.run.members import device_bytes
from raidlab.study import Cell, LoadedStudy
from raidlab.study.cell import (
    ArrayCell,
    ArrayEnd,
    BufferEnd,
    CellPath,
    CellPolicy,
    ConnectionEnd,
    Limit,
    LiveArray,
    LiveEnd,
    LiveStream,
    MemoryEnd,
    Opaque,
    SimulatedEnd,
    SimulatedStream,
    StreamsCell,
    TapeEnd,
    VolumeEnd,
    WayEnd,
)
from raidlab.study.expand import NULL
from raidlab.study.target import End, FileSystem, Modelled, PathVisit
from raidlab.study.words import OFF_LIVE, is_simulated
from raidlab.study.workload import ARRAY, MEMORY, CopyStream

# Files begin at multiples of this.
_GRAIN_BYTES = 1024**2
# No stream that makes sense takes longer on the virtual clock: some weeks.
_LONGEST_NS = 2 * 10**15

# A connection that is opened when the cell is run.
NOT_YET = ConnectionEnd(descriptor=-1)


class CopySink(Protocol):
    """A machine that takes copies."""

    @property
    def name(self) -> str:
        """As the user named it."""

    def taking(self, total: int) -> AbstractContextManager[int]:
        """A connection whose other end takes so many bytes and says when it has them for good: its descriptor."""


def streams_of(cell: Cell) -> list[CopyStream]:
    """All streams of a cell: each of the workload's as often as the load is deep."""
    assert cell.workload.streams is not None, "the caller looked"
    return [stream for _copy in range(max(cell.load.depth, 1)) for stream in cell.workload.streams]


def with_streams(
    request: ArrayCell, loaded: LoadedStudy, cell: Cell, section: Modelled, *, sector_bytes: int, quick: bool
) -> ArrayCell:
    """A simulated cell with its streams, the ways in its path, and no warm-up."""
    ends = {end.name: end for end in section.end}
    system = section.file_system or FileSystem()
    per_kib = section.host.file_per_kib if section.host is not None else 0
    ways: list[list[PathVisit]] = []
    streams = []
    for number, (stream, offset) in enumerate(_placed(loaded, cell, request.members, sector_bytes, quick=quick)):
        known: dict[str, SimulatedEnd] = {MEMORY: MemoryEnd(), ARRAY: _file(stream, offset, system, per_kib)}
        for name in sorted({stream.source, stream.sink} - set(known)):
            end = ends[name]
            if end.path is None:
                known[name] = _tape(end)
                continue
            ways.append(way(section, end.path, cell.array, number))
            known[name] = WayEnd(way=len(ways) - 1)
        streams.append(
            SimulatedStream(
                name=stream.name,
                source=known[stream.source],
                sink=known[stream.sink],
                block_bytes=_block_bytes(cell),
                bytes=stream.bytes,
                buffers=stream.buffers,
            )
        )
    path = (request.path or CellPath()).model_copy(update={"ways": ways, "end_quantum": section.end_quantum})
    limits = {"warmup": Limit(), "measure": Limit(duration=_LONGEST_NS)}
    return request.model_copy(update={"streams": streams, "path": path, **limits})


def live_streams(
    loaded: LoadedStudy, cell: Cell, policy: CellPolicy, members: list[Opaque], sector_bytes: int, *, quick: bool
) -> StreamsCell:
    """The cell of streams on real or emulated members."""
    target = "live" if cell.target == NULL else cell.target
    ends: dict[str, LiveEnd] = {MEMORY: BufferEnd()}
    for end in loaded.study.ends_on(target):
        ends[end.name] = _tape(end) if end.machine is None else NOT_YET
    placed = _placed(loaded, cell, members, sector_bytes, quick=quick)
    names = [stream.name for stream, _ in placed]
    streams = []
    for index, (stream, offset) in enumerate(placed):
        known = {**ends, ARRAY: VolumeEnd(volume=stream.volume, offset_bytes=offset)}
        twin = f" #{names[: index + 1].count(stream.name)}" if names.count(stream.name) > 1 else ""
        streams.append(
            LiveStream(
                name=f"{stream.name}{twin}",
                source=known[stream.source],
                sink=known[stream.sink],
                block_bytes=_block_bytes(cell),
                bytes=stream.bytes,
                buffers=stream.buffers,
            )
        )
    array = LiveArray(
        tree=loaded.geometry.trees[cell.array.name],
        policy=policy,
        members=members,
        missing=cell.array.missing,
        sector_bytes=sector_bytes,
    )
    # What goes past the array, to measure a stage of the path alone, does not open it.
    is_used = any(ARRAY in (stream.source, stream.sink) for stream, _ in placed)
    return StreamsCell(
        seed=cell.seed,
        arrays=[array] if is_used else [],
        streams=streams,
        # Emulated disks keep nothing that could be compressed.
        data=loaded.sample_file() if target == "live" else None,
    )


def needs_machine(loaded: LoadedStudy, cell: Cell) -> bool:
    """Whether a stream of the cell goes to another machine."""
    section = loaded.study.live if cell.target == "live" else loaded.study.emulated
    machines = {end.name for end in section.end if end.machine is not None} if not is_simulated(cell.target) else set()
    return any(stream.sink in machines for stream in cell.workload.streams or ())


@contextmanager
def connected(request: str, machine: CopySink | None) -> Iterator[str]:
    """The request with a connection for each stream that goes to the machine.

    Raises `CellFailedError` when the machine does not take it.
    """
    if machine is None or f'"{NOT_YET.kind}"' not in request:
        yield request
        return
    document = json.loads(request)
    with ExitStack() as connections:
        for stream in document.get("streams", []):
            if stream["sink"] == NOT_YET.model_dump():
                stream["sink"]["descriptor"] = connections.enter_context(machine.taking(stream["bytes"]))
        yield json.dumps(document, sort_keys=True)


def _placed(
    loaded: LoadedStudy, cell: Cell, members: list[Opaque], sector_bytes: int, *, quick: bool
) -> list[tuple[CopyStream, int]]:
    """Every stream, as long as it is here, with the place of its file on the array; streams without one are at 0."""
    sizes = loaded.geometry.facts(cell.array.name, member_bytes(loaded, cell, members), sector_bytes)["volume_bytes"]
    volume_bytes = [int(size) for size in sizes] if isinstance(sizes, list | tuple) else [int(sizes)]
    taken: dict[int, int] = {}
    placed = []
    for one in streams_of(cell):
        stream = one.model_copy(update={"bytes": amount(one, loaded, cell, quick=quick)})
        if ARRAY not in (stream.source, stream.sink):
            placed.append((stream, 0))
            continue
        of_volume = volume_bytes[min(stream.volume, len(volume_bytes) - 1)]
        begin = int(stream.begin * of_volume) // _GRAIN_BYTES * _GRAIN_BYTES
        placed.append((stream, begin + taken.get(stream.volume, 0)))
        length = -(-stream.bytes // _GRAIN_BYTES) * _GRAIN_BYTES
        taken[stream.volume] = taken.get(stream.volume, 0) + length
    return placed


def amount(stream: CopyStream, loaded: LoadedStudy, cell: Cell, *, quick: bool) -> int:
    """How much a stream moves on the cell's target: all of it, a share in whole blocks, or what ``--quick`` says."""
    if is_simulated(cell.target):
        # A short stream would be another: more of it stays in caches. On a virtual clock all of it costs a second.
        return stream.bytes
    if quick and stream.quick_bytes is not None:
        return stream.quick_bytes
    assert cell.workload.size.kind == "fixed", "checked when the study was loaded"
    share = (loaded.study.emulated if cell.target == "emulated" else loaded.study.live).amounts
    block = cell.workload.size.bytes
    return stream.bytes if share == 1 else max(1, round(stream.bytes * share / block)) * block


def member_bytes(loaded: LoadedStudy, cell: Cell, members: list[Opaque]) -> int:
    """The size of the smallest of an array's members."""
    if cell.target in OFF_LIVE:
        return loaded.geometry.device(cell.target, cell.array.name).capacity_bytes
    # Block devices keep their own size.
    return min(
        int(member["size_bytes"]) if "size_bytes" in member else device_bytes("--on", Path(member["path"]))
        for member in members
    )


def _block_bytes(cell: Cell) -> int:
    assert cell.workload.size.kind == "fixed", "checked when the study was loaded"
    return cell.workload.size.bytes


def _file(stream: CopyStream, offset: int, system: FileSystem, per_kib_ns: int) -> ArrayEnd:
    if stream.direct:
        return ArrayEnd(volume=stream.volume, offset_bytes=offset, request=stream.request)
    request = stream.request or system.cluster
    ahead = system.read_ahead_clusters if stream.reads else system.write_behind_clusters
    return ArrayEnd(
        volume=stream.volume,
        offset_bytes=offset,
        request=request,
        ahead_bytes=ahead * request,
        file_per_kib=per_kib_ns,
    )


def _tape(end: End) -> TapeEnd:
    assert end.tape is not None, "checked when the study was loaded"
    # Its values have been read from the file already.
    return TapeEnd.model_construct(kind="tape", **dict(end.tape))

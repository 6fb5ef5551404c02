"""Cells of streams: programs that copy files from one end to another, modelled or for real.

Invariants:

- Each stream has a file of its own on the array; files lie one behind the other from where the study has them begin.
- What a stream did is told in the same words on both clocks; an answer of the engine ``streams`` becomes one of a cell.
- Streams have no warm-up: they begin together and end when they have moved what they were to move.
"""

from __future__ import annotations

from typing import Any

from raidlab.histogram import Histogram, Times
from raidlab.results.answer import CellAnswer, CheckAnswer, StreamAnswer, StreamSide, Tally
from raidlab.run.data_path import way
from raidlab.run.far import NOT_YET
from raidlab.run.runner import Answer
from raidlab.study import Cell, LoadedStudy
from raidlab.study.cell import (
    ArrayEnd,
    CellPath,
    Limit,
    MemoryEnd,
    SimulatedStream,
    StreamEnd,
    TapeEnd,
    WayEnd,
)
from raidlab.study.expand import NULL
from raidlab.study.schema import Policy
from raidlab.study.target import End, FileSystem, Modelled, PathVisit
from raidlab.study.workload import ARRAY, MEMORY, CopyStream

# Files begin at multiples of this.
_GRAIN_BYTES = 1024**2
# Targets on the virtual clock.
MODELLED = ("sim", "original")
# No stream that makes sense takes longer on the virtual clock: some weeks.
_LONGEST_NS = 2 * 10**15


def streams_of(cell: Cell) -> list[CopyStream]:
    """All streams of a cell: each of the workload's as often as the load is deep."""
    assert cell.workload.streams is not None, "the caller looked"
    return [stream for _copy in range(max(cell.load.depth, 1)) for stream in cell.workload.streams]


def simulated_streams(
    loaded: LoadedStudy, cell: Cell, section: Modelled, path: CellPath | None, sector_bytes: int, *, quick: bool
) -> dict[str, Any]:
    """What streams change in a simulated cell: ``streams``, the ways in ``path``, and no warm-up.

    Parameters
    ----------
    loaded : LoadedStudy
    cell : Cell
    section : Modelled
        What the study says of the target.
    path : CellPath or None
        The stations and paths of the cell.
    sector_bytes : int
    quick : bool
    """
    ends = {end.name: end for end in section.end}
    system = section.file_system or FileSystem()
    per_kib = section.host.file_per_kib if section.host is not None else 0
    ways: list[list[PathVisit]] = []
    streams = []
    for number, (stream, offset) in enumerate(_placed(loaded, cell, sector_bytes, quick=quick)):
        known: dict[str, StreamEnd] = {MEMORY: MemoryEnd(), ARRAY: _file(stream, offset, system, per_kib)}
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
    path = (path or CellPath()).model_copy(update={"ways": ways, "end_quantum": section.end_quantum})
    return {"streams": streams, "path": path, "warmup": Limit(), "measure": Limit(duration=_LONGEST_NS)}


def live_streams(
    loaded: LoadedStudy,
    cell: Cell,
    policy: Policy,
    members: list[dict[str, Any]],
    sector_bytes: int,
    *,
    quick: bool,
) -> dict[str, Any]:
    """The request for a cell of streams on real or emulated members, for the engine ``streams``."""
    study = loaded.study
    target = "live" if cell.target == NULL else cell.target
    ends = {end.name: end for end in study.ends_on(target)}
    member_bytes = _member_bytes(loaded, cell, members)
    texts = []
    for stream, offset in _placed(loaded, cell, sector_bytes, quick=quick, member_bytes=member_bytes):
        array = {"kind": "array", "array": 0, "volume": stream.volume, "offset_bytes": offset}
        others = {name: _tape(end).model_dump() if end.machine is None else dict(NOT_YET) for name, end in ends.items()}
        known: dict[str, dict[str, Any]] = {MEMORY: {"kind": "memory"}, ARRAY: array, **others}
        texts.append(
            {
                "name": stream.name,
                "source": known[stream.source],
                "sink": known[stream.sink],
                "block_bytes": _block_bytes(cell),
                "bytes": stream.bytes,
                "buffers": stream.buffers,
            }
        )
    names = [text["name"] for text in texts]
    for index, text in enumerate(texts):
        if names.count(text["name"]) > 1:
            text["name"] = f"{text['name']} #{names[: index + 1].count(text['name'])}"
    array_text = {
        "tree": loaded.geometry.trees[cell.array.name],
        "policy": policy.model_dump(),
        "members": members,
        "sector_bytes": sector_bytes,
    }
    # What goes past the array, to measure a stage of the path alone, does not open it.
    is_used = any(ARRAY in (stream.source, stream.sink) for stream in streams_of(cell))
    request = {"engine": "streams", "seed": cell.seed, "arrays": [array_text] if is_used else [], "streams": texts}
    # Emulated disks keep nothing that could be compressed.
    sample = loaded.sample_file() if target == "live" else None
    return request if sample is None else request | {"data": str(sample)}


def needs_machine(loaded: LoadedStudy, cell: Cell) -> bool:
    """Whether a stream of the cell goes to another machine."""
    section = loaded.study.live if cell.target == "live" else loaded.study.emulated
    machines = {end.name for end in section.end if end.machine is not None} if cell.target not in MODELLED else set()
    return any(stream.sink in machines for stream in cell.workload.streams or ())


def answer_of_streams(answer: Answer) -> CellAnswer:
    """An answer of the engine ``streams`` as that of a cell: what passed the array is what was read and written.

    The times of reads and writes are those of the streams' calls at the array.
    """
    kinds = {(end["stream"], end["side"]): end["kind"] for end in answer["facts"]["endpoints"]}
    read, write = _tally(answer, kinds, "source"), _tally(answer, kinds, "sink")
    array = (answer["facts"]["arrays"] or [{}])[0]
    streams: list[StreamAnswer] = [
        {
            "name": stream["name"].partition(" #")[0],
            "from": kinds[number, "source"],
            "to": kinds[number, "sink"],
            "bytes": stream["bytes"],
            "elapsed_ns": stream["elapsed_ns"],
            "sync_ns": stream["sync_ns"],
            "bound_by": stream["bound_by"],
            "source": _side(stream["source"]),
            "sink": _side(stream["sink"]),
        }
        for number, stream in enumerate(answer["streams"])
    ]
    return {
        "engine": "streams",
        "seed": answer["seed"],
        "elapsed_ns": answer["elapsed_ns"],
        "read": read,
        "write": write,
        "all": _added(read, write),
        "members": array.get("members", []),
        "stations": [],
        "streams": streams,
        "facts": {"targets": array.get("targets", []), "failed_members": array.get("failed_members", [])},
        "checks": [*answer.get("checks", []), *_page_cache(answer), *_sample(answer)],
        "stopped_by": answer["stopped_by"],
        "interrupted": answer["interrupted"],
    }


def _placed(
    loaded: LoadedStudy, cell: Cell, sector_bytes: int, *, quick: bool, member_bytes: int | None = None
) -> list[tuple[CopyStream, int]]:
    """Every stream, as long as it is here, with the place of its file on the array; streams without one are at 0."""
    if member_bytes is None:
        member_bytes = loaded.geometry.devices[cell.target].capacity_bytes
    sizes = loaded.geometry.facts(cell.array.name, member_bytes, sector_bytes)["volume_bytes"]
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
    if quick and stream.quick_bytes is not None:
        return stream.quick_bytes
    if cell.target in MODELLED:
        return stream.bytes
    assert cell.workload.size.kind == "fixed", "checked when the study was loaded"
    share = (loaded.study.emulated if cell.target == "emulated" else loaded.study.live).amounts
    block = cell.workload.size.bytes
    return stream.bytes if share == 1 else max(1, round(stream.bytes * share / block)) * block


def _member_bytes(loaded: LoadedStudy, cell: Cell, members: list[dict[str, Any]]) -> int:
    if cell.target == "emulated":
        return loaded.geometry.devices["emulated"].capacity_bytes
    sizes = [int(member["size_bytes"]) for member in members if "size_bytes" in member]
    # Block devices keep their own size, which only the engine knows: files lie at their front.
    return min(sizes) if len(sizes) == len(members) else loaded.study.live.member_size


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


def _side(end: dict[str, Any]) -> StreamSide:
    return {"busy_ns": end["busy_ns"], "waited_ns": end["waited_ns"], "stops": end["stops"]}


def _tally(answer: Answer, kinds: dict[tuple[int, str], str], side: str) -> Tally:
    mine = [stream for number, stream in enumerate(answer["streams"]) if kinds[number, side] == ARRAY]
    times = Histogram.merged(Histogram.of(stream[side]["time"]) for stream in mine)
    blocks = sum(stream["blocks"] for stream in mine)
    mean = sum(stream[side]["time_mean_ns"] * stream["blocks"] for stream in mine) / blocks if blocks else 0.0
    columns = Times(value_ns=times.value_ns, count=times.count)
    return {
        "requests": blocks,
        "bytes": sum(stream["bytes"] for stream in mine),
        "failed": 0,
        "response": columns,
        "service": columns,
        "response_mean_ns": mean,
        "service_mean_ns": mean,
    }


def _added(read: Tally, write: Tally) -> Tally:
    times = Histogram.merged(Histogram.of(part["response"]) for part in (read, write))
    requests = read["requests"] + write["requests"]
    columns = Times(value_ns=times.value_ns, count=times.count)
    weighted = sum(part["response_mean_ns"] * part["requests"] for part in (read, write))
    mean = weighted / requests if requests else 0.0
    return {
        "requests": requests,
        "bytes": read["bytes"] + write["bytes"],
        "failed": 0,
        "response": columns,
        "service": columns,
        "response_mean_ns": mean,
        "service_mean_ns": mean,
    }


def _sample(answer: Answer) -> list[CheckAnswer]:
    """Whose data were written, where it is the user's own."""
    sample = answer["facts"].get("data")
    if sample is None:
        return []
    longest = max((stream["bytes"] for stream in answer["streams"]), default=0)
    times = longest / sample["used_bytes"]
    evidence = f"what was written is {sample['path']}, {sample['used_bytes']} bytes of it"
    if times <= 1:
        return [{"name": "data", "verdict": "PASS", "evidence": evidence, "mend": ""}]
    evidence += (
        f", {times:.1f} times over in the longest stream: a box that keeps one copy of what is alike gains by it"
    )
    return [
        {"name": "data", "verdict": "WARN", "evidence": evidence, "mend": "leave live.data out for unrepeated data"}
    ]


def _page_cache(answer: Answer) -> list[CheckAnswer]:
    """Members are past the page cache; what of a source was in it at the start is said where there is such a source."""
    held = [end for end in answer["facts"]["endpoints"] if end["side"] == "source" and end["cached_bytes"]]
    if not held:
        return []
    evidence = f"{sum(end['cached_bytes'] for end in held)} bytes of the sources were in the page cache at the start"
    return [{"name": "page_cache", "verdict": "INVALID", "evidence": evidence, "mend": "drop it, or move more"}]

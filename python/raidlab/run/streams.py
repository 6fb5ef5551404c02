"""Measure sequential streams between memory, files, block devices, arrays and a modelled tape, started together.

Invariants:

- Thin on purpose: a request goes to the engine as the contract says, its answer comes back with names. What it means is
  for whoever shows it.
- What was measured is returned even if something stopped the run; `stopped_by` says what.
- Files that were not there before are taken away, unless they are to be kept.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.run.runner import run_request
from raidlab.study.units import parse_bytes, parse_time_ns

Column = NDArray[np.uint64]

DEFAULT_BLOCK_BYTES = 256 * 1024
DEFAULT_TAPE_BUFFER_BYTES = 1024 * 1024
_MARK, _PAGE_BYTES = b"raidlab member file, version 1\n\0", 4096
ACCEPTED = "null, memory, tape:RATE (such as tape:10MB or tape:10MB,stop=2s), a file or a block device"


@dataclass(frozen=True)
class Null:
    """Hands over and takes at once: what remains is the meter."""

    def cell(self) -> dict[str, Any]:
        """The endpoint in the cell."""
        return {"kind": "null"}


@dataclass(frozen=True)
class Memory:
    """Memory of this process, used round and round."""

    size_bytes: int = 64 * 1024 * 1024

    def cell(self) -> dict[str, Any]:
        """The endpoint in the cell."""
        return {"kind": "memory", "size_bytes": self.size_bytes}


@dataclass(frozen=True)
class File:
    """A part of a regular file; written only if raidlab made it, made if it is not there."""

    path: Path
    offset_bytes: int = 0
    buffered: bool = False

    def cell(self) -> dict[str, Any]:
        """The endpoint in the cell."""
        return {
            "kind": "file",
            "path": str(self.path),
            "offset_bytes": self.offset_bytes,
            "buffered": self.buffered,
        }


@dataclass(frozen=True)
class Block:
    """A part of a block device; written only if it is named in the request's ``destroy``."""

    path: Path
    offset_bytes: int = 0
    buffered: bool = False

    def cell(self) -> dict[str, Any]:
        """The endpoint in the cell."""
        return {
            "kind": "block",
            "path": str(self.path),
            "offset_bytes": self.offset_bytes,
            "buffered": self.buffered,
        }


@dataclass(frozen=True)
class Tape:
    """Memory at a constant rate, with a buffer; when that runs dry or full it stops, and takes its time to start.

    Attributes
    ----------
    mb_s : float
        Its rate, in MB/s (10^6).
    buffer : int
        In bytes.
    start_stop : int
        What a stop costs, in nanoseconds.
    """

    mb_s: float
    buffer: int = DEFAULT_TAPE_BUFFER_BYTES
    start_stop: int = 0

    def cell(self) -> dict[str, Any]:
        """The endpoint in the cell."""
        return {
            "kind": "tape",
            "mb_s": self.mb_s,
            "buffer": self.buffer,
            "start_stop": self.start_stop,
        }


@dataclass(frozen=True)
class Array:
    """A part of a volume of one of the request's arrays, by its number."""

    array: int = 0
    volume: int = 0
    offset_bytes: int = 0

    def cell(self) -> dict[str, Any]:
        """The endpoint in the cell."""
        return {"kind": "array", "array": self.array, "volume": self.volume, "offset_bytes": self.offset_bytes}


Endpoint = Null | Memory | File | Block | Tape | Array


def endpoint(text: str) -> Endpoint:
    """Read an endpoint as one writes it.

    Raises
    ------
    InputError
        For what is none.

    Examples
    --------
    >>> endpoint("memory")
    Memory(size_bytes=67108864)
    >>> endpoint("tape:10MB,stop=2s")
    Tape(mb_s=10.0, buffer=1048576, start_stop=2000000000)
    """
    if text == "null":
        return Null()
    if text == "memory":
        return Memory()
    if text.startswith("tape:"):
        return _tape(text)
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = 0
    if mode and stat.S_ISDIR(mode):
        raise InputError.one("endpoint", "is a directory: name a file in it", value=text, accepted=ACCEPTED)
    # The engine writes no file through a link; this one the user has named himself.
    return Block(path) if stat.S_ISBLK(mode) else File(path.resolve() if path.is_symlink() else path)


def _tape(text: str) -> Tape:
    rate, *options = text.removeprefix("tape:").split(",")
    try:
        found: dict[str, Any] = {"mb_s": parse_bytes(rate.removesuffix("/s")) / 1e6}
        for option in options:
            key, _, value = option.partition("=")
            if key == "stop":
                found["start_stop"] = parse_time_ns(value)
            elif key == "buffer":
                found["buffer"] = parse_bytes(value)
            else:
                raise ValueError(f"'{key}' is neither 'stop' nor 'buffer'")
    except ValueError as error:
        raise InputError.one("endpoint", str(error), value=text, accepted=ACCEPTED) from None
    return Tape(**found)


@dataclass(frozen=True)
class Stream:
    """One stream.

    Attributes
    ----------
    name : str
    source, sink : Endpoint
    block_bytes : int
    bytes : int
    rate_mb_s : float, optional
        The pace; none: as fast as the ends allow.
    buffers : int
        Blocks under way between the ends; with 1 they take turns.
    """

    name: str
    source: Endpoint
    sink: Endpoint
    bytes: int
    block_bytes: int = DEFAULT_BLOCK_BYTES
    rate_mb_s: float | None = None
    buffers: int = 2

    def cell(self) -> dict[str, Any]:
        """The stream in the cell."""
        text = {
            "name": self.name,
            "source": self.source.cell(),
            "sink": self.sink.cell(),
            "bytes": self.bytes,
            "block_bytes": self.block_bytes,
            "buffers": self.buffers,
        }
        return text if self.rate_mb_s is None else text | {"rate_mb_s": self.rate_mb_s}


@dataclass(frozen=True)
class StreamsRequest:
    """What to measure.

    Attributes
    ----------
    streams : sequence of Stream
        All start together.
    arrays : sequence of dict
        Arrays that streams use, as the contract has them: ``tree``, ``members``, ...
    destroy : sequence of Path
        Block devices that may be overwritten.
    verify : bool
        Compare what arrived with what was sent: for testing, not for measuring.
    duration : int, optional
        In nanoseconds: no block is begun later.
    keep : bool
        Leave files that were made.
    data : Path, optional
        What memory and tapes hand over, round and round; made up, incompressible and unrepeated when left out.
    """

    streams: Sequence[Stream]
    seed: int = 1
    arrays: Sequence[dict[str, Any]] = ()
    destroy: Sequence[Path] = ()
    verify: bool = False
    duration: int | None = None
    keep: bool = False
    data: Path | None = None

    def text(self) -> str:
        """The cell, as the engine takes it."""
        cell = {
            "engine": "streams",
            "seed": self.seed,
            "arrays": list(self.arrays),
            "destroy": [str(path) for path in self.destroy],
            "content": "verify" if self.verify else "random",
            "duration": self.duration,
            **({} if self.data is None else {"data": str(self.data)}),
            "streams": [stream.cell() for stream in self.streams],
        }
        return json.dumps(cell, sort_keys=True)


@dataclass(frozen=True)
class StreamEnd:
    """What one end of a stream did.

    Attributes
    ----------
    busy_ns : int
        Time in its calls.
    waited_ns : int
        Time in which it stood ready and the other end was not.
    time : Histogram
        Times of its calls.
    stops : int
        How often a tape stopped.
    """

    busy_ns: int
    waited_ns: int
    time: Histogram
    time_mean_ns: float
    stops: int

    @classmethod
    def of(cls, answer: dict[str, Any]) -> StreamEnd:
        """Take the engine's words."""
        return cls(**{**answer, "time": Histogram.of(answer["time"])})


@dataclass(frozen=True)
class StreamResult:
    """What one stream did.

    Attributes
    ----------
    elapsed_ns, sync_ns : int
        From start to end, synchronising included; synchronising alone.
    bound_by : str
        ``source``, ``sink`` or ``pace``: what took most of the time.
    late : Histogram or None
        How long after they were due blocks were handed over; None where the stream is not paced.
    series : dict of columns
        A row a second of the run: ``time_ns`` (its end), ``bytes`` that arrived in it.
    mismatch_count : int or None
        Blocks that did not arrive as they were sent; None where nothing was compared.
    """

    name: str
    bytes: int
    blocks: int
    start_ns: int
    elapsed_ns: int
    sync_ns: int
    overlapped: bool
    bound_by: Literal["source", "sink", "pace"]
    paced_ns: int
    source: StreamEnd
    sink: StreamEnd
    late: Histogram | None
    series: dict[str, Column]
    blocks_checked: int | None
    mismatch_count: int | None

    @property
    def mb_s(self) -> float | None:
        """MB a second, synchronising included."""
        return self.bytes / self.elapsed_ns * 1000 if self.elapsed_ns else None

    @property
    def series_mb_s(self) -> NDArray[np.float64]:
        """MB that arrived in each whole second; the last one counts for what it lasted."""
        seconds = np.ones(len(self.series["bytes"]))
        if len(seconds):
            end_s = (self.start_ns + self.elapsed_ns - self.sync_ns) / 1e9
            seconds[-1] = min(1.0, max(end_s - (len(seconds) - 1), 1e-9))
        return np.asarray(self.series["bytes"] / 1e6 / seconds, dtype=np.float64)

    @classmethod
    def of(cls, answer: dict[str, Any]) -> StreamResult:
        """Take the engine's words."""
        words = dict(answer)
        verify, late = words.pop("verify"), words["late"]
        words |= {
            "source": StreamEnd.of(words["source"]),
            "sink": StreamEnd.of(words["sink"]),
            "late": None if late is None else Histogram.of(late["time"]),
            "blocks_checked": None if verify is None else verify["blocks_checked"],
            "mismatch_count": None if verify is None else verify["mismatch_count"],
        }
        return cls(**words)


@dataclass(frozen=True)
class StreamsResult:
    """What came of it.

    Attributes
    ----------
    elapsed_ns : int
        Until the last stream has ended.
    facts : dict
        ``endpoints``: what every end is, and for sources how many bytes of it were in the page cache at the start;
        ``arrays``: what their members are and did.
    stopped_by : str or None
        What ended the measurement before its time; what was measured till then is here.
    """

    streams: tuple[StreamResult, ...]
    bytes: int
    elapsed_ns: int
    facts: dict[str, Any]
    stopped_by: str | None
    interrupted: bool
    answer: dict[str, Any] = field(repr=False)

    @property
    def mb_s(self) -> float | None:
        """All bytes until the last stream ended, in MB a second."""
        return self.bytes / self.elapsed_ns * 1000 if self.elapsed_ns else None

    @property
    def page_cache(self) -> tuple[str, str] | None:
        """PASS, WARN or INVALID, and why: whether sources came from the page cache; None without files and devices."""
        ends = [end for end in self.facts["endpoints"] if end["side"] == "source" and end["target"] is not None]
        if not ends:
            return None
        held = [end for end in ends if end["cached_bytes"]]
        if held:
            names = ", ".join(sorted({str(end["target"]["path"]) for end in held}))
            worst = max(end["cached_bytes"] / end["target"]["size_bytes"] for end in held)
            return "INVALID" if worst > 0.01 else "WARN", f"{names}: {100 * worst:.3g} % in the page cache at the start"
        if any(end["cached_bytes"] is None for end in ends):
            return "WARN", "the kernel does not tell what of a source was in the page cache"
        return "PASS", "nothing of any source was in the page cache at the start"


def measure_streams(request: StreamsRequest, on_progress: Callable[[float], bool] | None = None) -> StreamsResult:
    """Run all streams.

    Parameters
    ----------
    request : StreamsRequest
    on_progress : callable, optional
        Called with the share done; False ends the measurement with what it has.

    Raises
    ------
    CellFailedError, RefusedError
        Before anything is measured, with the engine's own sentence.
    """
    with _new_files_removed(request):
        answer = run_request(request.text(), on_progress)
    return StreamsResult(
        streams=tuple(StreamResult.of(stream) for stream in answer["streams"]),
        bytes=answer["bytes"],
        elapsed_ns=answer["elapsed_ns"],
        facts=answer["facts"],
        stopped_by=answer["stopped_by"],
        interrupted=answer["interrupted"],
        answer=answer,
    )


@contextmanager
def _new_files_removed(request: StreamsRequest) -> Iterator[None]:
    ends = [end for stream in request.streams for end in (stream.source, stream.sink)]
    paths = {end.path for end in ends if isinstance(end, File)}
    members = [member for array in request.arrays for member in array.get("members", ())]
    paths |= {Path(member["path"]) for member in members if member.get("kind") == "file" and "path" in member}
    # A link that leads nowhere is there, too.
    new = {path for path in paths if not path.is_symlink() and not path.exists()}
    try:
        yield
    finally:
        if not request.keep:
            for path in new:
                with suppress(OSError):
                    _remove_made(path)


def _remove_made(path: Path) -> None:
    """Remove a file whose last page says that the engine made it (`crates/live/src/target/trailer.rs`)."""
    with Directory.open(path.parent) as folder, os.fdopen(folder.open_file(path.name), "rb") as file:
        end = os.fstat(file.fileno()).st_size
        if os.pread(file.fileno(), len(_MARK), max(end - _PAGE_BYTES, 0)) == _MARK:
            folder.remove(path.name, own=True)

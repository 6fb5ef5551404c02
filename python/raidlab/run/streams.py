"""Measure sequential streams between memory, files, block devices, arrays and a modelled tape, started together.

What is measured is a `StreamsCell`. What its result means is for whoever shows it.

Invariants:

- What was measured is returned even if something stopped the run; `stopped_by` says what.
- Files that were not there before are taken away, unless they are to be kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.results.answer import CheckAnswer, Verdict
from raidlab.run.runner import Answer, OnProgress, run_request
from raidlab.study.cell import BlockEnd, BufferEnd, FileEnd, LiveEnd, NullEnd, StreamsCell, TapeEnd, text_of
from raidlab.study.units import parse_bytes, parse_time_ns

Column = NDArray[np.uint64]

_MARK, _PAGE_BYTES = b"raidlab member file, version 1\n\0", 4096
ACCEPTED = "null, memory, tape:RATE (such as tape:10MB or tape:10MB,stop=2s), a file or a block device"


def endpoint(text: str) -> LiveEnd:
    """Read an endpoint as one writes it.

    Raises `InputError` for what is none.

    Examples
    --------
    >>> endpoint("null")
    NullEnd(kind='null')
    >>> endpoint("tape:10MB,stop=2s")
    TapeEnd(mb_s=10.0, buffer=1048576, start_stop=2000000000, kind='tape')
    """
    if text == "null":
        return NullEnd()
    if text == "memory":
        return BufferEnd()
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
    return BlockEnd(path=path) if stat.S_ISBLK(mode) else FileEnd(path=path.resolve() if path.is_symlink() else path)


def _tape(text: str) -> TapeEnd:
    rate, *options = text.removeprefix("tape:").split(",")
    buffer, start_stop = TapeEnd.model_fields["buffer"].default, 0
    try:
        mb_s = parse_bytes(rate.removesuffix("/s")) / 1e6
        for option in options:
            key, _, value = option.partition("=")
            if key == "stop":
                start_stop = parse_time_ns(value)
            elif key == "buffer":
                buffer = parse_bytes(value)
            else:
                raise ValueError(f"'{key}' is neither 'stop' nor 'buffer'")
    except ValueError as error:
        raise InputError.one("endpoint", str(error), value=text, accepted=ACCEPTED) from None
    return TapeEnd.model_construct(kind="tape", mb_s=mb_s, buffer=buffer, start_stop=start_stop)


def as_found_here(cell: StreamsCell) -> StreamsCell:
    """A cell whose ends were named on another machine: what a path is, a file or a device, is this one's to say."""

    def end(named: LiveEnd) -> LiveEnd:
        return endpoint(str(named.path)) if isinstance(named, FileEnd | BlockEnd) else named

    streams = [one.model_copy(update={"source": end(one.source), "sink": end(one.sink)}) for one in cell.streams]
    return cell.model_copy(update={"streams": streams})


@dataclass(frozen=True)
class StreamEnd:
    """What one end of a stream did."""

    busy_ns: int
    """Time in its calls."""
    waited_ns: int
    """Time in which it stood ready and the other end was not."""
    time: Histogram
    """Times of its calls."""
    time_mean_ns: float
    stops: int
    """How often a tape stopped."""


@dataclass(frozen=True)
class StreamResult:
    """What one stream did."""

    name: str
    bytes: int
    blocks: int
    start_ns: int
    elapsed_ns: int
    sync_ns: int
    """From start to end, synchronising included; synchronising alone."""
    overlapped: bool
    bound_by: Literal["source", "sink", "pace"]
    """``source``, ``sink`` or ``pace``: what took most of the time."""
    paced_ns: int
    source: StreamEnd
    sink: StreamEnd
    late: Histogram | None
    """How long after they were due blocks were handed over; None where the stream is not paced."""
    series: dict[str, Column]
    """A row a second of the run: ``time_ns`` (its end), ``bytes`` that arrived in it."""
    blocks_checked: int | None
    mismatch_count: int | None
    """Blocks that did not arrive as they were sent; None where nothing was compared."""

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


@dataclass(frozen=True)
class StreamsResult:
    """What came of it."""

    streams: tuple[StreamResult, ...]
    bytes: int
    elapsed_ns: int
    """Until the last stream has ended."""
    facts: Answer
    """``endpoints``: what every end is, and for sources how many bytes of it were in the page cache at the start;
    ``arrays``: what their members are and did."""
    checks: list[CheckAnswer]
    stopped_by: str | None
    """What ended the measurement before its time; what was measured till then is here."""
    interrupted: bool

    @property
    def mb_s(self) -> float | None:
        """All bytes until the last stream ended, in MB a second."""
        return self.bytes / self.elapsed_ns * 1000 if self.elapsed_ns else None

    @property
    def page_cache(self) -> CheckAnswer | None:
        """Whether sources came from the page cache; None where none is a file or a device."""
        ends = [end for end in self.facts["endpoints"] if end["side"] == "source" and end["target"] is not None]
        if not ends:
            return None
        verdict: Verdict = "PASS"
        evidence = "nothing of any source was in the page cache at the start"
        if cached := [end for end in ends if end["cached_bytes"]]:
            names = ", ".join(sorted({str(end["target"]["path"]) for end in cached}))
            worst = max(end["cached_bytes"] / end["target"]["size_bytes"] for end in cached)
            verdict = "INVALID" if worst > 0.01 else "WARN"
            evidence = f"{names}: {100 * worst:.3g} % in the page cache at the start"
        elif any(end["cached_bytes"] is None for end in ends):
            verdict, evidence = "WARN", "the kernel does not tell what of a source was in the page cache"
        remedy = "" if verdict == "PASS" else "Empty the page cache first, or move more than fits in it."
        return {"name": "page_cache", "verdict": verdict, "evidence": evidence, "mend": remedy}


def measure_streams(cell: StreamsCell, on_progress: OnProgress | None = None, *, keep: bool = False) -> StreamsResult:
    """Run all streams.

    ``cell``: what to measure. ``on_progress``: called with the share done; False ends the measurement with what it has.
    ``keep``: leave files that were made. Raises `CellFailedError` or `RefusedError` before anything is measured, with
    the engine's own sentence.
    """
    with _new_files_removed(cell, keep=keep):
        return streams_result(run_request(text_of(cell), on_progress))


def streams_result(answer: Answer) -> StreamsResult:
    """The engine's answer with names."""
    streams = tuple(_stream(stream) for stream in answer["streams"])
    keys = ("bytes", "elapsed_ns", "facts", "checks", "stopped_by", "interrupted")
    return StreamsResult(streams, **{key: answer[key] for key in keys})


def _stream(answer: Answer) -> StreamResult:
    late, verify = answer["late"], answer["verify"] or {"blocks_checked": None, "mismatch_count": None}
    ends = {
        side: StreamEnd(**{**answer[side], "time": Histogram.of(answer[side]["time"])}) for side in ("source", "sink")
    }
    named = {
        **ends,
        "series": {key: np.asarray(column, dtype=np.uint64) for key, column in answer["series"].items()},
        "late": None if late is None else Histogram.of(late["time"]),
        "blocks_checked": verify["blocks_checked"],
        "mismatch_count": verify["mismatch_count"],
    }
    return StreamResult(**{**{key: value for key, value in answer.items() if key != "verify"}, **named})


@contextmanager
def _new_files_removed(cell: StreamsCell, *, keep: bool) -> Iterator[None]:
    ends = [end for stream in cell.streams for end in (stream.source, stream.sink)]
    paths = {end.path for end in ends if isinstance(end, FileEnd)}
    members = [member for array in cell.arrays for member in array.members]
    paths |= {Path(member["path"]) for member in members if member.get("kind") == "file" and "path" in member}
    # A link that leads nowhere is there, too.
    new = {path for path in paths if not path.is_symlink() and not path.exists()}
    try:
        yield
    finally:
        for path in new if not keep else ():
            with suppress(OSError):
                _remove_made(path)


def _remove_made(path: Path) -> None:
    """Remove a file whose last page says that the engine made it (`crates/live/src/target/trailer.rs`)."""
    with Directory.open(path.parent) as folder, os.fdopen(folder.open_file(path.name), "rb") as file:
        end = os.fstat(file.fileno()).st_size
        if os.pread(file.fileno(), len(_MARK), max(end - _PAGE_BYTES, 0)) == _MARK:
            folder.remove(path.name, own=True)

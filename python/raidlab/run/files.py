"""Measure opening and reading whole files through a file system.

Invariants:

- Thin on purpose: a request goes to the engine as the contract says, its answer comes back with names. What it means is
  for whoever shows it.
- What was measured is returned even if something stopped the run; `stopped_by` says what.
- A result of which the page cache had a part says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raidlab.histogram import Histogram
from raidlab.results.answer import CheckAnswer, Verdict
from raidlab.run.runner import run_request

Column = NDArray[np.uint64]

CACHE_UNKNOWN = 2**64 - 1
DEFAULT_BLOCK_BYTES = 128 * 1024


@dataclass(frozen=True)
class MadeFiles:
    """Files that raidlab makes, in a subdirectory of its own.

    Attributes
    ----------
    directories : sequence of Path
        The files are spread over them evenly.
    sizes : dict
        A size as a cell has it, such as ``{"kind": "fixed", "bytes": 65536}``.
    numbers : str
        ``drawn``, or ``even``: a table's shares are kept exactly.
    count, total_bytes : int, optional
        How many, or as many as fit: one of the two.
    sync : str
        ``each`` file before it is closed, or all at the ``end``.
    keep : bool
        Leave them for the next measurement of the same files.
    """

    directories: Sequence[Path]
    sizes: dict[str, Any]
    numbers: Literal["drawn", "even"] = "drawn"
    count: int | None = None
    total_bytes: int | None = None
    sync: Literal["each", "end"] = "each"
    keep: bool = False

    def cell(self) -> dict[str, Any]:
        """The key ``files`` of the cell."""
        amount = {"count": self.count, "total_bytes": self.total_bytes}
        return {
            "kind": "made",
            "directories": [str(directory) for directory in self.directories],
            "sizes": self.sizes,
            "numbers": self.numbers,
            "sync": self.sync,
            "keep": self.keep,
        } | {key: value for key, value in amount.items() if value is not None}


@dataclass(frozen=True)
class GivenFiles:
    """Files that exist; they are only read."""

    paths: Sequence[Path]

    def cell(self) -> dict[str, Any]:
        """The key ``files`` of the cell."""
        return {"kind": "list", "paths": [str(path) for path in self.paths]}


@dataclass(frozen=True)
class FilesRequest:
    """What to measure.

    Attributes
    ----------
    files : MadeFiles or GivenFiles
    readers : int
        How many read at the same time; 0 to measure writing only.
    lists : int
        Disjoint lists that the files are dealt into, reader k reading list k; 1: every reader reads all.
    order : str
        ``once``, ``shuffled`` (again and again) or ``random`` (with replacement).
    block_bytes : int or "whole"
        Bytes of a read call.
    io : str
        ``auto``, ``direct`` or ``buffered``.
    verify : str
        ``sample``, ``full`` or ``off``: how much of the files that raidlab made is compared with what it wrote.
    drop_caches : bool
        Drop inodes and directory entries of the whole system too, before reading; root only.
    warmup_files, measure_files : int
        Over all readers together.
    duration : int, optional
        In nanoseconds: no file is begun later.
    """

    files: MadeFiles | GivenFiles
    seed: int = 1
    readers: int = 1
    lists: int = 1
    order: Literal["once", "shuffled", "random"] = "once"
    block_bytes: int | Literal["whole"] = DEFAULT_BLOCK_BYTES
    io: Literal["auto", "direct", "buffered"] = "auto"
    verify: Literal["full", "sample", "off"] = "sample"
    drop_caches: bool = False
    warmup_files: int = 0
    measure_files: int | None = None
    duration: int | None = None

    def text(self) -> str:
        """The cell, as the engine takes it."""
        measure = {"files": self.measure_files, "duration": self.duration}
        cell = {
            "engine": "files",
            "seed": self.seed,
            "files": self.files.cell(),
            "readers": self.readers,
            "lists": self.lists,
            "order": self.order,
            "block_bytes": self.block_bytes,
            "io": self.io,
            "verify": self.verify,
            "drop_caches": self.drop_caches,
            "warmup": {"files": self.warmup_files},
            "measure": {key: value for key, value in measure.items() if value is not None},
        }
        return json.dumps(cell, sort_keys=True)


@dataclass(frozen=True)
class FilesFill:
    """How files were written.

    Attributes
    ----------
    elapsed_ns, content_ns, sync_ns : int
        From first to last; time of that in which content was made; synchronising all at the end.
    records : dict of columns
        A row a file: ``file``, ``size_bytes``, ``start_ns``, ``create_ns``, ``write_ns``, ``sync_ns``, ``total_ns``.
    """

    files: int
    bytes: int
    elapsed_ns: int
    content_ns: int
    sync_ns: int
    records: dict[str, Column]

    @property
    def mb_s(self) -> float | None:
        """MB a second, synchronising included, making the content not."""
        return _mb_s(self.bytes, self.elapsed_ns - self.content_ns)


@dataclass(frozen=True)
class FilesRead:
    """How files were read.

    Attributes
    ----------
    open, first_byte, total : Histogram
        Times of opening; to the first byte; of opening and reading all.
    records : dict of columns
        A row a file read: ``reader``, ``file``, ``size_bytes``, ``start_ns``, ``open_ns``, ``first_byte_ns``,
        ``total_ns``, ``cached_bytes``.
    """

    files: int
    bytes: int
    warmup_files: int
    elapsed_ns: int
    open: Histogram
    first_byte: Histogram
    total: Histogram
    open_mean_ns: float
    first_byte_mean_ns: float
    total_mean_ns: float
    cached_files: int
    cached_bytes: int
    unknown_files: int
    records: dict[str, Column]

    @property
    def mb_s(self) -> float | None:
        """MB a second of all readers together."""
        return _mb_s(self.bytes, self.elapsed_ns)

    @property
    def files_per_s(self) -> float | None:
        """Files a second of all readers together."""
        return self.files / self.elapsed_ns * 1e9 if self.elapsed_ns else None

    @property
    def in_flight(self) -> float | None:
        """How many files were being read at a time, on average: below `readers` where some had nothing left to do."""
        return float(self.records["total_ns"].sum()) / self.elapsed_ns if self.elapsed_ns else None

    @property
    def cached_share(self) -> float:
        """Share of the bytes read that were in the page cache before."""
        return self.cached_bytes / self.bytes if self.bytes else 0.0

    @property
    def page_cache(self) -> tuple[Verdict, str]:
        """PASS, WARN or INVALID, and why: whether the times are those of the files or of the page cache."""
        if self.cached_files:
            verdict: Verdict = "INVALID" if self.cached_share > 0.01 else "WARN"
            share = f"{100 * self.cached_share:.3g} % of the bytes"
            return verdict, f"{self.cached_files} of {self.files} files were in part in the page cache, {share}"
        if self.unknown_files:
            return "WARN", f"the kernel does not tell what of {self.unknown_files} files was in the page cache"
        return "PASS", "nothing of any file was in the page cache before it was read"


@dataclass(frozen=True)
class FilesResult:
    """What came of it.

    Attributes
    ----------
    size_bytes, directory : column
        A row a file: its size, and the position of its directory in ``facts["directories"]``.
    fill : FilesFill or None
        None where nothing was written.
    stopped_by : str or None
        What ended the measurement before its time; what was measured till then is here.
    checks : list of CheckAnswer
        The engine's verdicts: ``content``, where files were read.
    interrupted : bool
        Whether ``on_progress`` (or Ctrl-C) ended it.
    answer : dict
        The engine's answer, whole.
    """

    size_bytes: Column
    directory: Column
    fill: FilesFill | None
    read: FilesRead
    facts: dict[str, Any]
    stopped_by: str | None
    checks: list[CheckAnswer]
    interrupted: bool
    answer: dict[str, Any] = field(repr=False)


def measure_files(request: FilesRequest, on_progress: Callable[[float], bool] | None = None) -> FilesResult:
    """Write the files that are not there, put them out of the page cache, and read them.

    Parameters
    ----------
    request : FilesRequest
    on_progress : callable, optional
        Called with the share done; False ends the measurement with what it has.

    Raises
    ------
    CellFailedError, RefusedError
        Before anything is measured, with the engine's own sentence.
    """
    return result_of(run_request(request.text(), on_progress))


def result_of(answer: dict[str, Any]) -> FilesResult:
    """The engine's answer with names."""
    fill, read, files = answer["fill"], answer["read"], answer["files"]
    histograms = {key: Histogram.of(read[key]) for key in ("open", "first_byte", "total")}
    return FilesResult(
        size_bytes=files["size_bytes"],
        directory=files["directory"],
        fill=None if fill is None else FilesFill(**fill),
        read=FilesRead(**{**read, **histograms}),
        facts=answer["facts"],
        stopped_by=answer["stopped_by"],
        checks=answer["checks"],
        interrupted=answer["interrupted"],
        answer=answer,
    )


def _mb_s(count_bytes: int, elapsed_ns: int) -> float | None:
    return count_bytes / elapsed_ns * 1000 if elapsed_ns > 0 else None

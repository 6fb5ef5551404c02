"""Measure opening and reading whole files through a file system.

What is measured is a `FilesCell`. What its result means is for whoever shows it.

Invariants:

- What was measured is returned even if something stopped the run; `stopped_by` says what.
- A result of which the page cache had a part says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.histogram import Histogram
from raidlab.results.answer import CheckAnswer, Verdict
from raidlab.run.runner import Answer, OnProgress, run_request
from raidlab.study.cell import FilesCell, text_of

Column = NDArray[np.uint64]


@dataclass(frozen=True)
class FilesFill:
    """How files were written."""

    files: int
    bytes: int
    elapsed_ns: int
    content_ns: int
    sync_ns: int
    """From first to last; time of that in which content was made; synchronising all at the end."""
    records: dict[str, Column]
    """A row a file: ``file``, ``size_bytes``, ``start_ns``, ``create_ns``, ``write_ns``, ``sync_ns``, ``total_ns``."""

    @property
    def mb_s(self) -> float | None:
        """MB a second, synchronising included, making the content not."""
        return _mb_s(self.bytes, self.elapsed_ns - self.content_ns)


@dataclass(frozen=True)
class FilesRead:
    """How files were read."""

    files: int
    bytes: int
    warmup_files: int
    elapsed_ns: int
    open: Histogram
    first_byte: Histogram
    total: Histogram
    """Times of opening; to the first byte; of opening and reading all."""
    open_mean_ns: float
    first_byte_mean_ns: float
    total_mean_ns: float
    cached_files: int
    cached_bytes: int
    unknown_files: int
    records: dict[str, Column]
    """A row a file read: ``reader``, ``file``, ``size_bytes``, ``start_ns``, ``open_ns``, ``first_byte_ns``,
    ``total_ns``, ``cached_bytes``."""

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
    def page_cache(self) -> CheckAnswer:
        """Whether the times are those of the files or of the page cache, as the kernel says before a file is read."""
        verdict: Verdict = "PASS"
        evidence = "nothing of any file was in the page cache before it was read"
        if self.cached_files:
            verdict = "INVALID" if self.cached_share > 0.01 else "WARN"
            share = f"{100 * self.cached_share:.3g} % of the bytes"
            evidence = f"{self.cached_files} of {self.files} files were in part in the page cache, {share}"
        elif self.unknown_files:
            verdict = "WARN"
            evidence = f"the kernel does not tell what of {self.unknown_files} files was in the page cache"
        how = "cachestat, or mincore, of every file when it had been opened and before it was read"
        other = "Name a directory on a disk: a file system in memory is its own page cache."
        remedy = "" if verdict == "PASS" else other
        return {"name": "page_cache", "verdict": verdict, "evidence": f"{evidence} ({how}).", "mend": remedy}


@dataclass(frozen=True)
class FilesResult:
    """What came of it."""

    size_bytes: Column
    directory: Column
    """A row a file: its size, and the position of its directory in ``facts["directories"]``."""
    fill: FilesFill | None
    """None where nothing was written."""
    read: FilesRead
    facts: Answer
    stopped_by: str | None
    """What ended the measurement before its time; what was measured till then is here."""
    checks: list[CheckAnswer]
    """The engine's verdicts: ``content``, where files were read."""
    interrupted: bool
    """Whether ``on_progress`` (or Ctrl-C) ended it."""


def measure_files(cell: FilesCell, on_progress: OnProgress | None = None) -> FilesResult:
    """Write the files that are not there, put them out of the page cache, and read them.

    ``cell``: what to measure. ``on_progress``: called with the share done; False ends the measurement with what it has.
    Raises `CellFailedError` or `RefusedError` before anything is measured, with the engine's own sentence.
    """
    return files_result(run_request(text_of(cell), on_progress))


def files_result(answer: Answer) -> FilesResult:
    """The engine's answer with names."""
    fill, read, files = answer["fill"], answer["read"], answer["files"]
    histograms = {key: Histogram.of(read[key]) for key in ("open", "first_byte", "total")}
    return FilesResult(
        size_bytes=files["size_bytes"],
        directory=files["directory"],
        fill=None if fill is None else FilesFill(**fill),
        read=FilesRead(**{**read, **histograms}),
        **{key: answer[key] for key in ("facts", "stopped_by", "checks", "interrupted")},
    )


def _mb_s(count_bytes: int, elapsed_ns: int) -> float | None:
    return count_bytes / elapsed_ns * 1000 if elapsed_ns > 0 else None

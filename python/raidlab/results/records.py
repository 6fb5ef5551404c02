"""Rows of single requests: a Parquet file a cell in the folder ``records``, written while the cell runs.

Invariants:

- However long a cell runs, memory holds some batches of rows: each becomes a group of rows of the file at once.
- A file has its name when it is whole; the table ``records`` lists those that count, with what they were when they were
  written.
- In a folder of others no link is followed, and a file that was changed since is refused.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import queue
import re
import resource
import secrets
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from raidlab.directory import Directory, sync
from raidlab.errors import CellFailedError, InputError
from raidlab.results.answer import CheckAnswer, RecordsAnswer
from raidlab.results.damage import explained, most_decoded_bytes
from raidlab.results.parquet import decoded_size
from raidlab.results.tables import REQUEST_COLUMNS

if TYPE_CHECKING:
    from raidlab._core import Column

    Batch = Mapping[str, Column]

RECORDS = "records"
# As the engine numbers them.
_OPERATIONS = pl.Series(["read", "write", "flush"])
_COMPRESSION_LEVEL = 3
# Batches that wait to be written, besides those that the engine holds.
_WAITING = 2
_LOOK_EVERY_S = 0.5
# A name as a file system takes it, with room for its checksum and its ending.
_LONGEST_NAME = 180
_READ_BYTES = 1 << 20
# Beside files of requests: the standard ones, folders, and what libraries hold.
_OTHER_DESCRIPTORS = 128
# Rows as a frame have a quarter of the memory: whoever works with them needs as much again, and more.
_MEMORY_SHARE = 4
_ROW_BYTES = 64


def file_name(cell: str) -> str:
    """The file of a cell's requests.

    Examples
    --------
    >>> file_name("sim/raid5/reads/closed=8/0")
    'sim-raid5-reads-closed-8-0-9a1d0bbd.parquet'
    """
    words = re.sub(r"[^A-Za-z0-9_.]+", "-", cell)[:_LONGEST_NAME].strip("-.")
    return f"{words}-{zlib.crc32(cell.encode()):08x}.parquet"


class RecordWriter:
    """Writes the requests of one cell of a run folder, behind the back of whoever runs it."""

    def __init__(self, folder: Path, cell: str) -> None:
        self._cell = cell
        self._name = file_name(cell)
        self._unfinished = f"{self._name}.{secrets.token_hex(4)}.new"
        self._batches: queue.Queue[Batch | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._folder = folder
        self._requests = 0
        try:
            with self._records(make=True) as records:
                self._file = os.fdopen(records.create_file(self._unfinished), "w+b")
        except OSError as error:
            raise self._unwritten(error) from None
        self._thread = threading.Thread(target=self._write, name="records", daemon=True)
        self._thread.start()

    def add(self, batch: Batch) -> None:
        """Take some requests, in the order in which they ended; waits while the disk is behind."""
        self._requests += len(batch["end_ns"])
        while self._error is None:
            with suppress(queue.Full):
                self._batches.put(batch, timeout=_LOOK_EVERY_S)
                return
        raise self._error

    def finish(self, lost: int) -> RecordsAnswer:
        """Have all on disk under its name; ``lost`` requests have left no row."""
        self._end()
        if self._error is not None:
            self.discard()
            raise self._unwritten(self._error)
        try:
            with self._file, self._records() as records:
                sync(self._file.fileno())
                length = self._file.seek(0, os.SEEK_END)
                self._file.seek(0)
                digest = _digest(self._file.fileno())
                records.rename(self._unfinished, self._name)
                records.sync()
        except OSError as error:
            raise self._unwritten(error) from None
        return {
            "file": self._name,
            "requests": self._requests,
            "lost": lost,
            "bytes": length,
            "sha256": digest,
        }

    def discard(self) -> None:
        """Leave nothing behind."""
        self._end()
        self._file.close()
        with suppress(OSError), self._records() as records:
            records.remove(self._unfinished)

    @contextmanager
    def _records(self, *, make: bool = False) -> Iterator[Directory]:
        with Directory.open(self._folder) as place, place.child(RECORDS, make=make) as records:
            yield records

    def _end(self) -> None:
        while self._thread.is_alive():
            with suppress(queue.Full):
                self._batches.put(None, timeout=_LOOK_EVERY_S)
                self._thread.join()

    def _write(self) -> None:
        from polars.io.plugins import register_io_source

        try:
            rows = register_io_source(self._frames, schema=REQUEST_COLUMNS)
            rows.sink_parquet(self._file, compression="zstd", compression_level=_COMPRESSION_LEVEL, maintain_order=True)
        except BaseException as error:
            # Told to whoever adds more, or ends it: a thread has nobody to raise to.
            self._error = error

    def _frames(self, *_wanted: object) -> Iterator[pl.DataFrame]:
        while (batch := self._batches.get()) is not None:
            yield _frame(batch)

    def _unwritten(self, error: BaseException) -> CellFailedError:
        said = error.strerror if isinstance(error, OSError) else str(error).partition("\n")[0]
        return CellFailedError(
            f"{self._folder / RECORDS / self._name}: cannot be written: {said}", "stopped", "", self._cell
        )


def _frame(batch: Batch) -> pl.DataFrame:
    """Rows as the file has them."""
    frame = pl.DataFrame({name: batch[name] for name in REQUEST_COLUMNS})
    operation = _OPERATIONS.gather(frame["operation"]).alias("operation")
    return frame.with_columns(operation).cast({name: kind() for name, kind in REQUEST_COLUMNS.items()})


def lost_records(kept: RecordsAnswer) -> list[CheckAnswer]:
    """What is said of requests that left no row."""
    if not kept["lost"]:
        return []
    total = kept["requests"] + kept["lost"]
    return [
        {
            "name": "records",
            "verdict": "WARN",
            "evidence": f"{kept['lost']:,} of {total:,} requests left no row: they ended faster than rows are written. "
            "Every other figure of the cell counts them.",
            "mend": "a lower depth or rate, or a faster disk for the run folder",
        }
    ]


def remove_unlisted(place: Directory, listed: Collection[str]) -> None:
    """Take files of single requests away that no cell of a run folder has: those of cells that were cut short."""
    if not place.has(RECORDS):
        return
    with place.child(RECORDS) as records:
        for name in records.names():
            if name not in listed:
                records.remove(name)


def discard_records(place: Directory) -> None:
    """Take all files of single requests away, and their folder."""
    if not place.has(RECORDS):
        return
    with place.child(RECORDS) as records:
        for name in records.names():
            records.remove(name)
        identity = records.identity
    place.remove_child(RECORDS, identity)


@contextmanager
def opened_records(place: Directory, listed: pl.DataFrame) -> Iterator[dict[int, Path]]:
    """Paths of the files of some cells, by the cell's number, for as long as they are held open.

    The paths lead to what was opened, whatever takes a file's name meanwhile. Raises `OSError`, or a `ValueError` for a
    file that was changed since it was written.
    """
    descriptors: dict[int, int] = {}
    _make_room_for(listed.height)
    try:
        if not listed.is_empty():
            with place.child(RECORDS) as records:
                for row in listed.iter_rows(named=True):
                    descriptors[row["cell"]] = found = records.open_file(row["file"])
                    # What was written from end to end has no hole; one of terabytes would be read for hours.
                    length = os.fstat(found).st_size
                    is_as_long = length == row["bytes"] and (not length or os.lseek(found, 0, os.SEEK_HOLE) == length)
                    if not is_as_long or _digest(found) != row["sha256"]:
                        differs = "SHA-256" if is_as_long else "length"
                        raise ValueError(
                            f"{RECORDS}/{row['file']} was changed since it was written (its {differs} differs)"
                        )
        yield {cell: Path(f"/proc/self/fd/{found}") for cell, found in descriptors.items()}
    finally:
        for found in descriptors.values():
            os.close(found)


def _make_room_for(files: int) -> None:
    """As many descriptors as files and some more, where the process may have them: 1,024 is what shells give."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = files + _OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def frame_of(folder: Path, files: Mapping[int, Path]) -> pl.DataFrame:
    """The requests in some files, with the number of their cell; ``folder`` is where an error says that they lie."""
    parts, decoded_bytes = [pl.DataFrame(schema={"cell": pl.UInt32, **REQUEST_COLUMNS})], 0
    most = most_decoded_bytes(_MEMORY_SHARE)
    for cell, file in files.items():
        with file.open("rb") as opened, explained(folder):
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
                size = decoded_size(content)
            decoded_bytes += size.held_bytes(_ROW_BYTES)
            if decoded_bytes > most:
                message = f"has more requests than {most >> 20:,} MiB of memory hold, those of cell {cell} among them"
                raise InputError.one("run", message, value=f"'{folder}'", accepted="fewer cells at once, or a query")
            frame = pl.read_parquet(opened, columns=list(REQUEST_COLUMNS))
            if frame.schema != pl.Schema(REQUEST_COLUMNS):
                raise ValueError(f"the rows of cell {cell} have columns of other types")
            parts.append(frame.select(pl.lit(cell, dtype=pl.UInt32).alias("cell"), *REQUEST_COLUMNS))
    return pl.concat(parts)


def view_of(files: Mapping[int, Path]) -> str:
    """The same as a query of DuckDB, which reads only what is asked for."""
    columns: dict[str, Any] = dict(REQUEST_COLUMNS)
    if not files:
        kinds = {pl.UInt64: "UBIGINT", pl.UInt32: "UINTEGER", pl.String: "VARCHAR", pl.Boolean: "BOOLEAN"}
        nothing = ", ".join(f"NULL::{kinds[kind]} AS {name}" for name, kind in columns.items())
        return f"SELECT NULL::UINTEGER AS cell, {nothing} WHERE false"
    names = ", ".join(columns)
    parts = (f"SELECT {cell}::UINTEGER AS cell, {names} FROM read_parquet('{file}')" for cell, file in files.items())
    return " UNION ALL ".join(parts)


def _digest(descriptor: int) -> str:
    """The SHA-256 of a file, read from its beginning and piece by piece."""
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(descriptor, _READ_BYTES, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()

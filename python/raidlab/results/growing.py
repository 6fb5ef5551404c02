"""A table that is put together part by part, and written as a file of any length without being in memory.

Invariants:

- Memory holds a group of rows, and what Polars works at; what came before waits on disk, in a file without a name that
  nobody has to remove.
- The bytes of a file follow from its rows alone, never from the parts that they came in.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, cast

import polars as pl
from typing_extensions import Buffer

from raidlab.directory import Directory
from raidlab.results.tables import ROWS_A_GROUP, TABLES

_COMPRESSION_LEVEL = 3


class _Sink(io.RawIOBase):
    """A file for Polars to write, which keeps the error of the system that Polars has in words only, or not even so."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, content: Buffer) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            self.error = error
            raise


class GrowingTable:
    """A table of a run, whose rows wait in ``place`` where they are many."""

    def __init__(self, place: Directory, name: str) -> None:
        self._place, self._name = place, name
        self._rows = pl.DataFrame(schema=TABLES[name])
        self._file: BinaryIO | None = None
        self._ends = [0]

    def add(self, rows: pl.DataFrame) -> None:
        """Put rows below those that are there."""
        self._rows = pl.concat([self._rows, rows])
        while self._rows.height > ROWS_A_GROUP:
            self._set_aside(self._rows.head(ROWS_A_GROUP))
            self._rows = self._rows.slice(ROWS_A_GROUP)

    def _set_aside(self, rows: pl.DataFrame) -> None:
        if self._file is None:
            unfinished = f"{self._name}.parquet.{secrets.token_hex(4)}.new"
            self._file = os.fdopen(self._place.create_file(unfinished), "w+b", buffering=0)
            self._place.remove(unfinished)
        self._file.write(parquet_of(rows))
        self._ends.append(self._file.tell())

    def write_to(self, file: BinaryIO) -> None:
        """Write it as a Parquet file; an `OSError` where there is no room."""
        if self._file is None:
            file.write(parquet_of(self._rows))
            return
        from polars.io.plugins import register_io_source

        sink = _Sink(file)
        try:
            register_io_source(self._groups, schema=TABLES[self._name]).sink_parquet(
                cast("BinaryIO", sink),
                compression="zstd",
                compression_level=_COMPRESSION_LEVEL,
                statistics=True,
                row_group_size=ROWS_A_GROUP,
                maintain_order=True,
            )
        except pl.exceptions.ComputeError:
            if sink.error is None:
                raise
            raise sink.error from None

    def _groups(self, *_wanted: object) -> Iterator[pl.DataFrame]:
        assert self._file is not None
        self._file.seek(0)
        for begin, end in zip(self._ends, self._ends[1:], strict=False):
            yield pl.read_parquet(io.BytesIO(self._file.read(end - begin)))
        yield self._rows

    def close(self) -> None:
        """Let go of what waits on disk."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


def parquet_of(frame: pl.DataFrame) -> bytes:
    """A table as the file that a run folder has of it."""
    table = io.BytesIO()
    frame.write_parquet(
        table,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        statistics=True,
        row_group_size=ROWS_A_GROUP,
    )
    return table.getvalue()

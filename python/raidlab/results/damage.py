"""What is wrong with a run folder that is not as raidlab wrote it: tables held against what each column may be.

A folder may be a stranger's: whoever takes a figure from a table relies on what is made sure of here.

Invariants:

- A table has the columns of `tables` with their types; one that came after the version that wrote it may be missing.
- No column but those of `_MAY_BE_NULL` has nulls, and no number is infinite or none.
- Every row is of a cell that is there, and every cell of an array, a workload and a target that the run had.
- What is wrong is one sentence that names the file and the column.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from raidlab.errors import InputError
from raidlab.results.answer import VERDICTS
from raidlab.results.parquet import decoded_size
from raidlab.results.tables import (
    ACCOUNTS,
    MACHINE,
    MEMBER_COUNTS,
    OPERATIONS,
    ROWS_A_GROUP,
    STAGES,
    TABLES,
    TIMES,
)
from raidlab.study import Study
from raidlab.study.expand import MOST_CELLS, NULL
from raidlab.study.words import ENGINES

MOST_TABLE_BYTES = 1 << 30
# What is worked out from a table takes up to seven times as much memory as the table: so it takes half of it.
_MEMORY_SHARE = 16
_LEAST_DECODED_BYTES = 256 << 20
# So much larger may be what is decoded part by part; it is a matter of time then.
_MOST_TIMES = 64
# A text in a frame is this long, and where it is longer it lies elsewhere.
_VIEW_BYTES = 16
# A row a second is kept of a run, and room for every second until then is made.
_MOST_NS = 366 * 86_400 * 10**9
# Beyond every figure, and small enough that a million of them still have a sum.
_MOST_FIGURE = 1e60
_MOST_TOTAL = 2.0**63
_TOO_MANY = "counts more requests than there can be"

_MAY_BE_NULL: Mapping[str, Sequence[str]] = {
    "cells": (
        "tasks",
        *(f"{operation}_{time}_mean_ns" for operation in OPERATIONS for time in TIMES),
        *("depth_mean", "hold_depth_mean", "hold_depth_final", "hold_share_within_target"),
        *(f"stage_{stage}" for stage in STAGES),
        *ACCOUNTS,
        *MACHINE,
    ),
    "members": MEMBER_COUNTS[4:],
    "stations": ("wait_ns",),
    "snapshots": ("response_sum_ns",),
    "holds": ("depth", "throughput_bytes_per_s", "throughput_low_bytes_per_s", "throughput_high_bytes_per_s"),
    "accesses": ("mean_ns",),
    "rebuilds": ("failed_ns", "begun_ns", "whole_ns", "stopped_ns"),
    "scrubs": ("over_ns",),
    "checks": ("mend",),
}
# What other figures are divided by.
_AT_LEAST_ONE = {"cells": ("members", "user_bytes"), "stations": ("servers",), "holds": ("target_ns",)}
_WORDS = {
    ("cells", "load"): ("closed", "open", "trace", "hold"),
    ("cells", "target"): (*ENGINES, NULL),
    ("histograms", "operation"): OPERATIONS,
    ("histograms", "time"): (*TIMES, "gap"),
    ("holds", "target"): (*ENGINES, NULL),
    ("scrubs", "kind"): ("check", "repair", "resync"),
    ("checks", "verdict"): VERDICTS,
}
# Tables whose rows are histograms: by what they are told apart.
_HISTOGRAMS = {"histograms": ("cell", "operation", "time"), "snapshot_histograms": ("cell", "time_ns")}


def damaged(file: Path, message: str) -> InputError:
    """The error of a file of a run folder that is not as raidlab wrote it."""
    return InputError.one("run", message, value=f"'{file}'", accepted="a run folder as raidlab wrote it")


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class StoredTable:
    """A table in the bytes of its file, with the columns that raidlab writes, as far as they are there.

    It may lack the columns of ``later``, which came after the version that wrote it. Only what is read ``in_parts`` may
    be larger than the memory, and none of its parts is.
    """

    def __init__(self, file: Path, name: str, content: bytes, later: Sequence[str], *, in_parts: bool = False) -> None:
        self._file, self._content = file, content
        with explained(file):
            self._rows = _checked_rows(file, name, content, in_parts=in_parts)
            found = pl.read_parquet_schema(io.BytesIO(content))
        for column, dtype in TABLES[name].items():
            if column not in found and column not in later:
                raise damaged(file, f"lacks the column '{column}'")
            if found.get(column, dtype) != dtype:
                raise damaged(file, f"has a column '{column}' of type {found[column]} in the place of {dtype}")
        self._columns = [column for column in TABLES[name] if column in found]

    def whole(self) -> pl.DataFrame:
        """All of it."""
        with explained(self._file):
            return pl.read_parquet(io.BytesIO(self._content), columns=self._columns)

    @property
    def parts(self) -> int:
        """How many parts it has."""
        return -(-self._rows // ROWS_A_GROUP)

    def part(self, number: int) -> pl.DataFrame:
        """The part of a number, without decoding the others."""
        with explained(self._file):
            rows = pl.scan_parquet(io.BytesIO(self._content)).select(self._columns)
            return rows.slice(number * ROWS_A_GROUP, ROWS_A_GROUP).collect()


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """What Polars says of a file that it cannot read, as ours."""
    try:
        with refused_in_words():
            yield
    except ValueError as error:
        raise damaged(file, f"cannot be read: {error}") from None


@contextmanager
def refused_in_words() -> Iterator[None]:
    """Whatever Polars says of what it cannot read, as a `ValueError` of one line."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise ValueError(first_line(error)) from None
    except BaseException as error:
        # What Polars' Rust panics with is no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(first_line(error)) from None


def most_decoded_bytes(share: int) -> int:
    """How much may be decoded at once: one of ``share`` parts of this machine's memory, and of a small one 256 MiB."""
    return max(_LEAST_DECODED_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // share)


def _checked_rows(file: Path, name: str, content: bytes, *, in_parts: bool) -> int:
    """How many rows a file has; refused before it is decoded where that would fill the memory."""
    size = decoded_size(content)
    row_bytes = sum(_VIEW_BYTES if dtype == pl.String else 8 for dtype in TABLES[name].values())
    most = most_decoded_bytes(_MEMORY_SHARE)
    is_too_large = size.held_bytes(row_bytes) > (_MOST_TIMES * most if in_parts else most)
    if is_too_large or (in_parts and size.group_held_bytes(row_bytes) > most):
        raise damaged(file, f"is too large: its {size.rows:,} rows take more than {most >> 20:,} MiB")
    if name == "cells" and size.rows > MOST_CELLS:
        raise damaged(file, f"has {size.rows:,} rows, and a run has at most {MOST_CELLS:,} cells")
    return size.rows


def check_parts(
    file: Path, name: str, parts: Iterable[pl.DataFrame], study: Study, modelled: Sequence[str], cells: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    """The parts of a table of histograms, each checked as `check_rows` does, and beside the row before it."""
    before, total = None, 0.0
    for part in parts:
        check_rows(file, name, part if before is None else pl.concat([before, part]), study, modelled, cells)
        total += _requests(part)
        if total >= _MOST_TOTAL:
            raise damaged(file, _TOO_MANY)
        before = part.tail(1)
        yield part


def check_rows(
    file: Path, name: str, frame: pl.DataFrame, study: Study, modelled: Sequence[str], cells: pl.DataFrame | None
) -> None:
    """Refuse a table with values that none can have.

    ``modelled`` are the targets whose devices were modelled, ``cells`` the run's cells, already checked; None for the
    cells themselves.
    """
    for wrong in _wrong(name, frame, study, modelled, cells):
        raise damaged(file, wrong)


def _wrong(
    name: str, frame: pl.DataFrame, study: Study, modelled: Sequence[str], cells: pl.DataFrame | None
) -> Iterator[str]:
    """What is wrong with a table, the first mistake first."""
    nulls = frame.null_count().row(0, named=True)
    for column, dtype in frame.schema.items():
        if nulls[column] and column not in _MAY_BE_NULL.get(name, ()):
            yield f"has no value in a row of '{column}'"
        if dtype == pl.Float64 and not frame.select(pl.col(column).is_between(0, _MOST_FIGURE).all()).item():
            yield f"has a number in '{column}' that no figure can be"
    for column in _AT_LEAST_ONE.get(name, ()):
        if (frame[column] == 0).any():
            yield f"has a row with 0 in '{column}'"
    for (table, column), words in _WORDS.items():
        if table == name:
            yield from _unknown(frame, column, words)
    yield from _wrong_identity(frame, study, modelled, cells)
    if "time_ns" in frame.columns and name != "file_sizes" and (frame["time_ns"] > _MOST_NS).any():
        yield "has a time in 'time_ns' that lies further off than a run can last"
    if name in _HISTOGRAMS:
        yield from _wrong_histogram(frame, _HISTOGRAMS[name])
    if name == "cells" and not frame.filter((pl.col("all_requests") > 0) & (pl.col("elapsed_ns") == 0)).is_empty():
        yield "has a cell whose requests took no time"
    found = ("depth", "throughput_bytes_per_s")
    if name == "holds" and any(frame.filter(pl.col("bound") != "always_exceeded")[key].has_nulls() for key in found):
        yield "has no depth, or no throughput, where one was found"


def _wrong_identity(
    frame: pl.DataFrame, study: Study, modelled: Sequence[str], cells: pl.DataFrame | None
) -> Iterator[str]:
    """Rows of what the run did not have."""
    if "array" in frame.columns:
        yield from _unknown(frame, "array", [array.name for array in study.array])
        yield from _unknown(frame, "workload", [workload.name for workload in study.workload])
        yield from _unknown(frame, "target", ["live", NULL, *modelled])
    if cells is None and frame["cell"].is_duplicated().any():
        yield "has two rows of one cell"
    if cells is not None and "cell" in frame.columns:
        yield from _unknown(frame, "cell", cells["cell"].implode())


def _unknown(frame: pl.DataFrame, column: str, known: Sequence[str] | pl.Series) -> Iterator[str]:
    """A value that is none of those that there can be."""
    strange = frame.filter(~pl.col(column).is_in(known))[column]
    if strange.len():
        yield f"has a row of the {column} '{strange[0]}', which is none of the run's"


def _wrong_histogram(frame: pl.DataFrame, keys: Sequence[str]) -> Iterator[str]:
    same = pl.all_horizontal(pl.col(key) == pl.col(key).shift(1) for key in keys)
    if frame.select((same & (pl.col("value_ns") <= pl.col("value_ns").shift(1))).any()).item():
        yield "has a histogram whose values do not ascend"
    if _requests(frame) >= _MOST_TOTAL:
        yield _TOO_MANY


def _requests(frame: pl.DataFrame) -> float:
    return float(frame["count"].cast(pl.Float64).sum())

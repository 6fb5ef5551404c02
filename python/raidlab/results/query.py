"""A question to a run's tables in SQL, answered by DuckDB, which is shut in: it sees the tables and nothing else.

Invariants:

- No other file, no network, no home directory and no extension is reached, whatever the query says.
- Ctrl-C ends a query that takes long, and an answer that would fill the memory is refused.
- What DuckDB refuses is its own error; an answer that Python cannot hold is an `InputError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from raidlab.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

# More than anybody reads, and less than fills the memory.
_MOST_ROWS, _MOST_BYTES = 1_000_000, 256 << 20
_LOOK_EVERY_S = 0.2
_OF_FIXED_LENGTH = (
    "BOOLEAN",
    "TINYINT",
    "UTINYINT",
    "SMALLINT",
    "USMALLINT",
    "INTEGER",
    "UINTEGER",
    "BIGINT",
    "UBIGINT",
    "DOUBLE",
)
# What puts names together, or hides them.
_HIDING = ("query", "serialized")


def may_ask_for(table: str, query: str) -> bool:
    """Whether a query may ask for a table: by its name, or by what may put it together."""
    asked = query.lower()
    return table in asked or any(word in asked for word in _HIDING)


def answer(query: str, frames: Mapping[str, pl.DataFrame], requests: str, files: Sequence[Path]) -> pl.DataFrame:
    """What a query answers.

    Parameters
    ----------
    query : str
        One SELECT.
    frames : mapping of polars.DataFrame
        The tables, by name.
    requests : str
        The query that the view ``requests`` is.
    files : sequence of pathlib.Path
        What that reads.

    Raises
    ------
    InputError
        For anything but a SELECT, and for an answer that is too large or that Python cannot hold.
    duckdb.Error
        For SQL that DuckDB refuses.
    """
    import duckdb

    try:
        with duckdb.connect(":memory:", config=_shut_in()) as connection:
            statements = connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                message = {0: "asks for nothing", 1: "is no SELECT"}.get(
                    len(statements), f"is {len(statements)} statements"
                )
                raise _wrong(query, message, "one SELECT over the run's tables")
            for name, frame in frames.items():
                connection.register(name, _Stream(frame))
            connection.execute(f"SET allowed_paths = {[str(file) for file in files]}")
            connection.execute("SET enable_external_access = false")
            connection.execute(f"CREATE VIEW requests AS {requests}")
            connection.execute("SET lock_configuration = true")
            names, rows = _interruptible(connection, statements[0].query)
    except UnicodeDecodeError:
        # DuckDB's own message has bytes of a file of requests in it.
        accepted = "requests as raidlab wrote them"
        raise _wrong(query, "cannot be answered: a file of requests holds what is no text", accepted) from None
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return pl.DataFrame([_column(name, values) for name, values in zip(names, columns, strict=True)])


def _interruptible(connection: DuckDBPyConnection, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names of columns, and rows. In a thread: DuckDB's own wait in this one would not see Ctrl-C."""
    with ThreadPoolExecutor(1) as thread:
        rows = thread.submit(_rows, connection, query)
        try:
            # Ctrl-C may reach another thread, and wakes none: so this one wakes by itself.
            while not wait([rows], timeout=_LOOK_EVERY_S).done:
                pass
            return rows.result()
        except BaseException:
            connection.interrupt()
            raise


def _rows(connection: DuckDBPyConnection, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    import duckdb

    try:
        # Once as a table, which is DuckDB's to bound: rows of Python take many times as much.
        connection.execute(f"CREATE TEMP TABLE answer AS FROM (\n{query}\n) LIMIT {_MOST_ROWS + 1}")
        held = connection.sql("FROM answer")
        if _text_bytes(held) > _MOST_BYTES:
            raise _wrong(query, f"answers with more than {_MOST_BYTES >> 20} MiB of text", "a query with LIMIT")
        names, rows = held.columns, held.fetchall()
    except duckdb.InvalidInputException as error:
        # Times with a zone want a library of their own in Python, which raidlab does not need.
        if "pytz" not in str(error).partition("\n")[0]:
            raise
        accepted = "one without: now()::TIMESTAMP, or ::VARCHAR"
        raise _wrong(query, "answers with a time in a time zone", accepted) from None
    except OverflowError:
        raise _wrong(query, "answers with what Python has no room for", "the same as text: ::VARCHAR") from None
    if len(rows) > _MOST_ROWS:
        raise _wrong(query, f"has more than {_MOST_ROWS:,} rows", "a query with LIMIT")
    return names, rows


def _text_bytes(held: DuckDBPyRelation) -> int:
    """How long all texts of an answer are together, and what else has no length of its own as text."""
    quoted = [
        '"{}"'.format(name.replace('"', '""'))
        for name, kind in zip(held.columns, held.types, strict=True)
        if str(kind) not in _OF_FIXED_LENGTH
    ]
    if not quoted:
        return 0
    lengths = " + ".join(f"coalesce(sum(strlen({name}::VARCHAR)), 0)" for name in quoted)
    return int(held.aggregate(lengths).fetchall()[0][0])


def _wrong(query: str, message: str, accepted: str) -> InputError:
    return InputError.one("SQL", message, value=f"'{query}'", accepted=accepted)


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of an answer; what a frame has no type for (a map, say) is text."""
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)


class _Stream:
    """A frame as DuckDB takes it: by Arrow's own protocol, which needs no further library."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def _shut_in() -> dict[str, str | bool | int | float | list[str]]:
    """What DuckDB is started with: a query sees the run's tables, and neither files, network nor a home directory.

    Files and network are shut off before the query, once those of single requests are known.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_persistent_secrets": False,
        # Else the names of our own variables would be tables.
        "python_enable_replacements": False,
        "memory_limit": f"{memory // 2 >> 20}MiB",
        # Nothing is kept on disks, and what would be looked for in the home directory is looked for in vain.
        "temp_directory": "",
        "home_directory": os.devnull,
        "extension_directory": os.devnull,
        "secret_directory": os.devnull,
    }

"""Rows of a table whose values stay in its columns: as dictionaries those of a sweep would take ten times as much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

Columns = Mapping[str, Sequence[Any]]


class TableRow(Mapping[str, Any]):
    """A row, by the names of its columns."""

    __slots__ = ("_columns", "_number")

    def __init__(self, columns: Columns, number: int) -> None:
        self._columns, self._number = columns, number

    def __getitem__(self, column: str) -> Any:
        return self._columns[column][self._number]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def rows_of(frame: pl.DataFrame) -> list[TableRow]:
    """The rows of a frame, in their order."""
    columns = {column.name: _values(column) for column in frame.iter_columns()}
    return [TableRow(columns, number) for number in range(frame.height)]


def _values(column: pl.Series) -> Sequence[Any]:
    """The values of a column as Python has them, each made when it is asked for where that is possible."""
    if column.dtype.is_numeric() and not column.has_nulls():
        return column.to_numpy().data
    # Most texts stand in many rows.
    known: dict[Any, Any] = {}
    return [known.setdefault(value, value) for value in column]

"""A number that the study printed: a cell of a table, or the value of a claim."""

from __future__ import annotations

from typing import Literal

from raidlab.published.quantities.kind import Kind, NotThereError, Reading, Source
from raidlab.study.published import number, read_claims, read_tables
from raidlab.study.words import Line, Table


class Keys(Table):
    """What a measure of this kind says: a claim, or a column of a table and which row."""

    claim: Line | None = None
    """An id of ``claims.csv``."""
    field: Literal["value", "low", "high"] = "value"
    """Which number of the claim."""
    table: Line | None = None
    """A table's name, its file without ``.csv``."""
    column: Line | None = None
    """Which column of the table."""
    where: dict[str, Line] = {}
    """What other columns of its row say; the row must be the only one."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number; None where it is blank, or no number."""
    if keys.claim is not None:
        claims = [claim for claim in read_claims(source.published) if claim.id == keys.claim]
        if not claims:
            raise NotThereError(f"there is no claim '{keys.claim}'")
        text = str(getattr(claims[0], keys.field))
    else:
        text = _cell(keys, source)
    found = number(text)
    return None if found is None else Reading(found)


def _cell(keys: Keys, source: Source) -> str:
    tables = read_tables(source.published, f"{keys.table}.csv")
    rows = [
        row for table in tables for row in table.rows if all(row.get(key) == text for key, text in keys.where.items())
    ]
    if len(rows) > 1 or not tables:
        raise NotThereError(f"{len(rows)} rows of '{keys.table}' match, not one")
    if not rows:
        return ""
    if keys.column not in rows[0]:
        raise NotThereError(f"'{keys.table}' has no column '{keys.column}'")
    return rows[0][keys.column]


KIND = Kind("printed", "a number that the study printed", Keys, read, is_run=False)

"""What a study printed: its claims and its tables, read as text.

Invariants:

- Nothing is rounded or converted: a printed ``.906`` stays that text, because its last digit says how exactly it was
  printed.
- What is in the folder when it is read is what is compared; nothing here knows the names of studies or tables.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path

from raidlab.errors import InputError
from raidlab.reading import read_text

CLAIMS = "claims.csv"
KINDS = ("value", "range", "ratio", "ordinal")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


@dataclass(frozen=True)
class Claim:
    """One line of ``claims.csv``; every field as it is printed."""

    id: str
    topic: str
    kind: str
    value: str
    unit: str
    low: str
    high: str
    conditions: str
    where: str
    checkable_by: str
    note: str

    @property
    def title(self) -> str:
        """What it is of, in words."""
        return ": ".join(text for text in (self.topic.replace("-", " "), self.conditions) if text)


COLUMNS = tuple(field.name for field in fields(Claim))


@dataclass(frozen=True)
class PublishedTable:
    """A printed table."""

    name: str
    """The file's name without its ending."""
    rows: list[dict[str, str]]


def number(text: str) -> float | None:
    """A printed number; None for anything else, such as what no float holds.

    Examples
    --------
    >>> number(".906"), number("1/2"), number("(N-1)/N"), number("1/0")
    (0.906, 0.5, None, None)
    """
    first, slash, second = text.strip().partition("/")
    if not _NUMBER.fullmatch(first) or (slash and not _NUMBER.fullmatch(second)):
        return None
    divisor = float(second) if slash else 1.0
    found = float(first) / divisor if divisor else math.inf
    return found if math.isfinite(found) else None


def half_unit(text: str) -> float:
    """Half of the last printed digit: what rounding alone may account for.

    Examples
    --------
    >>> half_unit("28"), half_unit("1.5"), half_unit(".906")
    (0.5, 0.05, 0.0005)
    """
    _, _, decimals = text.strip().partition(".")
    return float(f"5e-{len(decimals) + 1}")


def read_claims(folder: Path) -> list[Claim]:
    """The claims in ``published/`` of a study; none where there is no such file."""
    file = folder / CLAIMS
    if not file.is_file():
        return []
    rows = _rows(file)
    lacking = [name for name in COLUMNS if rows and name not in rows[0][1]]
    if lacking:
        raise _wrong(file, f"lacks the column '{lacking[0]}'")
    claims = [(line, Claim(**{name: (row[name] or "").strip() for name in COLUMNS})) for line, row in rows]
    seen: set[str] = set()
    for line, claim in claims:
        if claim.id in seen:
            raise _wrong(file, f"has the id '{claim.id}' twice", line)
        if claim.kind not in KINDS:
            raise _wrong(file, f"has the kind '{claim.kind}'; accepted: {', '.join(KINDS)}", line)
        seen.add(claim.id)
    return [claim for _, claim in claims]


def read_tables(folder: Path, pattern: str) -> list[PublishedTable]:
    """The tables in ``published/`` whose file names match a pattern, in the order of their names."""
    # Names alone are matched: a pattern leads to no other folder.
    files = sorted(file for file in folder.iterdir() if fnmatchcase(file.name, pattern)) if folder.is_dir() else []
    return [PublishedTable(file.stem, [row for _, row in _rows(file)]) for file in files if file.name != CLAIMS]


def _rows(file: Path) -> list[tuple[int, dict[str, str]]]:
    """Each row and the line at which it ends."""
    try:
        reader = csv.DictReader(io.StringIO(read_text(file), newline=""))
        columns, rows = reader.fieldnames or [], [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise _wrong(file, f"cannot be read: {why}") from None
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise _wrong(file, f"has the column '{twice[0]}' twice")
    for line, row in rows:
        if None in row or None in row.values():
            raise _wrong(file, "does not have as many fields as the first line", line)
    return rows


def _wrong(file: Path, message: str, line: int | None = None) -> InputError:
    place = f"published/{file.name}" + (f":{line}" if line else "")
    return InputError.one(place, message)

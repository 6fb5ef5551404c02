"""What a comparison amounts to: errors by table and by kind, parameters against data points, and the CSV file.

Invariants:

- Arithmetic and fitted figures are never counted among the predicted, and what is given is counted nowhere.
- Percent and points are summed up apart; signs count for nothing in a median.
- A printed bound is no figure that something could be near: it is kept or not, and counts for no median.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from raidlab.directory import Directory
from raidlab.published.compare.clause import NOISE, sentence_of
from raidlab.published.compare.row import ARITHMETIC, FITTED, GIVEN, PARTLY, PREDICTED, Kind, PublishedRow
from raidlab.results.spreadsheet import spreadsheet_text

FILE = "comparison.csv"
HEADER = (
    "figure",
    "id",
    "quantity",
    "published",
    "unit",
    "simulated_or_measured",
    "low",
    "high",
    "error_percent",
    "kind",
    "note",
)


@dataclass(frozen=True)
class Errors:
    """The errors of some figures."""

    table: str
    kind: str
    unit: str
    """``%`` or ``pt``."""
    count: int
    median: float
    largest: float
    worst: str
    """Of what the largest is."""
    left_out: tuple[float, float] | None = None
    """Median and largest of what figures would have been predicted as without their group; None where none was."""


def errors_of(rows: Iterable[PublishedRow]) -> list[Errors]:
    """Median and largest error of each table, kind and unit, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[PublishedRow]] = {}
    for row in rows:
        if row.verdict == "compared" and row.error is not None and not row.published.is_bound and row.kind != GIVEN:
            groups.setdefault((row.table, row.kind, row.error_unit), []).append(row)
    return [_errors(key, mine) for key, mine in groups.items()]


def _errors(key: tuple[str, str, str], rows: list[PublishedRow]) -> Errors:
    sizes = [abs(row.error or 0.0) for row in rows]
    largest = max(sizes)
    left = [abs(error) for row in rows if (error := row.left_out_error) is not None]
    without = (median(left), max(left)) if left else None
    return Errors(*key, len(rows), median(sizes), largest, rows[sizes.index(largest)].title, without)


# Predictions first: what was fitted to says least.
_BASES: tuple[Kind, ...] = (PREDICTED, PARTLY, FITTED, "measured", ARITHMETIC)


def held_words(rows: Sequence[PublishedRow], what: str) -> str:
    """How many claims and conclusions hold and fail, those on predicted figures apart from those on fitted ones.

    Examples
    --------
    >>> from raidlab.published.compare.row import Published
    >>> row = PublishedRow("", "a", "a > b", Published(""), "holds", kind="predicted")
    >>> failing = PublishedRow("", "b", "b > a", Published(""), "fails", kind="predicted")
    >>> fitted = PublishedRow("", "c", "c > a", Published(""), "holds", kind="fitted")
    >>> held_words([row, failing, fitted], "conclusions hold")
    '2 of 3 conclusions hold (1 of 2 on predicted figures, 1 of 1 on fitted ones); 1 fails'
    """
    held, *rest = held_counts(rows, what)
    return "; ".join([f"{held} ({bases_of(rows)})", *rest])


def held_counts(rows: Sequence[PublishedRow], what: str) -> list[str]:
    """How many claims and conclusions hold, how many fail, and how many are within the noise."""
    judged = [row for row in rows if row.is_judged]
    said = [f"{_held(judged)} {what}"]
    for verdict in ("fails", NOISE):
        if count := sum(row.verdict == verdict for row in judged):
            said.append(f"{count} {'fail' if verdict == 'fails' and count > 1 else verdict}")
    return said


def bases_of(rows: Sequence[PublishedRow]) -> str:
    """How many claims and conclusions hold, by what they rest on."""
    judged = [row for row in rows if row.is_judged]
    groups = {kind: mine for kind in _BASES if (mine := [row for row in judged if row.kind == kind])}
    return ", ".join(
        f"{_held(mine) if len(groups) > 1 else 'all'} on {kind} {'ones' if index else 'figures'}"
        for index, (kind, mine) in enumerate(groups.items())
    )


def _held(rows: Sequence[PublishedRow]) -> str:
    return f"{sum(row.verdict == 'holds' for row in rows)} of {len(rows)}"


def write_csv(rows: Iterable[PublishedRow], folder: Directory) -> Path:
    """Write ``comparison.csv``, if it is another than there is; an error in points says so in its note."""
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([spreadsheet_text(text) for text in _fields(row)] for row in rows)
    content = lines.getvalue().encode()
    with suppress(OSError):
        if folder.has(FILE) and folder.read(FILE, len(content) + 1) == content:
            return folder.path / FILE
    return folder.replace(FILE, content)


def _fields(row: PublishedRow) -> list[str]:
    shown = row.verdict if row.value is None else _number(row.value)
    note = row.note
    if row.clauses:
        alone = "one run, without an interval" if row.is_single else ""
        figures = sentence_of(row.clauses, len(row.clauses))
        note = "; ".join(part for part in (row.says, figures, alone, row.note, row.details) if part)
    if row.error is not None and row.published.is_percent:
        note = "; ".join(part for part in ("error in points", note) if part)
    if row.verdict == "no published value":
        note = "; ".join(part for part in (row.verdict, note) if part)
    return [
        row.figure,
        row.id,
        row.quantity,
        row.published.text,
        row.published.unit,
        shown,
        _number(row.low),
        _number(row.high),
        "" if row.error is None else f"{row.error:.3g}",
        row.kind,
        note,
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"

"""Results of others: requests a second by controller, level, workload and depth, as somebody else measured them.

Invariants:

- They are kept in the run's folder (``foreign/``), apart from its tables, so that a report can be written again and
  nobody takes them for measured here.
- What a file does not say of its figures is unknown, and is named wherever they are shown.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from raidlab.directory import Directory
from raidlab.errors import InputError, OutputError
from raidlab.reading import MOST_BYTES, read_bytes

FOLDER = "foreign"
NEEDED = ("controller", "level", "workload", "depth", "iops")
OPTIONAL = ("source", "drives", "write_cache", "note")
# What bears on requests a second and is seldom told.
SETTINGS = {"source": "source", "drives": "drives", "write_cache": "write cache"}
_UNKNOWN = ("", "unknown", "?")
# Python takes more for numbers than anybody means: underscores, digits of other scripts.
_WHOLE = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]{1,4})?|[0-9]+\.")


@dataclass(frozen=True)
class ForeignRow:
    """One figure of somebody else's; texts are as the file has them, blank where it says nothing."""

    controller: str
    level: str
    workload: str
    depth: int
    iops: float
    source: str = ""
    drives: str = ""
    write_cache: str = ""
    note: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is not known of how it was measured."""
        return tuple(word for key, word in SETTINGS.items() if getattr(self, key).lower() in _UNKNOWN)

    @property
    def label(self) -> str:
        """How it is called in a figure."""
        words = [
            *([self.source] if "source" not in self.unknown else []),
            *(f"{word} unknown" for word in self.unknown),
        ]
        return f"{self.controller} (foreign{': ' if words else ''}{', '.join(words)})"


def read_foreign(file: Path) -> list[ForeignRow]:
    """Read a file of foreign results."""
    try:
        text = read_bytes(file)
    except OSError as error:
        raise _wrong(file, f"cannot be read: {error.strerror}", "a CSV file") from None
    return _rows(file, text)


def _rows(file: Path, text: bytes) -> list[ForeignRow]:
    try:
        reader = csv.DictReader(io.StringIO(text.decode("utf-8-sig"), newline=""))
        columns, rows = reader.fieldnames or [], [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise _wrong(file, f"cannot be read: {error}", "a CSV file") from None
    accepted = f"the columns {', '.join(NEEDED)}, and perhaps {', '.join(OPTIONAL)}"
    for name in NEEDED:
        if name not in columns:
            raise _wrong(file, f"has no column '{name}'", accepted)
    for name in columns:
        if name not in (*NEEDED, *OPTIONAL):
            raise _wrong(file, f"has a column '{name}'", accepted)
        if columns.count(name) > 1:
            raise _wrong(file, f"has the column '{name}' twice", accepted)
    return [_row(file, line, row) for line, row in rows]


def _row(file: Path, line: int, row: dict[str, str | None]) -> ForeignRow:
    if None in row or None in row.values():
        raise _wrong(file, "does not have as many fields as the first line", "one field a column", line)
    text = {name: (value or "").strip() for name, value in row.items()}
    for name in ("controller", "level", "workload"):
        if not text[name]:
            raise _wrong(file, f"says no {name}", "a name", line)
    said_depth, said_iops = text.pop("depth"), text.pop("iops")
    depth = int(said_depth) if _WHOLE.fullmatch(said_depth) else 0
    iops = float(said_iops) if _NUMBER.fullmatch(said_iops) else 0.0
    if depth < 1:
        raise _wrong(file, "has a depth that is none", "a whole number of at least 1", line)
    if not 0 < iops < float("inf"):
        raise _wrong(file, "has a number of requests a second that is none", "a number above 0", line)
    return ForeignRow(depth=depth, iops=iops, **text)


def keep_foreign(folder: Path, files: Iterable[Path]) -> None:
    """Check files of foreign results, and keep them in a run's folder in the place of those that were there."""
    checked = [file for file in files if read_foreign(file) is not None]
    names = [file.name for file in checked]
    for name in names:
        if names.count(name) > 1:
            raise InputError.one("--foreign", "two files have one name", value=f"'{name}'", accepted="names used once")
    # A report written again names the files that it keeps: they must not be removed before they are copied.
    texts = {file.name: read_bytes(file) for file in checked}
    try:
        with Directory.open(folder) as run, run.child(FOLDER, make=True) as kept:
            for name in kept.names():
                if name not in texts:
                    kept.remove(name)
            for name, text in texts.items():
                kept.replace(name, text)
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def kept_foreign(folder: Path) -> Iterator[ForeignRow]:
    """The foreign results that a run's folder keeps."""
    try:
        with Directory.open(folder) as run, run.child(FOLDER) as kept:
            texts: dict[str, bytes] = {}
            for name in kept.names():
                if name.endswith(".csv"):
                    texts[name] = kept.read(name, MOST_BYTES - sum(map(len, texts.values())))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _wrong(folder / FOLDER, f"cannot be read: {error.strerror}", "a folder of CSV files") from None
    for name, text in texts.items():
        yield from _rows(folder / FOLDER / name, text)


def _wrong(file: Path, message: str, accepted: str, line: int | None = None) -> InputError:
    return InputError.one(f"--foreign {file.name}" + (f":{line}" if line else ""), message, accepted=accepted)

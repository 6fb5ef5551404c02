"""The file of parts: what a run has measured so far, a line an outcome, on disk before the next one begins.

Invariants:

- A line is there as a whole or not at all: half a line at the end, as a crash or a full disk leaves it, is no line, and
  is cut off before anything is appended.
- When `Parts.append` has returned, the line survives a machine that loses its power.
- The file is locked by whoever may append to it. What is appended is never changed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raidlab.directory import Directory, sync

PARTS = "parts.jsonl"
Records = list[dict[str, Any]]


class Parts:
    """The file of parts of one run, open for appending and locked.

    Parameters
    ----------
    file : pathlib.Path
    resumed : bool
        Append to what is there, rather than begin.

    Raises
    ------
    BlockingIOError
        When somebody else holds it.
    """

    def __init__(self, file: Path, *, resumed: bool = False) -> None:
        # Unbuffered: what a full disk refuses must not lie in wait until the file is closed.
        with Directory.open(file.parent) as folder:
            descriptor = folder.open_file(file.name, os.O_RDWR) if resumed else folder.create_file(file.name)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        if not try_lock(self._file):
            self._file.close()
            raise BlockingIOError(errno.EAGAIN, "is still being written by its run")
        self._length = 0
        if resumed:
            self._length = max((end for end, _ in whole_lines(file)), default=0)
            os.ftruncate(self._file.fileno(), self._length)
            self._file.seek(self._length)
        else:
            for place in (file.parent, file.parent.parent):
                with suppress(OSError), Directory.open(place) as folder:
                    folder.sync()

    def append(self, record: dict[str, Any]) -> None:
        """Append a record, and have it on disk."""
        line = json_text(record).encode() + b"\n"
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            sync(self._file.fileno())
        except OSError:
            # Half a line would be taken for the end of what was measured.
            os.ftruncate(self._file.fileno(), self._length)
            self._file.seek(self._length)
            raise
        self._length += len(line)

    def close(self) -> None:
        """Append no more, and let others have it."""
        self._file.close()


def json_text(record: dict[str, Any], *, indent: int | None = None) -> str:
    """A record as JSON: on one line, or indented with its keys in order."""
    if indent is None:
        return json.dumps(record, default=_plain, separators=(",", ":"))
    return json.dumps(record, default=_plain, indent=indent, sort_keys=True)


def _plain(value: Any) -> Any:
    """NumPy values as plain ones, for JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot be written to JSON: {type(value)}")


def whole_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a file of parts, each with the length of the file up to its end.

    The last line counts only if it can be read: a machine that lost its power may have written its end and not its
    middle.

    Raises
    ------
    ValueError
        When another line cannot be read.
    """
    length, broken = 0, ""
    with opened(file) as lines:
        for number, line in enumerate(lines, start=1):
            if broken:
                raise ValueError(broken)
            if not line.endswith(b"\n"):
                return
            length += len(line)
            try:
                yield length, json.loads(line)
            except ValueError as error:
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                broken = f"line {number} of {file.name} is not JSON ({why}); without that line the others can be read"


def read_parts(folder: Path) -> tuple[dict[str, Any], Records, Records]:
    """The facts, cells and holds of a folder's parts.

    Of a cell that was cut short and run again after all, only the later one counts.

    Raises
    ------
    OSError, KeyError, TypeError, ValueError
        When there are none, or they are not raidlab's.
    """
    facts: dict[str, Any] = {}
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    holds: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _, record in whole_lines(folder / PARTS):
        if "facts" in record:
            facts |= record["facts"]
        elif "row" in record:
            holds[tuple(record["rank"])] = record
        else:
            cells[*record["rank"], record["identity"]["purpose"]] = record
    return facts, list(cells.values()), list(holds.values())


def first_facts(folder: Path) -> dict[str, Any]:
    """The facts that a run wrote when it began; nothing where there are none that can be read."""
    try:
        with opened(folder / PARTS) as lines:
            record = json.loads(lines.readline())
        return dict(record["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def is_being_written(folder: Path) -> bool:
    """Whether a run holds the parts of a folder."""
    try:
        with opened(folder / PARTS) as parts:
            return not try_lock(parts, fcntl.LOCK_SH)
    except OSError:
        return False


def opened(file: Path) -> BinaryIO:
    """A regular file of a run folder, open for reading; in the folder no link is followed.

    Raises
    ------
    OSError
    """
    with Directory.open(file.parent) as folder:
        return os.fdopen(folder.open_file(file.name), "rb")


def try_lock(file: Any, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock a file; False if somebody else holds it. In a file system without locks nobody holds anything."""
    try:
        fcntl.flock(file.fileno(), kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True

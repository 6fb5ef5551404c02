"""The file of parts: what a run has measured so far, a line an outcome, on disk before the next one begins.

Invariants:

- A line is there as a whole or not at all: half a line at the end, as a crash or a full disk leaves it, is no line, and
  is cut off before anything is appended.
- When `PartsFile.append` has returned, the line survives a machine that loses its power.
- The file is locked by whoever may append to it. What is appended is never changed: a line ends with a checksum of the
  rest of it (``crc32``), and one that does not fit is refused. Lines of raidlab 0.1.0 have none.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from raidlab.directory import Directory, sync
from raidlab.reading import json_value
from raidlab.results.answer import CellRecord, HoldRecord
from raidlab.results.facts import UnfinishedFacts, checked_unfinished

PARTS = "parts.jsonl"
# Of the parts of others: a cell that was measured for a day has a line a quarter as long, and its run as many lines as
# it has cells. What this run has written itself it reads, however long it is.
MOST_LINE_BYTES = 256 << 20
MOST_PARTS_BYTES = 1 << 30
# Of its first line, and of ``run.json``: the text of a study, which JSON may make three times as long, and the rest.
# Those of the studies here have some hundred KiB.
MOST_FACTS_BYTES = 64 << 20

_CHECKSUM = re.compile(rb',"crc32":"([0-9a-f]{8})"}\n$')


class PartsFile:
    """The file of parts of one run, open for appending and locked; a `BlockingIOError` while somebody else holds it.

    What is ``resumed`` is appended to, rather than begun.
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

    def append(self, record: Mapping[str, object]) -> None:
        """Append a record, and have it on disk."""
        line = _with_checksum(json_text(record).encode())
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


def json_text(record: Mapping[str, object], *, indent: int | None = None) -> str:
    """A record as JSON: on one line, or indented with its keys in order."""
    if indent is None:
        return json.dumps(record, default=_plain, separators=(",", ":"))
    return json.dumps(record, default=_plain, indent=indent, sort_keys=True)


def _with_checksum(text: bytes) -> bytes:
    """A record as a line, with the checksum of its text as its last key."""
    return b'%s,"crc32":"%08x"}\n' % (text[:-1], zlib.crc32(text))


def _is_unchanged(line: bytes, record: Any) -> bool | None:
    """Whether a line is as it was written; None where it has no checksum."""
    found = _CHECKSUM.search(line)
    if found is not None:
        return zlib.crc32(line[: found.start()] + b"}") == int(found[1], 16)
    return False if isinstance(record, dict) and "crc32" in record else None


def _plain(value: Any) -> Any:
    """NumPy values as plain ones, for JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot be written to JSON: {type(value)}")


def whole_lines(file: Path, *, is_own: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a file of parts, each with the length of the file up to its end.

    The last line counts only if it can be read: a machine that lost its power may have written its end and not its
    middle. Another one that cannot, or that was changed after it was written, is a `ValueError`; so is a file or a line
    that is too long, but for those that this process wrote (``is_own``).
    """
    length, broken, is_checked = 0, "", False
    longest = -1 if is_own else MOST_LINE_BYTES + 1
    with opened(file) as lines:
        if not is_own and os.fstat(lines.fileno()).st_size > MOST_PARTS_BYTES:
            raise ValueError(f"{file.name} is longer than {MOST_PARTS_BYTES:,} bytes")
        for number, line in enumerate(iter(lambda: lines.readline(longest), b""), start=1):
            if not is_own and len(line) > MOST_LINE_BYTES:
                raise ValueError(f"line {number} of {file.name} is longer than {MOST_LINE_BYTES:,} bytes")
            if broken:
                raise ValueError(broken)
            if not line.endswith(b"\n"):
                return
            length += len(line)
            try:
                record = json_value(line)
            except ValueError as error:
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                broken = f"line {number} of {file.name} is not JSON ({why}); without that line the others can be read"
                continue
            is_unchanged = _is_unchanged(line, record)
            # What follows a line with a checksum has one too.
            if is_unchanged is False or (is_checked and is_unchanged is None):
                raise ValueError(
                    f"line {number} of {file.name} was changed after it was written (its checksum does not fit); "
                    "without that line the others can be read"
                )
            is_checked = is_checked or bool(is_unchanged)
            if is_unchanged:
                del record["crc32"]
            yield length, record


def read_parts(folder: Path, *, is_own: bool = False) -> tuple[dict[str, object], list[CellRecord], list[HoldRecord]]:
    """The facts, cells and holds of a folder's parts; ``is_own`` as in `whole_lines`.

    Of a cell that was cut short and run again after all, only the later one counts.
    """
    facts: dict[str, object] = {}
    cells: dict[tuple[Any, ...], CellRecord] = {}
    holds: dict[tuple[Any, ...], HoldRecord] = {}
    for _, record in whole_lines(folder / PARTS, is_own=is_own):
        if "facts" in record:
            facts |= record["facts"]
        elif "row" in record:
            holds[tuple(record["rank"])] = cast("HoldRecord", record)
        else:
            cells[*record["rank"], record["identity"]["purpose"]] = cast("CellRecord", record)
    return facts, list(cells.values()), list(holds.values())


def first_facts(folder: Path) -> UnfinishedFacts | None:
    """The facts that a run wrote when it began; None where there are none that can be read."""
    try:
        with opened(folder / PARTS) as lines:
            return checked_unfinished(json_value(lines.readline(MOST_FACTS_BYTES))["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_being_written(folder: Path) -> bool:
    """Whether a run holds the parts of a folder."""
    try:
        with opened(folder / PARTS) as parts:
            return not try_lock(parts, fcntl.LOCK_SH)
    except OSError:
        return False


def opened(file: Path) -> BinaryIO:
    """A regular file of a run folder, open for reading; in the folder no link is followed."""
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

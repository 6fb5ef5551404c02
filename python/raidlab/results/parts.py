"""The file of parts: what a run has measured so far, a line an outcome, on disk before the next one begins.

Invariants:

- A line is there as a whole or not at all: half a line at the end, as a crash or a full disk leaves it, is no line, and
  is cut off before anything is appended.
- When `PartsFile.append` has returned, the line survives this process. What it costs to have it on disk is paid once a
  second at most: a machine that loses its power loses no cell but those that had come within one second.
- A run may have more cells than fit into memory: what is kept of each is where its line lies (`CellParts`).
- The file is locked by whoever may append to it. What is appended is never changed: a line ends with a checksum of the
  rest of it (``crc32``), and one that does not fit is refused. Lines of raidlab 0.1.0 have none.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from raidlab.directory import Directory, sync
from raidlab.reading import json_value
from raidlab.results.answer import CellAnswer, CellIdentity, CellRecord, HoldRecord
from raidlab.results.facts import UnfinishedFacts, checked_unfinished
from raidlab.study import LoadPoint
from raidlab.study.expand import cell_name
from raidlab.written import WrittenAnswer, json_text

PARTS = "parts.jsonl"
# Of the parts of others: a cell that was measured for a day has a line a quarter as long, and its run as many lines as
# it has cells. What this run has written itself it reads, however long it is.
MOST_LINE_BYTES = 256 << 20
MOST_PARTS_BYTES = 1 << 30
# Of a run that goes on, which is not put together in memory: three million small cells.
MOST_RESUMED_BYTES = 64 << 30
# Of its first line, and of ``run.json``: the text of a study, which JSON may make three times as long, and the rest.
# Those of the studies here have some hundred KiB.
MOST_FACTS_BYTES = 64 << 20

_SYNC_EVERY_S = 1.0
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
        self._length, self._synced_s = 0, -math.inf
        if resumed:
            self._length = max((end for end, _ in whole_lines(file, most_bytes=MOST_RESUMED_BYTES)), default=0)
            os.ftruncate(self._file.fileno(), self._length)
            self._file.seek(self._length)
        else:
            for place in (file.parent, file.parent.parent):
                with suppress(OSError), Directory.open(place) as folder:
                    folder.sync()

    def append(self, record: Mapping[str, object]) -> None:
        """Append a record, and have it on disk with those before it, if that was not done within the last second."""
        pieces = _with_checksum(record_pieces(record))
        length = sum(map(len, pieces))
        try:
            written = os.writev(self._file.fileno(), pieces)
            # As at the end of a disk.
            while written < length:
                written += self._file.write(b"".join(pieces)[written:]) or 0
            self._sync()
        except OSError:
            # Half a line would be taken for the end of what was measured.
            os.ftruncate(self._file.fileno(), self._length)
            self._file.seek(self._length)
            raise
        self._length += length

    def _sync(self) -> None:
        if time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            sync(self._file.fileno())
            self._synced_s = time.monotonic()

    def close(self) -> None:
        """Append no more, and let others have it."""
        with suppress(OSError, ValueError):
            sync(self._file.fileno())
        self._file.close()


def record_pieces(record: Mapping[str, object]) -> list[bytes]:
    """A record as JSON without its last brace; an answer that is written already is a piece as it is, not copied."""
    answer = record.get("answer")
    if not isinstance(answer, WrittenAnswer):
        return [json_text(record).encode()[:-1]]
    rest = json_text({key: value for key, value in record.items() if key != "answer"}).encode()
    return [rest[:-1] + b',"answer":', answer.text]


def _with_checksum(pieces: list[bytes]) -> list[bytes]:
    """A record as a line, with the checksum of its text as its last key."""
    checksum = 0
    for piece in (*pieces, b"}"):
        checksum = zlib.crc32(piece, checksum)
    return [*pieces, b',"crc32":"%08x"}\n' % checksum]


def _is_unchanged(line: bytes, record: Any) -> bool | None:
    """Whether a line is as it was written; None where it has no checksum."""
    found = _CHECKSUM.search(line)
    if found is not None:
        return zlib.crc32(line[: found.start()] + b"}") == int(found[1], 16)
    return False if isinstance(record, dict) and "crc32" in record else None


def whole_lines(
    file: Path, *, is_own: bool = False, most_bytes: int = MOST_PARTS_BYTES
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a file of parts, each with the length of the file up to its end.

    The last line counts only if it can be read: a machine that lost its power may have written its end and not its
    middle. Another one that cannot, or that was changed after it was written, is a `ValueError`; so is a file or a line
    that is too long, but for those that this process wrote (``is_own``).
    """
    length, broken, is_checked = 0, "", False
    longest = -1 if is_own else MOST_LINE_BYTES + 1
    # How deep a line nests is looked at in those of others only: that takes longer than to read it.
    read = json.loads if is_own else json_value
    with opened(file) as lines:
        if not is_own and os.fstat(lines.fileno()).st_size > most_bytes:
            raise ValueError(f"{file.name} is longer than {most_bytes:,} bytes")
        for number, line in enumerate(iter(lambda: lines.readline(longest), b""), start=1):
            if not is_own and len(line) > MOST_LINE_BYTES:
                raise ValueError(f"line {number} of {file.name} is longer than {MOST_LINE_BYTES:,} bytes")
            if broken:
                raise ValueError(broken)
            if not line.endswith(b"\n"):
                return
            length += len(line)
            try:
                record = read(line)
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


class _Line(NamedTuple):
    """Where a cell stands in the tables, and its line in the file."""

    rank: tuple[float, ...]
    name: str
    is_whole: bool
    begin: int
    end: int


class CellParts(Collection[CellRecord]):
    """The cells of a file of parts, in canonical order, each read from its line when it is wanted."""

    def __init__(self, file: Path, lines: list[_Line]) -> None:
        self._file, self._lines = file, sorted(lines, key=lambda line: line.rank)

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, record: object) -> bool:
        return any(record == one for one in self)

    def __iter__(self) -> Iterator[CellRecord]:
        with opened(self._file) as parts:
            for line in self._lines:
                yield _record_at(parts, line)

    def answers(self) -> KnownAnswers:
        """What the engine answered to each cell that ran to its end."""
        return KnownAnswers(self._file, {line.name: line for line in self._lines if line.is_whole})


class KnownAnswers(Mapping[str, CellAnswer]):
    """Answers by their cells' names, each read from its line when it is asked for."""

    def __init__(self, file: Path, lines: Mapping[str, _Line]) -> None:
        self._file, self._lines = file, lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __getitem__(self, name: str) -> CellAnswer:
        with opened(self._file) as parts:
            return _record_at(parts, self._lines[name])["answer"]


def _record_at(parts: BinaryIO, line: _Line) -> CellRecord:
    """The record of a line that was looked at before."""
    parts.seek(line.begin)
    return cast("CellRecord", json.loads(parts.read(line.end - line.begin)))


def read_parts(
    folder: Path, *, is_own: bool = False, most_bytes: int = MOST_PARTS_BYTES
) -> tuple[dict[str, object], CellParts, list[HoldRecord]]:
    """The facts, cells and holds of a folder's parts; ``is_own`` and ``most_bytes`` as in `whole_lines`.

    Of a cell that was cut short and run again after all, only the later one counts.
    """
    facts: dict[str, object] = {}
    cells: dict[tuple[Any, ...], _Line] = {}
    holds: dict[tuple[Any, ...], HoldRecord] = {}
    begin = 0
    for end, record in whole_lines(folder / PARTS, is_own=is_own, most_bytes=most_bytes):
        if "facts" in record:
            facts |= record["facts"]
        elif "row" in record:
            holds[tuple(record["rank"])] = cast("HoldRecord", record)
        else:
            rank, identity = tuple(record["rank"]), record["identity"]
            is_whole = not record["answer"].get("interrupted")
            cells[rank, identity["purpose"]] = _Line(rank, _name(identity), is_whole, begin, end)
        begin = end
    return facts, CellParts(folder / PARTS, list(cells.values())), list(holds.values())


def _name(identity: CellIdentity) -> str:
    point = LoadPoint(identity["load"], identity["depth"], identity["rate_per_s"])
    return cell_name(identity["target"], identity["array"], identity["workload"], point, identity["repeat"])


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

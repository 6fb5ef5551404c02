"""From parts to tables: how a run folder becomes one that others read.

Invariants:

- Finishing is a pure function of the parts and the facts: two simulated runs with one seed give the same bytes in
  every file, but for the ``times`` of ``run.json``.
- ``run.json`` is there only when all tables are, whole and on disk. The parts of a complete run are removed after that;
  those of any other stay, so that it can be resumed.
- A run that was killed is shown from its parts, in memory; only ``--resume`` finishes it.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import cast

import polars as pl

from raidlab.directory import Directory, Identity
from raidlab.errors import InputError
from raidlab.results.answer import HoldRecord
from raidlab.results.damage import first_line
from raidlab.results.facts import Facts, RunPeriod, RunTimes, UnfinishedFacts, checked_unfinished
from raidlab.results.growing import GrowingTable
from raidlab.results.parts import MOST_PARTS_BYTES, PARTS, CellParts, opened, read_parts, try_lock
from raidlab.results.records import remove_unlisted
from raidlab.results.tables import SCHEMA_VERSION, TABLES, frames, frames_by_part
from raidlab.written import json_text

RUN = "run"
_BLOCK_BYTES = 1 << 20
# What a run that was killed while it was finished leaves: a new file that never got its name.
_UNFINISHED = re.compile(r"(?:[a-z_]+\.parquet|run\.json)\.[0-9a-f]{8}\.new")
# What parts that are not raidlab's may end in while they are read.
WRONG_PARTS = (KeyError, TypeError, ValueError)
_KILLED = "raidlab was killed, or could not write; what it had written until then is shown"


def write_run(
    folder: Path, facts: Facts, cells: CellParts, holds: list[HoldRecord], identity: Identity | None = None
) -> None:
    """Write tables and ``run.json``, and take the parts of a complete run away.

    ``identity`` is that of the folder when the run began to write into it.
    """
    digests = {}
    with Directory.open(folder, identity) as place, ExitStack() as held:
        tables = {name: held.enter_context(closing(GrowingTable(place, name))) for name in TABLES}
        recorded: set[str] = set()
        for part in frames_by_part(cells, holds):
            recorded.update(part["records"]["file"])
            for name, rows in part.items():
                tables[name].add(rows)
        for name, table in tables.items():
            with place.replacing(f"{name}.parquet") as file:
                table.write_to(file)
                file.seek(0)
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
        _close(place, facts, digests, recorded)


def write_kept(folder: Path, facts: Facts, tables: Mapping[str, Path], identity: Identity | None = None) -> None:
    """Take the tables of a run from files that are called by their digests, and write ``run.json``.

    A `ChangedError` for one whose content is another by now: then there is no ``run.json``, and the parts stay.
    """
    digests = {}
    with Directory.open(folder, identity) as place:
        for name, kept in tables.items():
            try:
                source = kept.open("rb")
            except OSError:
                raise ChangedError(kept) from None
            with source, place.replacing(f"{name}.parquet") as file:
                shutil.copyfileobj(source, file, _BLOCK_BYTES)
                file.seek(0)
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
                if kept.parent.name + kept.name != digests[name]:
                    raise ChangedError(kept)
        _close(place, facts, digests, set())


class ChangedError(ValueError):
    """A kept file is not what it was when it was written."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} was changed, or removed, after it was written")
        self.file = file


def _close(place: Directory, facts: Facts, digests: Mapping[str, str], recorded: set[str]) -> None:
    """Write ``run.json`` beside the tables, and take away what is needed no more."""
    # So that a table of another run, or one that somebody edited, is not taken for what was measured.
    facts = {**facts, "tables": {name: {"sha256": digest} for name, digest in digests.items()}}
    place.replace("run.json", f"{json_text(facts, indent=2)}\n".encode())
    for name in filter(_UNFINISHED.fullmatch, place.names()):
        place.remove(name)
    remove_unlisted(place, recorded)
    # What cannot be resumed has no use for its parts either.
    if facts["status"] == "complete" or facts["command"] != RUN:
        place.remove(PARTS)
        place.sync()


def begun(times: RunTimes | None, now: datetime.datetime) -> RunTimes:
    """The times of a run that begins, or goes on, now."""
    session: RunPeriod = {"started": now.isoformat(timespec="milliseconds")}
    if times is None:
        return {"started": now.isoformat(timespec="seconds"), "sessions": [session]}
    return {"started": times["started"], "sessions": [*times["sessions"], session]}


def ended(times: RunTimes, at: datetime.datetime) -> RunTimes:
    """The times of a run whose last session ended at a moment.

    Examples
    --------
    >>> start, end = (datetime.datetime(2026, 1, 1, 0, 0, s, tzinfo=datetime.UTC) for s in (0, 3))
    >>> ended(begun(None, start), end)["elapsed_s"]
    3.0
    """
    *before, last = times["sessions"]
    sessions: list[RunPeriod] = [*before, {"ended": at.isoformat(timespec="milliseconds"), **last}]
    lengths = [_moment(session["ended"]) - _moment(session["started"]) for session in sessions]
    return {
        "started": times["started"],
        "finished": at.isoformat(timespec="seconds"),
        "elapsed_s": round(sum(length.total_seconds() for length in lengths), 1),
        "sessions": sessions,
    }


def last_written(folder: Path) -> datetime.datetime:
    """When the last part was written."""
    with opened(folder / PARTS) as parts:
        return datetime.datetime.fromtimestamp(os.fstat(parts.fileno()).st_mtime, datetime.UTC)


def unfinished_run(folder: Path) -> tuple[Facts, dict[str, pl.DataFrame]]:
    """The facts and tables of a run that was killed and left its parts behind; the folder stays as it is."""
    try:
        with opened(folder / PARTS) as parts:
            # Whoever reads keeps nobody from reading.
            if not try_lock(parts, fcntl.LOCK_SH):
                raise wrong_folder(folder, "is still being written by its run", "a run that has ended")
            facts, cells, holds = known_parts(folder)
            times = ended(facts["times"], last_written(folder))
            ending = {"status": "failed", "failure": _KILLED, "interrupted_by": None, "times": times}
            shown = cast(Facts, {"live_members": [], "live_engine": None, **facts, **ending})
            return shown, frames(cells, holds)
    except OSError as error:
        raise wrong_folder(folder, f"has parts that cannot be read: {error.strerror}") from None
    except (*WRONG_PARTS, AttributeError, ArithmeticError, pl.exceptions.PolarsError) as error:
        # What the engine answered is taken as it is; in parts that somebody made up it may be anything.
        raise _foreign(folder, error) from None


def known_parts(
    folder: Path, most_bytes: int = MOST_PARTS_BYTES
) -> tuple[UnfinishedFacts, CellParts, list[HoldRecord]]:
    """The facts, cells and holds of a folder's parts, if this version of raidlab can finish them.

    Parts that are not raidlab's end in one of `WRONG_PARTS`, or in an `OSError`.
    """
    read, cells, holds = read_parts(folder, most_bytes=most_bytes)
    if "study" not in read:
        raise wrong_folder(
            folder, f"was killed before it wrote what it runs ({PARTS} has no facts)", "another run folder"
        )
    if read.get("schema_version") != SCHEMA_VERSION:
        maker = read.get("raidlab")
        version = f" ({maker.get('version')})" if isinstance(maker, dict) else ""
        raise wrong_folder(
            folder,
            f"was killed, and its parts are of result schema {read.get('schema_version')}",
            f"parts of schema {SCHEMA_VERSION}, or the raidlab that wrote them{version}",
        )
    return checked_unfinished(read), cells, holds


def wrong_folder(folder: Path, message: str, accepted: str | None = None) -> InputError:
    """What is wrong with a run folder, as an error."""
    return InputError.one("run", message, value=f"'{folder}'", accepted=accepted)


def _foreign(folder: Path, error: Exception) -> InputError:
    return wrong_folder(folder, f"has parts that are not raidlab's: {first_line(error)}")


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)

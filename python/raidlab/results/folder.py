"""Run folders: written cell by cell while a study runs, finished into Parquet and JSON.

Invariants:

- Append-only while running: each outcome is one line of ``parts.jsonl``, written as a whole, so that a crash loses at
  most the cell that was being measured. The facts of the run stand in the same file: it is enough to finish the run.
- ``parts.jsonl`` is removed only when tables and ``run.json`` are written, and locked while a run writes it.
- Finishing is a pure function of the parts and the facts: two simulated runs with one seed give the same bytes in
  every file, but for the ``times`` of ``run.json``.
- A folder is made new and never written into by a second run.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from raidlab.errors import InputError, OutputError
from raidlab.results.provenance import host_facts, version_facts
from raidlab.results.tables import SCHEMA_VERSION, frames
from raidlab.run.outcome import CellOutcome, HoldOutcome, Outcome
from raidlab.study import Cell, HoldTask, LoadedStudy
from raidlab.study.expand import NULL

PARTS = "parts.jsonl"
_COMPRESSION_LEVEL = 3


def new_folder(base: Path, study: str) -> Path:
    """Make ``<base>/<study>-<date>-<seq>``, the first sequence number that is free.

    Examples
    --------
    ``runs/quickstart-2026-11-21-001``
    """
    date = datetime.date.today().isoformat()
    try:
        base.mkdir(parents=True, exist_ok=True)
        for sequence in range(1, 10_000):
            folder = base / f"{study}-{date}-{sequence:03}"
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise InputError.one(
            "--out",
            f"no folder can be made there: {error.strerror}",
            value=f"'{base}'",
            accepted="a directory that can be written, or one that can be made",
        ) from None
    raise InputError.one("--out", f"is full of runs of {study} of {date}", value=f"'{base}'")


class RunWriter:
    """Writes one run folder.

    Parameters
    ----------
    folder : pathlib.Path
        A folder made by `new_folder`.
    loaded : LoadedStudy
    seed : int
    targets : list of str
        What was asked for, in the user's words.
    quick : bool
    argv : list of str
        The command, as it can be given again.
    """

    def __init__(
        self, folder: Path, loaded: LoadedStudy, *, seed: int, targets: list[str], quick: bool, argv: list[str]
    ) -> None:
        self.folder = folder
        self._loaded = loaded
        self._started = _now()
        self._facts = {
            "schema_version": SCHEMA_VERSION,
            "study": {"name": loaded.study.name, "sha256": loaded.sha256, "text": loaded.text},
            "seed": seed,
            "targets": targets,
            "quick": quick,
            "argv": argv,
            "raidlab": version_facts(),
            "host": host_facts(),
            "trees": loaded.geometry.trees,
            "devices": {name: model.parameters for name, model in loaded.geometry.devices.items()},
        }
        self._live_engine: Any = None
        self._live_members: list[dict[str, Any]] = []
        self._ranks = _Ranks(loaded)
        self._cells = 0
        times = {"started": self._started.isoformat(timespec="seconds")}
        try:
            self._parts = _Parts(folder / PARTS)
            self._parts.append(_text({"facts": {**self._facts, "times": times}}))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise InputError.one("--out", f"cannot be written: {error.strerror}", value=f"'{folder.parent}'") from None

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been measured."""
        return self._cells == 0

    def add(self, outcome: Outcome, member_bytes: int, sector_bytes: int) -> None:
        """Append one outcome.

        Parameters
        ----------
        outcome : CellOutcome or HoldOutcome
        member_bytes, sector_bytes : int
            Of the members it ran on.
        """
        if isinstance(outcome, CellOutcome):
            record = self._cell_record(outcome, member_bytes, sector_bytes)
            if outcome.cell.target in ("live", NULL):
                self._live_engine = (outcome.answer.get("facts") or {}).get("engine") or self._live_engine
        else:
            record = self._hold_record(outcome)
        self._append(record)
        self._cells += 1

    def note_members(self, live_members: list[dict[str, Any]]) -> None:
        """Write down facts of live members that were not known before, for the case that the run is killed."""
        if len(live_members) > len(self._live_members):
            self._live_members = list(live_members)
            self._append({"facts": {"live_members": live_members, "live_engine": self._live_engine}})

    def close(self) -> None:
        """Write no more, and leave the parts as they are, if there are any."""
        if self.is_empty:
            self.discard()
        self._parts.close()

    def discard(self) -> None:
        """Take the folder away again: nothing was measured."""
        self._parts.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def give_up(self, failure: str, live_members: list[dict[str, Any]]) -> None:
        """End a run that was refused: without a trace if nothing was measured."""
        if self.is_empty:
            self.discard()
        else:
            self.finish("failed", failure, live_members)

    def finish(
        self,
        status: str,
        failure: str | None,
        live_members: list[dict[str, Any]],
        interrupted_by: str | None = None,
        more: dict[str, Any] | None = None,
    ) -> Path:
        """Turn the parts into tables and write ``run.json``, with ``more`` facts; returns the folder."""
        started, finished = self._started, _now()
        facts = {
            **self._facts,
            **(more or {}),
            "status": status,
            "failure": failure,
            "interrupted_by": interrupted_by,
            "live_members": live_members,
            "live_engine": self._live_engine,
            "times": {
                "started": started.isoformat(timespec="seconds"),
                "finished": finished.isoformat(timespec="seconds"),
                "elapsed_s": round((finished - started).total_seconds(), 1),
            },
        }
        try:
            _write_tables(self.folder, *_read_parts(self.folder)[1:])
            _write_facts(self.folder, facts)
        except OSError as error:
            raise self._unwritten(error) from None
        finally:
            self._parts.close()
        return self.folder

    def _append(self, record: dict[str, Any]) -> None:
        try:
            self._parts.append(_text(record))
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> OutputError:
        wrong = f"{self.folder}: cannot be written: {error.strerror}"
        if self.is_empty:
            return OutputError(f"{wrong}; nothing had been measured")
        return OutputError(
            f"{wrong}; the {self._cells} results until then are kept in {PARTS}; "
            f"once there is room, this makes tables and report of them: raidlab report {self.folder}"
        )

    def _cell_record(self, outcome: CellOutcome, member_bytes: int, sector_bytes: int) -> dict[str, Any]:
        cell = outcome.cell
        facts = self._loaded.geometry.facts(cell.array.name, member_bytes, sector_bytes)
        identity = {
            "target": cell.target,
            "array": cell.array.name,
            "group": cell.array.group,
            "workload": cell.workload.name,
            "load": cell.load.kind,
            "depth": cell.load.depth,
            "rate_per_s": cell.load.rate_per_s,
            "repeat": cell.repeat,
            "purpose": cell.purpose,
            "seed": cell.seed,
            # The order of a simulated cell depends on which worker was free first, and means nothing.
            "order": outcome.order if cell.target in ("live", "emulated", NULL) else 0,
            "members": facts["leaves"],
            "user_bytes": facts["user_bytes"],
            "member_bytes": member_bytes,
            "storage_efficiency": facts["storage_efficiency"],
        }
        return {"rank": self._ranks.of_cell(cell), "identity": identity, "answer": outcome.answer}

    def _hold_record(self, outcome: HoldOutcome) -> dict[str, Any]:
        task, answer = outcome.task, outcome.answer
        row = {
            "target": task.target,
            "array": task.array.name,
            "group": task.array.group,
            "workload": task.workload.name,
            "repeat": task.repeat,
            "percentile": task.hold.percentile,
            "target_ns": outcome.target_ns,
            "method": task.hold.method,
            "depth": answer["depth"],
            "throughput_bytes_per_s": answer["throughput"],
            "throughput_low_bytes_per_s": (answer.get("lower") or {}).get("throughput"),
            "throughput_high_bytes_per_s": (answer.get("upper") or {}).get("throughput"),
            "bound": answer["kind"],
        }
        return {"rank": self._ranks.of_hold(task), "row": row}


class _Ranks:
    """The canonical order of rows: as the study lists things."""

    def __init__(self, loaded: LoadedStudy) -> None:
        self._arrays = {array.name: index for index, array in enumerate(loaded.study.array)}
        self._workloads = {workload.name: index for index, workload in enumerate(loaded.study.workload)}
        self._targets = {name: index for index, name in enumerate(("sim", "original", "emulated", "live", NULL))}
        self._loads = {name: index for index, name in enumerate(("closed", "open", "hold"))}

    def of_cell(self, cell: Cell) -> list[float]:
        load = cell.load
        place = self._place(cell.target, cell.array.name, cell.workload.name)
        return [*place, self._loads[load.kind], load.depth, load.rate_per_s, cell.repeat]

    def of_hold(self, task: HoldTask) -> list[float]:
        return [*self._place(task.target, task.array.name, task.workload.name), task.repeat]

    def _place(self, target: str, array: str, workload: str) -> list[float]:
        return [self._targets[target], self._arrays[array], self._workloads[workload]]


class _Parts:
    """The file of parts: whole lines, locked against whoever would finish it meanwhile."""

    def __init__(self, file: Path) -> None:
        # Unbuffered: what a full disk refuses must not lie in wait until the file is closed.
        self._file = file.open("xb", buffering=0)
        self._length = 0
        _try_lock(self._file.fileno())

    def append(self, line: str) -> None:
        rest = memoryview(line.encode() + b"\n")
        length = self._length + len(rest)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError:
            # Half a line would be taken for the end of what was measured.
            os.ftruncate(self._file.fileno(), self._length)
            raise
        self._length = length

    def close(self) -> None:
        self._file.close()


def _try_lock(descriptor: int) -> bool:
    """Lock a file of parts; False if somebody else holds it. A file system without locks has nobody hold anything."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


Records = list[dict[str, Any]]


def finish_killed(folder: Path) -> None:
    """Finish a run that was killed and left its parts behind, with what was measured.

    Raises
    ------
    InputError
        When it is still going on, or its parts say nothing of what was run.
    OutputError
        When the folder cannot be written.
    """

    def wrong(message: str, accepted: str | None = None) -> InputError:
        return InputError.one("run", message, value=f"'{folder}'", accepted=accepted)

    try:
        with (folder / PARTS).open("rb") as parts:
            if not _try_lock(parts.fileno()):
                raise wrong("is still being written by its run", "a run that has ended")
            facts, cells, holds = _read_parts(folder)
            if "study" not in facts:
                raise wrong(f"was killed before it wrote what it runs ({PARTS} has no facts)", "another run folder")
            ended = datetime.datetime.fromtimestamp(os.fstat(parts.fileno()).st_mtime, datetime.UTC)
            started = datetime.datetime.fromisoformat(facts["times"]["started"])
            facts["times"] |= {
                "finished": ended.isoformat(timespec="seconds"),
                "elapsed_s": round((ended - started).total_seconds(), 1),
            }
            ending = {
                "status": "failed",
                "failure": "raidlab was killed, or could not write; what it had written until then was recovered",
                "interrupted_by": None,
            }
            _write_tables(folder, cells, holds)
            _write_facts(folder, {"live_members": [], "live_engine": None, **facts, **ending})
    except OSError as error:
        raise OutputError(f"{folder}: cannot be finished: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise wrong(f"has parts that are not raidlab's: {error}") from None


def _read_parts(folder: Path) -> tuple[dict[str, Any], Records, Records]:
    """The facts, cells and holds of a folder's parts."""
    facts: dict[str, Any] = {}
    cells: Records = []
    holds: Records = []
    with (folder / PARTS).open(encoding="utf-8") as lines:
        for line in lines:
            # A crash can cut the last line short; what it held was not measured to its end.
            if not line.endswith("\n"):
                break
            record = json.loads(line)
            if "facts" in record:
                facts |= record["facts"]
            else:
                (holds if "row" in record else cells).append(record)
    return facts, cells, holds


def _write_tables(folder: Path, cells: Records, holds: Records) -> None:
    for name, frame in frames(cells, holds).items():
        frame.write_parquet(
            folder / f"{name}.parquet", compression="zstd", compression_level=_COMPRESSION_LEVEL, statistics=True
        )


def _write_facts(folder: Path, facts: dict[str, Any]) -> None:
    """Write ``run.json``, whole or not at all, and then remove the parts: the run is finished."""
    text = json.dumps(facts, indent=2, sort_keys=True, default=_plain)
    unfinished = folder / "run.json.new"
    unfinished.write_text(text + "\n", encoding="utf-8")
    unfinished.replace(folder / "run.json")
    (folder / PARTS).unlink()


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, default=_plain, separators=(",", ":"))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _plain(value: Any) -> Any:
    """NumPy values as plain ones, for JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot be written to JSON: {type(value)}")

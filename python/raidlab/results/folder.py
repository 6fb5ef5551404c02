"""Run folders: written cell by cell while a study runs, finished into Parquet and JSON.

Invariants:

- Append-only while running: each outcome is one line of ``parts.jsonl``, flushed as a whole, so that a crash loses at
  most the cell that was being measured.
- Finishing is a pure function of the parts and the facts: two simulated runs with one seed give the same bytes in
  every file, but for the ``times`` of ``run.json``.
- A folder is made new and never written into by a second run.
"""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

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
    base.mkdir(parents=True, exist_ok=True)
    date = datetime.date.today().isoformat()
    for sequence in range(1, 10_000):
        folder = base / f"{study}-{date}-{sequence:03}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"{base} is full of runs of {study} of {date}")


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
        self.is_empty = True
        self._ranks = _Ranks(loaded)
        self._parts = (folder / PARTS).open("x", encoding="utf-8")

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
        self._parts.write(json.dumps(record, default=_plain, separators=(",", ":")) + "\n")
        self._parts.flush()
        self.is_empty = False

    def discard(self) -> None:
        """Take the folder away again: nothing was measured."""
        self._parts.close()
        shutil.rmtree(self.folder)

    def finish(
        self,
        status: str,
        failure: str | None,
        live_members: list[dict[str, Any]],
        more: dict[str, Any] | None = None,
    ) -> Path:
        """Turn the parts into tables and write ``run.json``, with ``more`` facts; returns the folder."""
        self._parts.close()
        finish_tables(self.folder)
        started, finished = self._started, _now()
        facts = {
            **self._facts,
            **(more or {}),
            "status": status,
            "failure": failure,
            "live_members": live_members,
            "live_engine": self._live_engine,
            "times": {
                "started": started.isoformat(timespec="seconds"),
                "finished": finished.isoformat(timespec="seconds"),
                "elapsed_s": round((finished - started).total_seconds(), 1),
            },
        }
        text = json.dumps(facts, indent=2, sort_keys=True, default=_plain)
        (self.folder / "run.json").write_text(text + "\n", encoding="utf-8")
        return self.folder

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


def finish_tables(folder: Path) -> None:
    """Write the Parquet tables from the parts, then remove the parts.

    A run that was killed leaves its parts behind; calling this finishes it with what was measured.
    """
    cells: list[dict[str, Any]] = []
    holds: list[dict[str, Any]] = []
    with (folder / PARTS).open(encoding="utf-8") as lines:
        for line in lines:
            # A crash can cut the last line short; what it held was not measured to its end.
            if not line.endswith("\n"):
                break
            record = json.loads(line)
            (holds if "row" in record else cells).append(record)
    for name, frame in frames(cells, holds).items():
        frame.write_parquet(
            folder / f"{name}.parquet", compression="zstd", compression_level=_COMPRESSION_LEVEL, statistics=True
        )
    (folder / PARTS).unlink()


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _plain(value: Any) -> Any:
    """NumPy values as plain ones, for JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot be written to JSON: {type(value)}")

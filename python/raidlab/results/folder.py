"""Run folders: written cell by cell while a study runs, finished into Parquet and JSON.

Invariants:

- Append-only while running: each outcome is one line of ``parts.jsonl``, written before the next cell begins, so that
  a crash loses at most the cell that was being measured (`parts` says what a machine without power loses). The facts of
  the run stand in the same file: it is enough to finish the run, or to go on with it.
- A folder is made new, and written into by no run but its own, which may be resumed (`resume`).
"""

from __future__ import annotations

import datetime
import errno
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from raidlab.directory import Directory
from raidlab.errors import InputError, OutputError
from raidlab.results.answer import CellIdentity, CellRecord, HoldRecord, HoldRow
from raidlab.results.facts import (
    Beginning,
    BegunNow,
    Device,
    DeviceSheet,
    Ending,
    Facts,
    HardwareParameter,
    LiveEngine,
    Member,
    MoreFacts,
    Status,
    StudyFacts,
    Trace,
    complete_ending,
)
from raidlab.results.finish import RUN, begun, ended, write_kept, write_run
from raidlab.results.outcome import CellOutcome, HoldOutcome, Outcome
from raidlab.results.parts import PARTS, PartsFile, read_parts
from raidlab.results.provenance import host_facts, trace_facts, version_facts
from raidlab.results.records import discard_records
from raidlab.results.tables import SCHEMA_VERSION
from raidlab.study import Cell, HoldTask, LoadedStudy
from raidlab.study.device import DeviceModel
from raidlab.study.expand import NULL
from raidlab.study.parameters import Parameter
from raidlab.study.words import ENGINES

if TYPE_CHECKING:
    from raidlab.results.resume import Unfinished


# What is no fault of the place: a limit, a quota, a full disk.
_NO_ROOM = (errno.EFBIG, errno.EDQUOT, errno.ENOSPC)


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
        raise _no_folder(base, _why_no_folder(base) or str(error.strerror)) from None
    raise InputError.one("--out", f"is full of runs of {study} of {date}", value=f"'{base}'")


def check_out(base: Path) -> None:
    """Refuse a directory that can neither be written nor made, before anything is done for what is to lie there."""
    why = _why_no_folder(base)
    there = next(place for place in (base, *base.absolute().parents) if place.exists())
    try:
        if why is None:
            Path(tempfile.mkdtemp(prefix="raidlab-", dir=there)).rmdir()
    except OSError as error:
        why = f"'{there}': {error.strerror}"
    if why is not None:
        raise _no_folder(base, why)


def _no_folder(base: Path, why: str) -> InputError:
    accepted = "a directory that can be written, or one that can be made"
    return InputError.one("--out", f"no folder can be made there: {why}", value=f"'{base}'", accepted=accepted)


def _why_no_folder(path: Path) -> str | None:
    """What a path is, if it or one above it is there and no directory."""
    for place in (path, *path.parents):
        if place.is_dir():
            return None
        name = "it" if place == path else f"'{place}'"
        if place.is_symlink() and not place.exists():
            return f"{name} is a link to '{place.readlink()}', which is not there"
        if place.exists():
            return f"{name} is no directory"
    return None


class RunWriter:
    """Writes one run folder, which `new_folder` has made.

    ``targets`` are what was asked for, in the user's words; ``argv`` is the command as it can be given again. Only runs
    of the ``command`` ``run`` can be resumed. ``far_machine`` is another machine that streams went to, as it was named;
    with ``records`` each request leaves a row.
    """

    def __init__(
        self,
        folder: Path,
        loaded: LoadedStudy,
        *,
        seed: int,
        targets: list[str],
        quick: bool,
        argv: list[str],
        command: str = RUN,
        far_machine: str | None = None,
        records: bool = False,
    ) -> None:
        begun_now: BegunNow = {
            "schema_version": SCHEMA_VERSION,
            "command": command,
            "seed": seed,
            "targets": targets,
            "quick": quick,
            "argv": argv,
            "raidlab": version_facts(),
            "host": host_facts(),
            "times": begun(None, _now()),
        }
        if far_machine is not None:
            begun_now["far_machine"] = far_machine
        if records:
            begun_now["records"] = True
        facts = cast(Beginning, {**begun_now, **study_facts(loaded)})
        self._set_up(folder, loaded, facts)
        try:
            self._parts = PartsFile(folder / PARTS)
            self._parts.append({"facts": facts})
        except OSError as error:
            self._take_away()
            if error.errno in _NO_ROOM:
                raise self._unwritten(error) from None
            raise InputError.one("--out", f"cannot be written: {error.strerror}", value=f"'{folder.parent}'") from None

    @classmethod
    def resumed(cls, unfinished: Unfinished, loaded: LoadedStudy) -> RunWriter:
        """Go on with a run: what is done is kept, and not written again."""
        writer = cls.__new__(cls)
        writer._set_up(unfinished.folder, loaded, unfinished.facts)
        writer._parts = unfinished.parts
        writer._done_cells, writer._done_holds = set(unfinished.answers), set(unfinished.holds)
        writer._cells, writer._is_resumed = len(unfinished.answers), True
        writer._live_members = list(unfinished.facts.get("live_members", []))
        writer._live_engine = unfinished.facts.get("live_engine")
        writer._facts["times"] = begun(unfinished.times_before, _now())
        # Tables that were made of the parts until now say less than these will; whoever reads meanwhile is told so.
        try:
            with Directory.open(writer.folder, writer._identity) as place, suppress(FileNotFoundError):
                place.remove("run.json")
        except OSError as error:
            raise writer._unwritten(error) from None
        writer._append({"facts": {"times": writer._facts["times"]}})
        return writer

    def _set_up(self, folder: Path, loaded: LoadedStudy, facts: Beginning) -> None:
        self.move_to(folder)
        self._loaded = loaded
        self._facts = facts.copy()
        self._live_engine: LiveEngine | None = None
        self._live_members: list[Member] = []
        self._ranks = Ranks(loaded)
        self._cells = 0
        self._is_resumed = False
        self._done_cells: set[str] = set()
        self._done_holds: set[tuple[float, ...]] = set()

    def move_to(self, folder: Path) -> None:
        """Write into a folder from now on, and into no other that may take its place."""
        self.folder = folder
        with Directory.open(folder) as place:
            self._identity = place.identity

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been measured."""
        return self._cells == 0

    def add(self, outcome: Outcome, member_bytes: int, sector_bytes: int) -> None:
        """Append one outcome, with the size and sector of the members it ran on."""
        if self._is_done(outcome):
            return
        if isinstance(outcome, CellOutcome):
            rank, identity = _place(self._loaded, self._ranks, outcome, member_bytes, sector_bytes)
            record: Mapping[str, object] = {"rank": rank, "identity": identity, "answer": outcome.given}
            if outcome.cell.target in ("live", NULL):
                self._live_engine = (outcome.answer.get("facts") or {}).get("engine") or self._live_engine
        else:
            record = cast("Mapping[str, object]", self._hold_record(outcome))
        self._append(record)
        self._cells += 1

    def _is_done(self, outcome: Outcome) -> bool:
        if isinstance(outcome, CellOutcome):
            return outcome.cell.name in self._done_cells
        return tuple(self._ranks.of_hold(outcome.task)) in self._done_holds

    def note_members(self, live_members: list[Member]) -> None:
        """Write down facts of live members that were not known before, for the case that the run is killed."""
        if len(live_members) > len(self._live_members):
            self._live_members = list(live_members)
            self._append({"facts": {"live_members": live_members, "live_engine": self._live_engine}})

    def close(self) -> None:
        """Write no more, and leave the parts as they are, if there are any."""
        if self.is_empty and not self._is_resumed:
            self.discard()
        self._parts.close()

    def discard(self) -> None:
        """Take the folder away again: nothing was measured."""
        self._parts.close()
        self._take_away()

    def _take_away(self) -> None:
        with suppress(OSError), Directory.open(self.folder, self._identity) as place:
            with suppress(FileNotFoundError):
                place.remove(PARTS)
            discard_records(place)
            # Whatever else somebody has put there meanwhile keeps it.
            self.folder.rmdir()

    def give_up(self, failure: str, live_members: list[Member]) -> None:
        """End a run that was refused: without a trace if nothing was measured."""
        if self.is_empty and not self._is_resumed:
            self.discard()
        else:
            self.finish("failed", failure, live_members)

    def finish(
        self,
        status: Status,
        failure: str | None,
        live_members: list[Member],
        interrupted_by: str | None = None,
        more: MoreFacts | None = None,
    ) -> Path:
        """Turn the parts into tables and write ``run.json``, with ``more`` facts; returns the folder."""
        ending: Ending = {
            "status": status,
            "failure": failure,
            "interrupted_by": interrupted_by,
            "live_members": live_members or self._live_members,
            "live_engine": self._live_engine,
        }
        try:
            facts = self._ended(ending, more)
            write_run(self.folder, facts, *read_parts(self.folder, is_own=True)[1:], self._identity)
        except OSError as error:
            raise self._unwritten(error) from None
        finally:
            self._parts.close()
        return self.folder

    def finish_with(self, tables: Mapping[str, Path]) -> Path:
        """Finish a run with the tables that the same run gave before; returns the folder.

        A `ChangedError` for a table that is not what it was: the run can be made as if there were none.
        """
        try:
            write_kept(self.folder, self._ended(complete_ending()), tables, self._identity)
        except OSError as error:
            raise self._unwritten(error) from None
        self._parts.close()
        return self.folder

    def _ended(self, ending: Ending, more: MoreFacts | None = None) -> Facts:
        times = ended(self._facts["times"], _now())
        return cast(Facts, {**self._facts, **(more or {}), **ending, "times": times})

    def _append(self, record: Mapping[str, object]) -> None:
        try:
            self._parts.append(record)
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> OutputError:
        wrong = f"{error.filename or self.folder}: cannot be written: {error.strerror}"
        if self.is_empty:
            return OutputError(f"{wrong}; nothing had been measured")
        mended = "there is room" if error.errno in _NO_ROOM else "that is mended"
        makes = f"raidlab report {self.folder} makes a report of them"
        if self._facts["command"] == RUN:
            makes += f", raidlab run --resume {self.folder} runs the rest"
        return OutputError(f"{wrong}; the {self._cells} results until then are kept in {PARTS}; once {mended}, {makes}")

    def _hold_record(self, outcome: HoldOutcome) -> HoldRecord:
        task, answer = outcome.task, outcome.answer
        lower, upper = answer["lower"], answer["upper"]
        row: HoldRow = {
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
            "throughput_low_bytes_per_s": lower["throughput"] if lower else None,
            "throughput_high_bytes_per_s": upper["throughput"] if upper else None,
            "bound": answer["kind"],
        }
        return {"rank": self._ranks.of_hold(task), "row": row}


def what_decides(loaded: LoadedStudy, *, seed: int, targets: list[str], quick: bool) -> dict[str, object]:
    """What the tables of a run that is modelled throughout follow from, beside raidlab's code."""
    return {"seed": seed, "targets": targets, "quick": quick, **study_facts(loaded)}


def study_facts(loaded: LoadedStudy) -> StudyFacts:
    """What a run keeps of its study: its text, its traces, its trees, its devices, the parameters of its hardware."""
    geometry = loaded.geometry
    facts: StudyFacts = {
        "study": {"name": loaded.study.name, "sha256": loaded.sha256, "text": loaded.text},
        "trees": geometry.trees,
        "devices": devices_of(geometry.devices),
        "array_devices": devices_of(geometry.own_devices),
        "sheets": _sheets_of(geometry.devices),
        "array_sheets": _sheets_of(geometry.own_devices),
        "hardware": {
            target: {name: _parameter(one) for name, one in known.parameters.items()}
            for target, known in loaded.hardware.items()
            if known.parameters
        },
    }
    if traces := dict(_traces(loaded)):
        facts["study"]["traces"] = traces
    if (over := loaded.arrangement) is not None:
        facts["groups"] = [{"names": [*group.names], "members": [*group.members]} for group in over.groups]
        facts["members_of"], facts["array_trees"] = over.members_of, over.trees
        if over.volumes:
            facts["volumes"] = over.volumes
    return facts


def devices_of(models: Mapping[str, DeviceModel]) -> dict[str, Device]:
    """The parameters of device models, of which the engine has said that they are those of a device."""
    return {name: cast(Device, model.parameters) for name, model in models.items()}


def _sheets_of(models: Mapping[str, DeviceModel]) -> dict[str, DeviceSheet]:
    """What device files say that is no parameter, of those that say any."""
    found = {name: cast(DeviceSheet, model.sheet) for name, model in models.items()}
    return {name: sheet for name, sheet in found.items() if sheet}


def _parameter(one: Parameter) -> HardwareParameter:
    return {
        "text": one.text,
        "value": one.value,
        "unit": one.unit,
        "status": one.status,
        "why": one.why,
        "to": one.to,
    }


def _traces(loaded: LoadedStudy) -> Iterator[tuple[str, Trace]]:
    """Which traces its workloads replay."""
    for workload in loaded.study.workload:
        if workload.trace is not None:
            found = trace_facts(loaded.trace_file(workload.trace), workload.trace.format)
            yield workload.name, {"file": workload.trace.file, **found}


def cell_record(
    loaded: LoadedStudy, ranks: Ranks, outcome: CellOutcome, member_bytes: int, sector_bytes: int
) -> CellRecord:
    """What a run keeps of one cell: the study's side and the engine's side."""
    rank, identity = _place(loaded, ranks, outcome, member_bytes, sector_bytes)
    return {"rank": rank, "identity": identity, "answer": outcome.answer}


def _place(
    loaded: LoadedStudy, ranks: Ranks, outcome: CellOutcome, member_bytes: int, sector_bytes: int
) -> tuple[list[float], CellIdentity]:
    """Where a cell stands, and the study's side of it."""
    cell = outcome.cell
    facts = loaded.geometry.facts(cell.array.name, member_bytes, sector_bytes)
    identity: CellIdentity = {
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
    return ranks.of_cell(cell), identity


class Ranks:
    """The canonical order of rows: as the study lists things."""

    def __init__(self, loaded: LoadedStudy) -> None:
        self._arrays = {array.name: index for index, array in enumerate(loaded.study.array)}
        self._workloads = {workload.name: index for index, workload in enumerate(loaded.study.workload)}
        self._targets = {name: index for index, name in enumerate((*ENGINES, NULL))}
        self._loads = {name: index for index, name in enumerate(("closed", "open", "hold", "trace"))}

    def of_cell(self, cell: Cell) -> list[float]:
        """Where a cell stands."""
        load = cell.load
        place = self._place(cell.target, cell.array.name, cell.workload.name)
        return [*place, self._loads[load.kind], load.depth, load.rate_per_s, cell.repeat]

    def of_hold(self, task: HoldTask) -> list[float]:
        """Where a held response time stands."""
        return [*self._place(task.target, task.array.name, task.workload.name), task.repeat]

    def _place(self, target: str, array: str, workload: str) -> list[float]:
        return [self._targets[target], self._arrays[array], self._workloads[workload]]


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

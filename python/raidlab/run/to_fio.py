"""A study as job files of fio's: one file an array, one job a workload and load.

Invariants:

- Nothing is run and nothing is opened; a target that is there is only looked at.
- A job file says at its top what of the study fio does not do at all (arrays, repeats, searches), and above each job
  what it only approximates.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.formats.fio.export import CannotExportError, export_cell, section_name
from raidlab.run.members import Members
from raidlab.run.request import direct_request
from raidlab.study import Cell, LoadedStudy, LoadPoint, budget, expand, make_cell
from raidlab.study.cell import Opaque
from raidlab.study.expand import is_run, load_of
from raidlab.study.schema import Array
from raidlab.study.units import format_bytes
from raidlab.study.words import SIMULATED
from raidlab.study.workload import Hold, Workload

# The name of the environment's variable that a job file takes its target from when none is given.
PLACEHOLDER = "TARGET"
_FILE_NAME = "raidlab-fio.dat"


@dataclass(frozen=True)
class JobFileText:
    """A job file that was written: the array it is for, a name for the file, and its text."""

    array: str
    name: str
    text: str


def study_to_fio(
    loaded: LoadedStudy,
    *,
    workloads: Sequence[str] = (),
    arrays: Sequence[str] = (),
    targets: Sequence[str] = (),
    quick: bool = False,
) -> list[JobFileText]:
    """Write the job files of a study.

    ``workloads``, ``arrays``: only these; all when empty. ``targets``: what stands for the array: a block device, a
    file, or a directory to make a file in; one for each volume. The variable ``TARGET`` when empty. ``quick``: use the
    study's quick loads and times. Raises `InputError` for a name that the study does not have, and with the key of
    everything that fio cannot do.
    """
    study = loaded.study
    wanted = _named(study.workload, workloads, "--workload")
    chosen = _named(study.array, arrays, "--array")
    section = next(name for name in ("live", *SIMULATED) if getattr(study, name) is not None)
    return [_JobFile(loaded, array, section, targets, quick=quick).text(wanted) for array in chosen]


def _named(having: Sequence[Any], names: Sequence[str], option: str) -> list[Any]:
    known = {item.name: item for item in having}
    for name in names:
        if name not in known:
            raise InputError.one(option, "is not in the study", value=f"'{name}'", accepted=", ".join(known))
    return [item for item in having if not names or item.name in names]


class _JobFile:
    """The job file of one array; ``section`` is what the study says of where it runs."""

    def __init__(self, loaded: LoadedStudy, array: Array, section: str, targets: Sequence[str], *, quick: bool) -> None:
        self._loaded, self._array, self._section, self._quick = loaded, array, section, quick
        self._volume_bytes, self._places = self._volumes(targets)

    def _volumes(self, targets: Sequence[str]) -> tuple[int, Members]:
        """The bytes of a volume, and the targets of the array's cells, one a volume."""
        from raidlab import _core

        live = self._loaded.study.live
        if self._section == "live":
            member_bytes = (live.quick.member_size if self._quick else None) or live.member_size
            sector_bytes = live.sector
        else:
            device = self._loaded.geometry.devices[self._section]
            member_bytes, sector_bytes = device.capacity_bytes, device.sector_bytes
        tree = json.dumps(self._loaded.geometry.trees[self._array.name])
        facts = _core.tree_facts(tree, member_bytes, sector_bytes)
        volumes, volume_bytes = int(facts["volumes"]), int(min(facts["volume_bytes"]))
        names = list(targets)
        if not names:
            names = [f"${{{PLACEHOLDER}{'' if volumes == 1 else number}}}" for number in range(volumes)]
        if len(names) != volumes:
            message = f"the array '{self._array.name}' has {volumes} volumes, and {len(names)} targets are given"
            raise InputError.one("--target", message, accepted=f"{volumes} targets, or another --array")
        return volume_bytes, [_place(name, volume_bytes) for name in names]

    def text(self, workloads: list[Workload]) -> JobFileText:
        """The file with the jobs of these workloads."""
        study = self._loaded.study
        names = {workload.name for workload in workloads}
        parts = [self._head()]
        for cell in expand(study, self._section, seed=study.seed, quick=self._quick).cells:
            mine = cell.array.name == self._array.name and cell.workload.name in names
            if mine and cell.repeat == 0 and cell.purpose == "sweep":
                parts.append(self._job(cell, stonewall=len(parts) > 1))
        for workload in workloads:
            hold = load_of(study, self._array, workload).hold
            if hold is not None and is_run(self._array, workload, self._section):
                parts.append(self._latency_target_job(workload, hold))
        return JobFileText(self._array.name, f"{_plain(study.name)}-{_plain(self._array.name)}.fio", "\n".join(parts))

    def _job(self, cell: Cell, *, stonewall: bool = True, hold_target_ns: int | None = None) -> str:
        level = cell.load.label.replace("=", " ").replace("closed", "depth")
        request = direct_request(
            self._loaded, cell, targets=self._places, quick=self._quick, hold_target_ns=hold_target_ns
        )
        try:
            return export_cell(f"{cell.workload.name}, {level}", request, stonewall=stonewall)
        except CannotExportError as error:
            where = f"workload '{cell.workload.name}': {error.key}"
            raise InputError.one(where, error.message, value=error.value, accepted=error.accepted) from None

    def _latency_target_job(self, workload: Workload, hold: Hold) -> str:
        """A held percentile: a job where the target is a time, a comment where it depends on an idle run."""
        if not isinstance(hold.target, int):
            multiple = f"{hold.target.times_idle:g} times the idle one of '{hold.target.of}'"
            return (
                f"# {workload.name}, hold: not written. p{hold.percentile:g} at {multiple} is a time known only after "
                "an\n# idle run, and fio's latency_target takes a time.\n"
            )
        seed = self._loaded.study.seed
        cell = make_cell(self._section, self._array, workload, LoadPoint("hold"), 0, seed, "hold")
        return self._job(cell, hold_target_ns=hold.target)

    def _head(self) -> str:
        """What the file is, and what of the study is not in it."""
        study, array = self._loaded.study, self._array
        repeats = budget(study, self._section, quick=self._quick).repeats
        variables = " ".join(f"{place['path'][2:-1]}=..." for place in self._places if place["path"].startswith("${"))
        arrangement = array.arrangement
        lines = [
            f"Written by raidlab fio export: the study '{study.name}', its array '{array.name}' ({arrangement}).",
            "fio knows no arrays: give it a device or a file that stands for this one.",
        ]
        if variables:
            lines.append(f"Run it with {variables} in the environment.")
        if any("size_bytes" in place for place in self._places):
            size = format_bytes(self._volume_bytes)
            lines.append(f"size is the user capacity of a volume ({size}); without it a device is used whole.")
        if repeats > 1:
            lines.append(
                f"The study repeats each measurement {repeats} times, in shuffled order; run the file as often."
            )
        lines.append("raidlab fio import reads this file back.")
        return "\n".join(f"# {line}" for line in lines) + "\n\n[global]\ngroup_reporting\n"


def _place(name: str, size_bytes: int) -> Opaque:
    """A target; a block device is used whole, a directory holds a file."""
    try:
        mode = Path(name).stat().st_mode
    except (OSError, ValueError):
        mode = 0
    if stat.S_ISBLK(mode):
        return {"kind": "block", "path": name}
    path = str(Path(name) / _FILE_NAME) if stat.S_ISDIR(mode) else name
    return {"kind": "file", "path": path, "size_bytes": size_bytes}


def _plain(name: str) -> str:
    """A name for a file."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in section_name(name))

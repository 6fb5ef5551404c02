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

    Parameters
    ----------
    workloads, arrays : sequence of str
        Only these; all when empty.
    targets : sequence of str
        What stands for the array: a block device, a file, or a directory to make a file in; one for each volume. The
        variable ``TARGET`` when empty.
    quick : bool
        Use the study's quick loads and times.

    Raises
    ------
    InputError
        For a name that the study does not have, and with the key of everything that fio cannot do.
    """
    study = loaded.study
    wanted = _named(study.workload, workloads, "--workload")
    chosen = _named(study.array, arrays, "--array")
    return [_job_file(loaded, array, wanted, targets, quick=quick) for array in chosen]


def _named(having: Sequence[Any], names: Sequence[str], option: str) -> list[Any]:
    known = {item.name: item for item in having}
    for name in names:
        if name not in known:
            raise InputError.one(option, "is not in the study", value=f"'{name}'", accepted=", ".join(known))
    return [item for item in having if not names or item.name in names]


def _job_file(
    loaded: LoadedStudy, array: Array, workloads: list[Workload], targets: Sequence[str], *, quick: bool
) -> JobFileText:
    section = next(name for name in ("live", "sim", "original") if getattr(loaded.study, name) is not None)
    places, size_bytes = _places(loaded, array, section, targets, quick=quick)
    names = {workload.name for workload in workloads}
    parts = [_head(loaded, array, section, size_bytes, places, quick=quick)]
    for cell in expand(loaded.study, section, seed=loaded.study.seed, quick=quick).cells:
        mine = cell.array.name == array.name and cell.workload.name in names
        if mine and cell.repeat == 0 and cell.purpose == "sweep":
            parts.append(_job(loaded, cell, places, quick=quick, stonewall=len(parts) > 1))
    for workload in workloads:
        hold = load_of(loaded.study, array, workload).hold
        if hold is not None and is_run(array, workload, section):
            parts.append(_latency_target_job(loaded, array, workload, hold, section, places, quick=quick))
    return JobFileText(array.name, f"{_plain(loaded.study.name)}-{_plain(array.name)}.fio", "\n".join(parts))


def _job(
    loaded: LoadedStudy,
    cell: Cell,
    places: Members,
    *,
    quick: bool,
    stonewall: bool,
    hold_target_ns: int | None = None,
) -> str:
    level = cell.load.label.replace("=", " ").replace("closed", "depth")
    request = direct_request(loaded, cell, targets=places, quick=quick, hold_target_ns=hold_target_ns)
    try:
        return export_cell(f"{cell.workload.name}, {level}", request, stonewall=stonewall)
    except CannotExportError as error:
        where = f"workload '{cell.workload.name}': {error.key}"
        raise InputError.one(where, error.message, value=error.value, accepted=error.accepted) from None


def _latency_target_job(
    loaded: LoadedStudy,
    array: Array,
    workload: Workload,
    hold: Hold,
    section: str,
    places: Members,
    *,
    quick: bool,
) -> str:
    """A held percentile: a job where the target is a time, a comment where it depends on an idle run."""
    if not isinstance(hold.target, int):
        multiple = f"{hold.target.times_idle:g} times the idle one of '{hold.target.of}'"
        return (
            f"# {workload.name}, hold: not written. p{hold.percentile:g} at {multiple} is a time known only after an\n"
            "# idle run, and fio's latency_target takes a time.\n"
        )
    cell = make_cell(section, array, workload, LoadPoint("hold"), 0, loaded.study.seed, "hold")
    return _job(loaded, cell, places, quick=quick, stonewall=True, hold_target_ns=hold.target)


def _places(
    loaded: LoadedStudy, array: Array, section: str, targets: Sequence[str], *, quick: bool
) -> tuple[Members, int]:
    """The targets of an array's cells, one a volume, and the bytes of a volume."""
    from raidlab import _core

    live = loaded.study.live
    if section == "live" and live is not None:
        member_bytes = (live.quick.member_size if quick else None) or live.member_size
        sector_bytes = live.sector
    else:
        device = loaded.geometry.devices[section]
        member_bytes, sector_bytes = device.capacity_bytes, device.sector_bytes
    facts = _core.tree_facts(json.dumps(loaded.geometry.trees[array.name]), member_bytes, sector_bytes)
    volumes, volume_bytes = int(facts["volumes"]), int(min(facts["volume_bytes"]))
    names = list(targets)
    if not names:
        names = [f"${{{PLACEHOLDER}{'' if volumes == 1 else number}}}" for number in range(volumes)]
    if len(names) != volumes:
        message = f"the array '{array.name}' has {volumes} volumes, and {len(names)} targets are given"
        raise InputError.one("--target", message, accepted=f"{volumes} targets, or another --array")
    return [_place(name, volume_bytes) for name in names], volume_bytes


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


def _head(loaded: LoadedStudy, array: Array, section: str, size_bytes: int, places: Members, *, quick: bool) -> str:
    """What the file is, and what of the study is not in it."""
    study = loaded.study
    repeats = budget(study, section, quick=quick).repeats
    variables = " ".join(f"{place['path'][2:-1]}=..." for place in places if place["path"].startswith("${"))
    lines = [
        f"Written by raidlab fio export: the study '{study.name}', its array '{array.name}' ({array.tree}).",
        "fio knows no arrays: give it a device or a file that stands for this one.",
    ]
    if variables:
        lines.append(f"Run it with {variables} in the environment.")
    if any("size_bytes" in place for place in places):
        lines.append(
            f"size is the user capacity of a volume ({format_bytes(size_bytes)}); without it a device is used whole."
        )
    if repeats > 1:
        lines.append(f"The study repeats each measurement {repeats} times, in shuffled order; run the file as often.")
    lines.append("raidlab fio import reads this file back.")
    return "\n".join(f"# {line}" for line in lines) + "\n\n[global]\ngroup_reporting\n"


def _plain(name: str) -> str:
    """A name for a file."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in section_name(name))

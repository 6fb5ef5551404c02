"""Ask the engine, before anything is made, whether it would run what a study asks.

What a schema cannot see, the engine judges with its own code: a mean below the sector, weights of nothing, a chunk
beyond the volume. Here it judges without running, and its answer is told in the study's words.

Invariants:

- Nothing is opened, made or written.
- Every array is tried with every workload that runs on it, at its deepest queue, at every rate, and held.
- A mistake that several arrays meet is told once, at the key of the file that is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from raidlab.errors import Problem
from raidlab.run.request import cell_request
from raidlab.run.stream_cells import MODELLED
from raidlab.study import Cell, LoadedStudy, LoadPoint, expand, make_cell
from raidlab.study.expand import NULL, expand_null
from raidlab.study.places import Place
from raidlab.study.workload import Workload

_ANY_TARGET_NS = 10**9
_WHERE = {NULL: "members of live.memory_member_size, to bound raidlab's own cost"}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# What the engine calls otherwise than a study does: a size is bytes there, a time has its unit in its name.
_UNITS = re.compile(r"_(bytes|us|ms|s)$")
_NAMES = {"read_fraction": "read", "parity_us_per_kib": "parity_per_kib", "inode_cache_blocks": "inode_cache"}


def dry_problems(
    loaded: LoadedStudy, target: str, *, members: list[dict[str, Any]], sector_bytes: int, seed: int, quick: bool
) -> list[Problem]:
    """What the engine would not run of a study on one target.

    Parameters
    ----------
    loaded : LoadedStudy
    target : str
        ``sim``, ``original``, ``emulated``, ``live``, or ``null`` for raidlab's own cost.
    members : list of dict
        One member that stands for all; nothing that would have to be opened.
    sector_bytes : int
    seed : int
    quick : bool

    Returns
    -------
    list of Problem
        One a mistake, in the order of the file.
    """
    from raidlab import _core

    found: dict[Place, Problem] = {}
    for cell in _cells(loaded, target, seed=seed, quick=quick):
        if cell.array.is_mounted or (cell.workload.streams is not None and cell.target not in MODELLED):
            # Its directories, or ends, would have to be opened.
            continue
        held = _ANY_TARGET_NS if cell.load.kind == "hold" else None
        own = loaded.geometry.own_devices.get(cell.array.name)
        text = cell_request(
            loaded,
            cell,
            members=members if own is None else [own.parameters],
            sector_bytes=sector_bytes if own is None else own.sector_bytes,
            quick=quick,
            hold_target_ns=held,
        )
        try:
            _core.check_cell(text)
        except _core.CellError as error:
            message, _, accepted = error.message.partition("; accepted: ")
            if error.key.isupper():
                # A variable of the environment is at fault, and no file.
                return [Problem("", error.key, message, accepted=accepted or None)]
            place = _place(loaded, cell, error.key, quick=quick)
            told = f"{message} (array '{cell.array.name}' on {_WHERE.get(target, target)})"
            found.setdefault(place, loaded.problem(place, told, accepted or None))
    return sorted(found.values(), key=lambda problem: (problem.line or 0, problem.where))


def _cells(loaded: LoadedStudy, target: str, *, seed: int, quick: bool) -> Iterator[Cell]:
    """One cell of each kind: what differs only in depth, at the deepest."""
    if target == NULL:
        yield from expand_null(loaded.study, seed=seed, quick=quick).cells
        return
    expansion = expand(loaded.study, target, seed=seed, quick=quick)
    deepest: dict[tuple[str, str, float], Cell] = {}
    for cell in expansion.cells:
        key = (cell.array.name, cell.workload.name, cell.load.rate_per_s)
        if cell.repeat == 0 and (key not in deepest or cell.load.depth > deepest[key].load.depth):
            deepest[key] = cell
    yield from deepest.values()
    for task in expansion.holds:
        if task.repeat == 0:
            yield make_cell(target, task.array, task.workload, LoadPoint("hold"), 0, seed, "hold")


def _place(loaded: LoadedStudy, cell: Cell, key: str, *, quick: bool) -> Place:
    """The place in the study file of what the engine calls ``key``."""
    study = loaded.study
    steps: list[str | int] = [name or int(number) for name, number in _STEP.findall(key)]
    head, rest = (steps[0] if steps else ""), tuple(_renamed(step) for step in steps[1:])
    workload = next(index for index, one in enumerate(study.workload) if one.name == cell.workload.name)
    array = next(index for index, one in enumerate(study.array) if one.name == cell.array.name)
    own: Place = ("workload", workload) if cell.workload.load is not None else ()
    section = "live" if cell.target == NULL else cell.target
    places: dict[str | int, Place] = {
        "workload": ("workload", workload, *_of_workload(rest, cell.workload)),
        "load": (*(("array", array) if cell.array.load is not None else own), "load", *_of_load(rest)),
        "tree": ("array", array, "tree"),
        "members": ("live", "memory_member_size")
        if section == "live"
        else (("array", array, "device") if study.array[array].device is not None else (section, "device")),
        "sector_bytes": (section, "sector"),
    }
    if head in places:
        return places[head]
    if head in ("warmup", "measure"):
        budget = getattr(getattr(study, section), "quick", None)
        is_quick = quick and budget is not None and getattr(budget, str(head)) is not None
        return (section, *(("quick",) if is_quick else ()), str(head), *rest)
    if head in ("host", "speed", "pair_pricing"):
        return (section, str(head), *rest)
    if head == "trace":
        return ("workload", workload, "trace", *rest)
    if head == "streams":
        return _of_streams(("workload", workload, "streams"), rest, cell.workload)
    if head == "files":
        return _of_files(section, ("workload", workload, "files"), rest)
    return tuple(steps)


def _of_files(section: str, files: Place, rest: Place) -> Place:
    """The file system is the target's, what a file costs the host is the host's, the rest is the workload's."""
    if rest[:1] == ("file_system",):
        return (section, *rest)
    if rest[:1] == ("reading",):
        return (section, "host", "file" if rest[1:] == ("open",) else "file_per_kib")
    return (*files, *("fill" if step == "total" else step for step in rest))


def _of_streams(streams: Place, rest: Place, workload: Workload) -> Place:
    """A workload's stream is there as often as the load is deep; where its file lies follows from ``begin``."""
    if not rest or not workload.streams:
        return streams
    number = int(rest[0]) % len(workload.streams)
    names = {"from": "source", "to": "sink", "block": "bytes"}
    key = "begin" if "offset" in rest else names.get(str(rest[1]), str(rest[1])) if len(rest) > 1 else None
    return (*streams, number) if key is None else (*streams, number, key)


def _renamed(step: str | int) -> str | int:
    return step if isinstance(step, int) else _NAMES.get(step, _UNITS.sub("", step))


def _of_workload(steps: Place, workload: Workload) -> Place:
    """An alignment stands beside an address; where it is left out, it is the size."""
    if steps[-1:] == ("align",):
        return ("align",) if workload.align is not None else ("size",)
    return steps


def _of_load(steps: Place) -> Place:
    if steps[:1] == ("arrival",):
        return ("open", *("rates_per_s" if step == "rate_per" else step for step in steps[1:]))
    return ("depths",) if steps == ("depth",) else ("hold", *steps)

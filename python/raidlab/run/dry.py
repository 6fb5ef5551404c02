"""Ask the engine, before anything is made, whether it would run what a study asks.

What a schema cannot see, the engine judges with its own code: a mean below the sector, weights of nothing, a chunk
beyond the volume. Here it judges without running, and the key that it names is found in the study file.

Invariants:

- Nothing is opened, made or written.
- Every array is tried with every workload that runs on it, at its deepest queue, at every rate, and held.
- A mistake that several arrays meet is told once, at the key of the file that is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from raidlab.errors import Problem
from raidlab.run.request import amounts, cell_request
from raidlab.study import Cell, LoadedStudy, LoadPoint, expand, make_cell
from raidlab.study.cell import Opaque, study_key
from raidlab.study.expand import NULL, budget, expand_null
from raidlab.study.places import Place
from raidlab.study.schema import MemberEvent
from raidlab.study.words import is_simulated
from raidlab.study.workload import Workload

_ANY_TARGET_NS = 10**9
_WHERE = {NULL: "members of live.memory_member_size, to bound raidlab's own cost"}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def dry_problems(
    loaded: LoadedStudy, target: str, *, members: list[Opaque], sector_bytes: int, seed: int, quick: bool
) -> list[Problem]:
    """What the engine would not run of a study on one target.

    ``target``: ``sim``, ``original``, ``emulated``, ``live``, or ``null`` for raidlab's own cost. ``members``: one
    member that stands for all; nothing that would have to be opened. Returns one a mistake, in the order of the file.
    """
    from raidlab import _core

    found: dict[Place, Problem] = {}
    for cell in _cells(loaded, target, seed=seed, quick=quick):
        if cell.array.is_mounted or (cell.workload.streams is not None and not is_simulated(cell.target)):
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
            continue
        for number, event, end_ns in _too_late(loaded, cell, quick=quick):
            place = _place(loaded, cell, f"events[{number}].at", quick=quick)
            how = " with --quick" if quick else ""
            message = f"{event.in_words}, and the run is over at {end_ns / 1e9:g} s{how} (array '{cell.array.name}')"
            accepted = f"less than {end_ns / 1e9:g} s, or a longer measure"
            found.setdefault(place, loaded.problem(place, message, accepted))
    return sorted(found.values(), key=lambda problem: (problem.line or 0, problem.where))


def _too_late(loaded: LoadedStudy, cell: Cell, *, quick: bool) -> Iterator[tuple[int, MemberEvent, int]]:
    """Events that are sure to come after the run, and when that is over; how long so many requests take, none knows."""
    if cell.workload.trace is not None:
        return
    limits = amounts(cell.workload, budget(loaded.study, cell.target, quick=quick), max(cell.load.depth, 1))
    warmup_ns, measure_ns = (limit.duration for limit in limits)
    if warmup_ns is None and limits[0].requests is None:
        warmup_ns = 0
    if warmup_ns is None or measure_ns is None:
        return
    end_ns = warmup_ns + measure_ns
    yield from ((number, event, end_ns) for number, event in enumerate(cell.array.events) if event.at >= end_ns)


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
    """The place in the study file of a key of the cell: the same key, in the table that part of the cell is from."""
    study = loaded.study
    keys: list[str | int] = [name or int(number) for name, number in _STEP.findall(key)]
    head, rest = (
        (keys[0] if keys else ""),
        tuple(study_key(step) if isinstance(step, str) else step for step in keys[1:]),
    )
    workload = ("workload", next(index for index, one in enumerate(study.workload) if one.name == cell.workload.name))
    array = ("array", next(index for index, one in enumerate(study.array) if one.name == cell.array.name))
    section = "live" if cell.target == NULL else cell.target
    if head in ("warmup", "measure"):
        budget = getattr(getattr(study, section), "quick", None)
        is_quick = quick and budget is not None and getattr(budget, str(head)) is not None
        return (section, *(("quick",) if is_quick else ()), str(head), *rest)
    if head == "load":
        own = array if cell.array.load is not None else workload if cell.workload.load is not None else ()
        return (*own, "load", *_of_load(rest))
    if head == "members":
        if section == "live":
            return ("live", "memory_member_size")
        return (*array, "device") if cell.array.device is not None else (section, "device")
    if head == "path":
        # One visit of the study is many on the path of an array: the list is named, not the visit.
        return (section, "end" if rest[:1] == ("ways",) else str(rest[0]) if rest else "station")
    if head == "streams":
        return _of_streams(workload, rest, cell.workload)
    if head == "files" and rest[:1] == ("file_system",):
        return (section, *rest)
    tables: dict[str | int, Place] = {
        "workload": workload,
        "trace": (*workload, "trace"),
        "files": (*workload, "files"),
        "tree": (*array, "tree"),
        "missing": (*array, "missing"),
        "events": (*array, "events"),
        "rebuild": (*array, "rebuild"),
        "sector_bytes": (section, "sector"),
    }
    return (*tables.get(head, (section, str(head))), *rest)


def _of_streams(workload: Place, rest: Place, asked: Workload) -> Place:
    """A workload's stream is there as often as the load is deep; its block is the workload's size."""
    if not rest or not asked.streams:
        return (*workload, "streams")
    if rest[-1] == "size":
        return (*workload, "size")
    number = int(rest[0]) % len(asked.streams)
    return (*workload, "streams", number, *(rest[-1:] if "begin" in rest else rest[1:2]))


def _of_load(rest: Place) -> Place:
    """A cell is one point of a load: one of its depths, one of its rates, or what it holds."""
    if rest[:1] == ("arrival",):
        return ("open", *rest[1:])
    return rest if rest[:1] == ("depths",) else ("hold", *rest)

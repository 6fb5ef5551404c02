"""Whether two points may be compared at all, and if not, why; and what else differs between their runs.

Each rule is that of a fair comparison: the same work, offered in the same way, to arrays of the same capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from raidlab.analysis.metrics.point import Point
from raidlab.results import Run
from raidlab.study.check import is_same_capacity
from raidlab.study.expand import expand
from raidlab.study.units import format_bytes
from raidlab.study.words import ON_THE_CLOCK
from raidlab.study.workload import Load, Workload

# What of a workload says where and how hard it runs, and not what it does.
_NOT_THE_WORK = {"arrays", "load"}
_SWEEP = "sweep"
_LOOPS = {"open": "an open loop", "closed": "a closed loop", "hold": "a held percentile", "trace": "time stamps"}


def refusals(a: Point, b: Point, *, with_capacity: bool = True) -> Iterator[str]:
    """Why two points under workloads of one name cannot be compared, for another user capacity too if asked."""
    if a.load != b.load:
        yield f"{_LOOPS[a.load]} against {_LOOPS[b.load]}: what waits outside the one is not seen in the other"
    works = [_workload(point) for point in (a, b)]
    different = [key for key in works[0] if works[0][key] != works[1][key]]
    if different:
        changes = ", ".join(f"{key} {_short(works[0][key])} against {_short(works[1][key])}" for key in different)
        yield f"another workload: {changes}"
    if _trace(a) != _trace(b):
        yield "another trace: the files have other contents"
    if a.load == b.load == "open" and (changed := _arrivals(a) ^ _arrivals(b)):
        yield f"requests arrive differently: {' against '.join(sorted(changed))}"
    sizes = [int(point.rows[0]["user_bytes"]) for point in (a, b)]
    trees = [point.tree for point in (a, b) if point.tree is not None]
    if with_capacity and not is_same_capacity(sizes, trees):
        shown = [format_bytes(size) for size in sizes]
        yield f"another user capacity: {shown[0]} against {shown[1]}"


def notes_of(a: Run, b: Run, targets: tuple[set[str], set[str]]) -> Iterator[str]:
    """What differs between two runs besides what is compared, on the targets of A and of B, a sentence each."""
    for side, run, own in (("A", a, targets[0]), ("B", b, targets[1])):
        if run.facts["status"] != "complete":
            yield f"{side} is {run.facts['status']}: {_missing(run, own)} are not there."
    on_the_clock = [own & set(ON_THE_CLOCK) for own in targets]
    if targets[0] != targets[1] and not all(on_the_clock):
        yield (
            "One side is simulated, the other runs on the clock: what this host adds is in the difference, and on real "
            "members what the model leaves out or gets wrong."
        )
    if a.folder.resolve() == b.folder.resolve():
        return
    if a.facts["raidlab"] != b.facts["raidlab"]:
        yield "B was run by another raidlab."
    if a.facts["host"] != b.facts["host"]:
        yield "B was run on another machine, or another kernel."
    if a.facts["quick"] != b.facts["quick"]:
        yield f"{'A' if a.facts['quick'] else 'B'} was run with --quick: it measured less."
    if a.facts["devices"] != b.facts["devices"]:
        yield "The device models differ."
    if all(on_the_clock):
        yield "A and B were measured at different times: what changed on the machine between is in the difference."


def _missing(run: Run, targets: set[str]) -> str:
    """How many of a run's repeats were to come yet, as far as its study says."""
    if run.facts["command"] != "run":
        return "some of its repeats"
    seed, quick = run.facts["seed"], bool(run.facts["quick"])
    planned = [
        cell.purpose for target in sorted(targets) for cell in expand(run.study, target, seed=seed, quick=quick).cells
    ].count(_SWEEP)
    whole = pl.col("target").is_in(sorted(targets)) & (pl.col("purpose") == _SWEEP) & ~pl.col("interrupted")
    return f"{planned - run.cells.filter(whole).height} of its {planned} repeats (each of one array, workload and load)"


def _workload(point: Point) -> dict[str, Any]:
    return _of(point).model_dump(exclude={"name", *_NOT_THE_WORK})


def _of(point: Point) -> Workload:
    return next(workload for workload in point.run.study.workload if workload.name == point.workload)


def _arrivals(point: Point) -> set[str]:
    load: Load = _of(point).load or point.run.study.load
    if load.open is None:
        return set()
    return {load.open.arrival + ("" if load.open.cv2 is None else f" with cv2 {load.open.cv2:g}")}


def _trace(point: Point) -> str | None:
    """The hash of the trace that a point replays."""
    trace = point.run.facts["study"].get("traces", {}).get(point.workload)
    return None if trace is None else trace["sha256"]


def _short(value: object) -> str:
    """A part of a workload in a few words."""
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return str(value)

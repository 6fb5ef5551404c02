"""Expand a study into the cells to run: one (array, workload, load) once, with its seed.

Invariants:

- The expansion is a pure function of the study, the targets and the options; it opens nothing.
- A cell's seed depends on the root seed, the workload, the load and the repeat, never on the array or the target: two
  arrays see the same requests (common random numbers), so their difference is paired.
- Cells are listed in canonical order, the order of every table of the results. They are *run* in another,
  `in_run_order` of `run/schedule.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

from raidlab.study.schema import Array, Study
from raidlab.study.target import Amount, Emulated, Live, Modelled
from raidlab.study.workload import Hold, IdleMultiple, Load, Workload

IDLE_DEPTH = 1
# Ten times the largest sweeps there are; a million cells are listed in memory and take weeks.
MOST_CELLS = 1_000_000
# The target whose members are memory: what it cannot do faster, no device can.
NULL = "null"
# The purpose of a cell that only shows how long a warm-up lasts.
PILOT = "pilot"


@dataclass(frozen=True, order=True)
class LoadPoint:
    """One level of load: a depth (closed), a rate (open), a trace's own times (trace) or a held percentile (hold)."""

    kind: str
    depth: int = 0
    rate_per_s: float = 0.0

    @property
    def label(self) -> str:
        """How the level is written in tables and seeds."""
        if self.kind == "trace":
            return self.kind
        return f"rate={self.rate_per_s:g}/s" if self.kind == "open" else f"{self.kind}={self.depth}"


@dataclass(frozen=True)
class Cell:
    """One measurement: which array does what, how hard, on which target, with which seed.

    ``purpose`` is ``sweep`` for the loads the study lists, ``idle`` for the idle run a target is derived from, and
    ``search`` for the steps of a search for a response time.
    """

    target: str
    array: Array
    workload: Workload
    load: LoadPoint
    repeat: int
    seed: int
    purpose: str = "sweep"

    @cached_property
    def name(self) -> str:
        """A readable identity, unique within a run."""
        return cell_name(self.target, self.array.name, self.workload.name, self.load, self.repeat)


@dataclass(frozen=True)
class HoldTask:
    """Find the load at which an array meets a response-time target under a workload."""

    target: str
    array: Array
    workload: Workload
    hold: Hold
    repeat: int

    @property
    def reference(self) -> str | None:
        """The array whose idle response sets the target; None for a target in milliseconds."""
        return self.hold.target.of if isinstance(self.hold.target, IdleMultiple) else None


@dataclass(frozen=True)
class Expansion:
    """All that a study asks of one target."""

    target: str
    cells: tuple[Cell, ...]
    holds: tuple[HoldTask, ...]


@dataclass(frozen=True)
class Budget:
    """How long each cell runs and how often, after ``--quick`` has had its say."""

    warmup: Amount
    measure: Amount
    repeats: int


def budget(study: Study, target: str, *, quick: bool) -> Budget:
    """The budget of a target (``sim``, ``original``, ``emulated`` or ``live``)."""
    section: Emulated | Live | Modelled | None = study.live if target == NULL else getattr(study, target)
    assert section is not None, "a target without a section is refused before expansion"
    if not quick:
        return Budget(section.warmup, section.measure, section.repeats)
    return Budget(
        section.quick.warmup or section.warmup, section.quick.measure or section.measure, section.quick.repeats
    )


def fills_caches(section: Modelled, *, quick: bool) -> bool:
    """Whether the warm-up of a simulated target waits for write caches."""
    if quick and section.quick.fill_caches is not None:
        return section.quick.fill_caches
    return section.fill_caches


def expand(study: Study, target: str, *, seed: int, quick: bool = False) -> Expansion:
    """List the cells and the response-time searches of a study on ``sim``, ``original``, ``emulated`` or ``live``.

    ``seed`` is the root seed; ``quick`` takes the quick budget and the quick depths.
    """
    cells: dict[str, Cell] = {}
    holds: list[HoldTask] = []
    by_name = {array.name: array for array in study.array}
    repeats = range(budget(study, target, quick=quick).repeats)
    for array in study.array:
        for workload in study.workload:
            if not is_run(array, workload, target):
                continue
            load = load_of(study, array, workload)
            for point in points_of(load, workload, quick=quick):
                for repeat in repeats:
                    cell = make_cell(target, array, workload, point, repeat, seed)
                    cells.setdefault(cell.name, cell)
            if load.hold is None or workload.trace is not None:
                continue
            for repeat in repeats:
                task = HoldTask(target, array, workload, load.hold, repeat)
                holds.append(task)
                if task.reference is not None:
                    idle_point = LoadPoint("closed", depth=IDLE_DEPTH)
                    idle = make_cell(target, by_name[task.reference], workload, idle_point, repeat, seed, "idle")
                    cells.setdefault(idle.name, idle)
    return Expansion(target, tuple(cells.values()), tuple(holds))


def count_cells(study: Study, target: str) -> int:
    """How many cells and searches a study asks of one target, without listing them.

    Beyond `MOST_CELLS` it stops counting: the answer is then above it, and no more.
    """
    repeats = budget(study, target, quick=False).repeats
    asked = 0
    for array in study.array:
        for workload in study.workload:
            if is_run(array, workload, target):
                load = load_of(study, array, workload)
                asked += len(points_of(load, workload, quick=False)) * repeats
                asked += repeats if load.hold is not None else 0
            if asked > MOST_CELLS:
                return asked
    return asked


def expand_null(study: Study, *, seed: int, quick: bool = False) -> Expansion:
    """The cells that bound raidlab's own cost: each array and workload once, at its heaviest load, over memory.

    Traces are left out: their addresses lie beyond what memory holds, and their pace is not raidlab's to raise. So are
    runs from a cold start, beside which the same requests run longer.
    """
    # The first table is the one a study is about; its arrays bound what the others can cost.
    groups = {study.compare[0].group} if study.compare else {array.group for array in study.array}
    heaviest: dict[tuple[str, str], Cell] = {}
    for cell in expand(study, "live", seed=seed, quick=quick).cells:
        if cell.workload.streams is not None or cell.workload.files is not None:
            # Members in memory are too small for their files; a study measures the stages of a path as streams.
            continue
        key = (cell.array.name, cell.workload.name)
        is_other = cell.workload.trace is not None or cell.workload.count is not None
        # A bad day takes as long over memory as over disks, and what it shows is not raidlab's cost.
        is_other = is_other or bool(cell.array.events)
        if cell.array.group not in groups or cell.repeat != 0 or is_other:
            continue
        if key not in heaviest or cell.load > heaviest[key].load:
            heaviest[key] = cell
    return Expansion(NULL, tuple(replace(cell, target=NULL, purpose=NULL) for cell in heaviest.values()), ())


def is_run(array: Array, workload: Workload, target: str) -> bool:
    """Whether an array is run under a workload on a target."""
    is_asked = workload.arrays is None or array.name in workload.arrays
    if array.is_mounted and workload.files is None:
        return False
    return is_asked and array.runs_on(target) and workload.runs_on(target)


def load_of(study: Study, array: Array, workload: Workload) -> Load:
    """How hard an array is driven under a workload: as it says itself, else as the workload does, else as the study."""
    return array.load or workload.load or study.load


def points_of(load: Load, workload: Workload, *, quick: bool) -> list[LoadPoint]:
    """The levels of load of a workload: a trace that is replayed by its time stamps has one, which it brings along."""
    if workload.trace is not None and workload.trace.pace == "stamps":
        return [LoadPoint("trace")]
    return load_points(load, quick=quick)


def load_points(load: Load, *, quick: bool) -> list[LoadPoint]:
    """The levels of load that are run whatever the results are."""
    if load.open is not None:
        return [LoadPoint("open", rate_per_s=rate) for rate in load.open.rates_per_s]
    depths = load.quick_depths if quick and load.quick_depths is not None else load.depths
    return [LoadPoint("closed", depth=depth) for depth in sorted(set(depths))]


def cell_name(target: str, array: str, workload: str, point: LoadPoint, repeat: int) -> str:
    """A readable identity of a cell, unique within a run.

    Examples
    --------
    >>> cell_name("sim", "raid5", "reads", LoadPoint("closed", depth=8), 0)
    'sim/raid5/reads/closed=8/0'
    """
    return f"{target}/{array}/{workload}/{point.label}/{repeat}"


def make_cell(
    target: str,
    array: Array,
    workload: Workload,
    point: LoadPoint,
    repeat: int,
    root_seed: int,
    purpose: str = "sweep",
) -> Cell:
    """Build one cell with its derived seed."""
    seed = derive_seed(root_seed, workload.name, point.label, str(repeat))
    return Cell(target, array, workload, point, repeat, seed, purpose)


def derive_seed(root_seed: int, *path: str) -> int:
    """A seed below 2^63 for a path of names under a root seed; the same on every machine and version of Python."""
    text = "\x1f".join((str(root_seed), *path)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1

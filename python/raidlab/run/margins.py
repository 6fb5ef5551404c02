"""Where the order of two arrays turns along one axis, found by simulating both with the same seeds.

Invariants:

- Only modelled devices on a virtual clock are asked: `Simulation` refuses every other target, and has no way to one.
- Both arrays see the same requests at every place, so what is bisected is the mean of paired log ratios.
- How a place is looked for, and what its interval is, is in `raidlab.stats.turning`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from raidlab.errors import CellFailedError, InputError
from raidlab.results.answer import CellAnswer
from raidlab.results.outcome import CellOutcome
from raidlab.run.interrupt import StopFlag
from raidlab.run.pool import PoolRunner
from raidlab.run.request import cell_request
from raidlab.run.runner import Runner
from raidlab.run.schedule import Schedule, bytes_per_s
from raidlab.stats.turning import Range, turning
from raidlab.study import Cell, LoadedStudy, expand
from raidlab.study.expand import load_of
from raidlab.study.schema import Array, Study
from raidlab.study.tree import Tree
from raidlab.study.words import is_simulated
from raidlab.study.workload import Load, Workload

SimulatedAxis = Literal["read", "chunk", "response", "depth"]
SIMULATED_AXES: tuple[SimulatedAxis, ...] = get_args(SimulatedAxis)
# Fewer repeats give an interval that is mostly Student's factor.
LEAST_REPEATS = 6
_CHUNKS = (4 << 10, 16 << 20)
_DEPTHS = (1, 1024)
# A response time is looked at up to so many times longer and shorter.
_FARTHEST_RESPONSE = 64.0
# The same of a chunk: long requests over tiny chunks are many operations each, and take long to simulate.
_FARTHEST_CHUNK = 32.0
_CHUNK_STEP = 4 << 10


@dataclass(frozen=True)
class Pair:
    """First and second of an answer, and what it says of them."""

    target: str
    workload: str
    first: str
    second: str
    depth: int
    """The closed loop's, where no response time is held."""
    held_ms: float | None = None
    """The response time at which both are compared; None where it is not."""


@dataclass(frozen=True)
class TurningPoint:
    """Where the order turns."""

    now: float
    at: float
    low: float | None
    high: float | None
    cells: int
    """How many were simulated to find it."""


@dataclass
class Simulation:
    """Two arrays of a study under one of its workloads, at any place of an axis."""

    loaded: LoadedStudy
    pair: Pair
    seed: int
    repeats: int
    runner: Runner
    quick: bool = False
    cells: int = 0
    _known: dict[tuple[str, float], list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Only what is modelled may be asked."""
        if not is_simulated(self.pair.target):
            raise InputError.one(
                "--on",
                "margins are simulated, never measured",
                value=f"'{self.pair.target}'",
                accepted="a run on sim or original",
            )

    def crossing(self, axis: SimulatedAxis, *, upwards: bool) -> TurningPoint | None:
        """The nearest place on one side from which on the second is ahead; None where there is none."""
        range_, begun = self._range(axis), self.cells
        found = turning(range_, lambda place: self.logs(axis, place), upwards=upwards)
        return None if found is None else TurningPoint(range_.now, found.at, found.low, found.high, self.cells - begun)

    def logs(self, axis: SimulatedAxis, place: float) -> list[float] | None:
        """The log ratio of first to second in every repeat; None where the response time cannot be held there."""
        key = (axis, place)
        if key not in self._known:
            rates = self._rates(self._moved(axis, place), is_held=self.pair.held_ms is not None)
            self._known[key] = (
                []
                if rates is None
                else [math.log(a / b) for a, b in zip(*(rates[name] for name in self._names), strict=True)]
            )
        return self._known[key] or None

    @property
    def _names(self) -> tuple[str, str]:
        return self.pair.first, self.pair.second

    def _range(self, axis: SimulatedAxis) -> Range:
        workload = self._workload
        match axis:
            case "read":
                return Range(workload.read, 0.0, 1.0, is_share=True)
            case "depth":
                now = float(self.pair.depth)
                return Range(now, _DEPTHS[0], max(_DEPTHS[1], now), is_share=False, whole=1)
            case "chunk":
                now = float(self._chunk())
                low, high = max(_CHUNKS[0], now / _FARTHEST_CHUNK), min(_CHUNKS[1], now * _FARTHEST_CHUNK)
                return Range(now, min(low, now), max(high, now), is_share=False, whole=_CHUNK_STEP)
            case "response":
                held = self.pair.held_ms or 0.0
                return Range(held, held / _FARTHEST_RESPONSE, held * _FARTHEST_RESPONSE, is_share=False)

    def reason_against(self, axis: SimulatedAxis) -> str:
        """Why nothing can be moved along an axis; empty where it can."""
        workload = self._workload
        if workload.trace is not None or workload.streams is not None or workload.files is not None:
            return "its workload is no requests drawn"
        if axis == "response" and self.pair.held_ms is None:
            return "no response time is held"
        if axis == "depth" and self.pair.held_ms is not None:
            return "the depth follows from the response time that is held"
        if axis == "chunk":
            chunks = {chunk for name in self._names for chunk in _chunks(self.loaded.geometry.trees[name])}
            if len(chunks) != 1:
                return "neither array has chunks" if not chunks else "its arrays differ in their chunks"
            if chunks.pop() % _CHUNK_STEP:
                return "its chunks are no multiple of 4 KiB"
        return ""

    def _chunk(self) -> int:
        return max(chunk for name in self._names for chunk in _chunks(self.loaded.geometry.trees[name]))

    @property
    def _workload(self) -> Workload:
        return next(one for one in self.loaded.study.workload if one.name == self.pair.workload)

    def _moved(self, axis: SimulatedAxis, place: float) -> LoadedStudy:
        """The study of these two arrays alone, at a place of an axis."""
        study, workload = self.loaded.study, self._workload
        if axis == "read":
            workload = workload.model_copy(update={"read": min(max(place, 0.0), 1.0)})
        section = getattr(study, self.pair.target)
        quick = section.quick.model_copy(update={"repeats": self.repeats})
        arrays = [one for one in study.array if one.name in self._names]
        arrays = [one.model_copy(update={"load": self._load(study, one, workload, axis, place)}) for one in arrays]
        moved = study.model_copy(
            update={
                "array": arrays,
                "workload": [workload.model_copy(update={"arrays": list(self._names)})],
                self.pair.target: section.model_copy(update={"repeats": self.repeats, "quick": quick}),
            }
        )
        geometry = self.loaded.geometry
        if axis == "chunk":
            trees = {name: _with_chunk(tree, round(place)) for name, tree in geometry.trees.items()}
            geometry = replace(geometry, trees={**geometry.trees, **{name: trees[name] for name in self._names}})
        return replace(self.loaded, study=moved, geometry=geometry)

    def _load(self, study: Study, array: Array, workload: Workload, axis: SimulatedAxis, place: float) -> Load:
        if self.pair.held_ms is None:
            return Load(depths=[round(place) if axis == "depth" else self.pair.depth])
        hold = load_of(study, array, workload).hold
        assert hold is not None, "a response time is held because the study says so"
        target_ms = place if axis == "response" else self.pair.held_ms
        return Load(depths=[1], hold=hold.model_copy(update={"target": max(1, round(target_ms * 1e6))}))

    def _rates(self, loaded: LoadedStudy, *, is_held: bool) -> dict[str, list[float]] | None:
        """Throughput of both arrays in every repeat; None where one cannot hold the response time, or always does."""

        def text_of(cell: Cell, hold_target_ns: int | None) -> str:
            model = loaded.geometry.device(cell.target, cell.array.name)
            return cell_request(
                loaded,
                cell,
                members=[model.parameters],
                sector_bytes=model.sector_bytes,
                quick=self.quick,
                hold_target_ns=hold_target_ns,
            )

        expansion = expand(loaded.study, self.pair.target, seed=self.seed, quick=self.quick)
        found: dict[str, dict[int, float]] = {name: {} for name in self._names}
        for outcome in Schedule(expansion, text_of, self.runner, self.seed).outcomes():
            if isinstance(outcome, CellOutcome):
                self.cells += 1
                if not is_held:
                    found[outcome.cell.array.name][outcome.cell.repeat] = _rate(outcome.answer, outcome.cell)
                continue
            if outcome.answer["kind"] in ("never_exceeded", "always_exceeded"):
                _drain(self.runner)
                return None
            found[outcome.task.array.name][outcome.task.repeat] = outcome.answer["throughput"]
        rates = {name: [rate for _, rate in sorted(by_repeat.items())] for name, by_repeat in found.items()}
        return rates if all(len(each) == self.repeats for each in rates.values()) else None


def simulated(
    loaded: LoadedStudy,
    pair: Pair,
    axes: Sequence[SimulatedAxis],
    *,
    seed: int,
    repeats: int,
    quick: bool = False,
    stop: StopFlag | None = None,
    note: Callable[[str], None] = lambda _text: None,
) -> list[tuple[SimulatedAxis, TurningPoint]]:
    """The crossings of a pair along axes, on both sides of where it is now; what cannot be moved is said."""
    runner = PoolRunner(stop or StopFlag())
    try:
        simulation = Simulation(loaded, pair, seed, max(repeats, LEAST_REPEATS), runner, quick)
        found = []
        for axis in axes:
            if reason := simulation.reason_against(axis):
                note(f"{pair.workload}: {axis} is not moved: {reason}")
                continue
            for upwards in (False, True):
                crossing = simulation.crossing(axis, upwards=upwards)
                if crossing is not None:
                    found.append((axis, crossing))
        note(f"{pair.workload}: {pair.first} against {pair.second}, {simulation.cells} cells simulated")
        return found
    finally:
        runner.close()


def _drain(runner: Runner) -> None:
    """Wait for what is still under way, so that nothing of it comes to the next place."""
    while runner.next_done() is not None:
        pass


def _rate(answer: CellAnswer, cell: Cell) -> float:
    rate = bytes_per_s(answer)
    if rate <= 0:
        raise CellFailedError(f"{cell.name}: nothing was served while it was measured; measure for longer")
    return rate


def _chunks(tree: Tree) -> set[int]:
    own = {tree["chunk_bytes"]} if "chunk_bytes" in tree else set()
    return own.union(*(_chunks(child) for child in tree.get("children", [])))


def _with_chunk(tree: Tree, chunk_bytes: int) -> Tree:
    found: Tree = {**tree}
    if "chunk_bytes" in tree:
        found["chunk_bytes"] = chunk_bytes
    if "children" in tree:
        found["children"] = [_with_chunk(child, chunk_bytes) for child in tree["children"]]
    return found

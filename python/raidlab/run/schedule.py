"""Run all that a study asks of one target: the sweep of loads first, then the searches for response-time targets.

Invariants:

- A search reuses every cell the sweep has measured and measures only the depths that are missing. Repeats search
  together: what decides is the percentile of their merged histogram.
- A target that is a multiple of an idle response waits for all repeats of that idle cell and takes the percentile of
  their merged histogram.
- Outcomes come in the order they are ready; which ones there are does not depend on that order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from raidlab.errors import CellFailedError, CellLostError
from raidlab.histogram import Histogram
from raidlab.results.answer import CellAnswer, HoldAnswer, SearchPoint, read_answer, times_of_all
from raidlab.results.outcome import CellOutcome, HoldOutcome, Outcome
from raidlab.run.runner import Runner
from raidlab.stats.order import interleaved
from raidlab.study import Cell, Expansion, HoldTask, LoadPoint, make_cell
from raidlab.study.expand import IDLE_DEPTH, derive_seed
from raidlab.study.workload import IdleMultiple
from raidlab.written import WrittenAnswer

if TYPE_CHECKING:
    from raidlab._core import DepthSearch

TextOf = Callable[[Cell, int | None], str]

# For the progress bar only, until the searches themselves say how many steps they need.
EXPECTED_SEARCH_STEPS = 4
# The texts of so many requests are in memory at once; among them a cluster begins with the longest.
_AHEAD = 10_000


def in_run_order(cells: Iterable[Cell], root_seed: int) -> list[Cell]:
    """The order in which cells are run: repeat by repeat, shuffled within each repeat by a seed of its own."""
    return interleaved(cells, lambda cell: cell.repeat, lambda repeat: derive_seed(root_seed, "order", str(repeat)))


@dataclass
class _Search:
    """A search under way: all repeats of an array and workload, the engine's state machine, the cells it waits for."""

    tasks: list[HoldTask]
    target_ns: int
    engine: DepthSearch
    waiting_for: set[str] = field(default_factory=set)


@dataclass
class Schedule:
    """The state of running one expansion."""

    expansion: Expansion
    text_of: TextOf
    """Writes the request of a cell; its second argument is the target of a held percentile."""
    runner: Runner
    root_seed: int
    lost: list[str] = field(default_factory=list)
    """What is to be said of each cell that could not be had."""
    _answers: dict[str, CellAnswer] = field(default_factory=dict)
    _cells: dict[str, Cell] = field(default_factory=dict)
    _orders: dict[str, int] = field(default_factory=dict)
    _waiting: Iterator[Cell] = field(default_factory=lambda: iter(()))
    """What the runner was not given yet."""

    def outcomes(self) -> Iterator[Outcome]:
        """Run everything, and yield each outcome as soon as it is there."""
        self._waiting = iter(in_run_order(self.expansion.cells, self.root_seed))
        for cell in itertools.islice(self._waiting, _AHEAD):
            self._submit(cell)
        while (outcome := self._collect()) is not None:
            yield outcome
        yield from self._hold_by_adjusting()
        yield from self._hold_by_searching()

    def leftovers(self) -> Iterator[CellOutcome]:
        """After an interrupt: stop the runner and yield the cells that were finished meanwhile."""
        for key, answer in self.runner.close():
            yield self._outcome(str(key), answer)

    def expected_cells(self) -> int:
        """How many cells there will be, as far as it is known."""
        return len(self.expansion.cells) + EXPECTED_SEARCH_STEPS * len(self.expansion.holds)

    def _submit(self, cell: Cell, hold_target_ns: int | None = None) -> None:
        self._cells[cell.name] = cell
        self._orders[cell.name] = len(self._orders)
        self.runner.submit(cell.name, self.text_of(cell, hold_target_ns))

    def _collect(self) -> CellOutcome | None:
        while True:
            for cell in itertools.islice(self._waiting, 1):
                self._submit(cell)
            try:
                done = self.runner.next_done()
            except CellLostError as error:
                self.lost.append(str(error))
                continue
            return None if done is None else self._outcome(str(done[0]), done[1])

    def _outcome(self, name: str, answer: CellAnswer | WrittenAnswer) -> CellOutcome:
        # Only searches look back, and a sweep may have more cells than fit into memory.
        if self.expansion.holds:
            self._answers[name] = read_answer(answer)
        return CellOutcome(self._cells[name], self._orders[name], answer)

    def _hold_by_adjusting(self) -> Iterator[Outcome]:
        tasks: dict[str, tuple[HoldTask, int]] = {}
        for task in self.expansion.holds:
            if task.hold.method == "adjust":
                target_ns = self._target_ns(task)
                cell = self._cell(task, LoadPoint("hold"), "hold")
                tasks[cell.name] = (task, target_ns)
                self._submit(cell, target_ns)
        while (outcome := self._collect()) is not None:
            yield outcome
            task, target_ns = tasks[outcome.cell.name]
            yield HoldOutcome(task, target_ns, adjusted_answer(outcome.answer))

    def _hold_by_searching(self) -> Iterator[Outcome]:
        from raidlab import _core

        searches: dict[tuple[str, str], _Search] = {}
        for task in self.expansion.holds:
            if task.hold.method != "search":
                continue
            key = (task.array.name, task.workload.name)
            if key not in searches:
                target_ns = self._target_ns(task)
                engine = _core.DepthSearch(task.hold.percentile, target_ns, task.hold.max_depth)
                searches[key] = _Search([], target_ns, engine)
            searches[key].tasks.append(task)
        for search in searches.values():
            yield from self._advance(search)
        while (outcome := self._collect()) is not None:
            yield outcome
            for search in searches.values():
                if outcome.cell.name in search.waiting_for:
                    search.waiting_for.remove(outcome.cell.name)
                    if not search.waiting_for:
                        yield from self._advance(search)

    def _advance(self, search: _Search) -> Iterator[Outcome]:
        """Feed a search with what has been measured until it needs new cells or is done."""
        while (depth := search.engine.next()) is not None:
            cells = [self._at(task, depth) for task in search.tasks]
            search.waiting_for = {cell.name for cell in cells if cell.name not in self._answers}
            if search.waiting_for:
                for cell in cells:
                    if cell.name not in self._cells:
                        self._submit(cell)
                return
            self._report_point(search, depth, [self._answers[cell.name] for cell in cells])
        yield from self._found(search)

    @staticmethod
    def _report_point(search: _Search, depth: int, answers: list[CellAnswer]) -> None:
        """Tell a search of one depth: the percentile is that of all repeats together, never a mean of percentiles."""
        response = Histogram.merged(times_of_all(answer) for answer in answers)
        rate = sum(bytes_per_s(answer) for answer in answers) / len(answers)
        search.engine.report(depth, response.value_ns, response.count, rate)

    def _found(self, search: _Search) -> Iterator[HoldOutcome]:
        """What a search found, with each repeat's own throughput at the depth that all repeats together agree on."""
        merged = search.engine.answer()
        assert merged is not None, "the search asks for no more depths"
        for task in search.tasks:
            lower, upper = (self._point_of(task, merged[end]) for end in ("lower", "upper"))
            throughput = between([point for point in (lower, upper) if point], merged["depth"] or 0.0)
            answer: HoldAnswer = {**merged, "lower": lower, "upper": upper, "throughput": throughput}
            yield HoldOutcome(task, search.target_ns, answer)

    def _point_of(self, task: HoldTask, point: SearchPoint | None) -> SearchPoint | None:
        """A point of a search, with one repeat's own throughput there."""
        if point is None:
            return None
        return {**point, "throughput": bytes_per_s(self._answers[self._at(task, point["depth"]).name])}

    def _at(self, task: HoldTask, depth: int) -> Cell:
        return self._cell(task, LoadPoint("closed", depth=depth), "search")

    def _target_ns(self, task: HoldTask) -> int:
        target = task.hold.target
        if not isinstance(target, IdleMultiple):
            return target
        idle = [
            times_of_all(answer)
            for name, answer in self._answers.items()
            if self._is_idle(self._cells[name], target.of, task.workload.name)
        ]
        percentile_ns = Histogram.merged(idle).percentile_ns(task.hold.percentile)
        if percentile_ns is None:
            raise CellFailedError(
                f"{target.of}, {task.workload.name}: no request at depth {IDLE_DEPTH} ended while it was measured, so "
                f"{target.times_idle:g} times its idle response time is not known; measure for longer"
            )
        return round(percentile_ns * target.times_idle)

    @staticmethod
    def _is_idle(cell: Cell, array: str, workload: str) -> bool:
        closed = cell.load.kind == "closed" and cell.load.depth == IDLE_DEPTH
        return closed and cell.array.name == array and cell.workload.name == workload

    def _cell(self, task: HoldTask, point: LoadPoint, purpose: str) -> Cell:
        return make_cell(task.target, task.array, task.workload, point, task.repeat, self.root_seed, purpose)


def bytes_per_s(answer: CellAnswer) -> float:
    """The throughput of a cell."""
    elapsed_ns = int(answer["elapsed_ns"])
    return int(answer["all"]["bytes"]) / (elapsed_ns / 1e9) if elapsed_ns else 0.0


def between(points: list[SearchPoint], depth: float) -> float:
    """Throughput at a depth between two measured ones, on the line between them; that of the only one otherwise."""
    first, last = points[0], points[-1]
    if first["depth"] == last["depth"]:
        return first["throughput"]
    share = (depth - first["depth"]) / (last["depth"] - first["depth"])
    return first["throughput"] + share * (last["throughput"] - first["throughput"])


def adjusted_answer(answer: CellAnswer) -> HoldAnswer:
    """What the running adjustment found, in the words of a search's answer."""
    hold = answer.get("hold")
    return {
        "depth": None if hold is None else hold["depth_mean"],
        "throughput": bytes_per_s(answer),
        "kind": "adjusted",
        "lower": None,
        "upper": None,
    }

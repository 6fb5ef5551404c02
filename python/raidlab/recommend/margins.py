"""What would change an answer: how far a goal, a price or the work itself may move before another array is first.

Goals and prices are moved by what is known already: counts, prices, and the times of the runs that are shown. The work
(its share of reads, how hard it drives the array) and what the disks' files assume are moved by simulating the answer
and its nearest rivals at other places (`lines`), with seeds common to them, as `raidlab margins` does for a run
(`raidlab.stats.turning`).

Invariants:

- A margin is of one thing moved by itself. Where nothing turns within what was looked at, that is said, and no margin
  is made up.
- Who is first beyond is named only as far as it is known: an array that was not simulated is called so.
- The cost is bounded: once as much was simulated as for the choice, what is left is named as not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from raidlab.recommend.candidates import ROUNDED, Contender, Shape
from raidlab.recommend.cells import Asked, Cells, log_rate
from raidlab.recommend.decide import (
    SATURATED,
    Decision,
    first_of_levels,
    goal_values_of,
    longest_ns,
    runs_of,
    too_slow,
)
from raidlab.recommend.lines import Ends, MarginLine, lines_of
from raidlab.recommend.load import LoadedNeed
from raidlab.recommend.words import limit_words, value_words
from raidlab.results.recommendation import AnswerTurn, Relaxation, money_words
from raidlab.run.progress import Progress
from raidlab.stats import mean_interval
from raidlab.stats.selection import FIRST_REPEATS
from raidlab.stats.turning import Turning, turning

# What is looked at takes about as long as the choice did, at most, and may take so much.
LEAST_REQUESTS = 400_000
_NOBODY = "none meets the need"


@dataclass
class Margins:
    """What was found."""

    turns: list[AnswerTurn] = field(default_factory=list)
    unturned: list[str] = field(default_factory=list)
    """Along what nothing turns, in words."""
    unseen: list[str] = field(default_factory=list)
    """What was not looked at, and why."""
    relaxed: list[Relaxation] = field(default_factory=list)
    """Where nothing meets the need: how far a workload's load would have to give."""
    requests: int = 0
    """Simulated for it, those of warm-ups too."""


def goal_turns(decision: Decision) -> Iterator[AnswerTurn]:
    """How far each goal may be tightened, and each price may rise, before the answer is another."""
    first, goals = decision.feasible[0], decision.loaded.need.need
    for need, now, has in (
        ("capacity", goals.capacity, float(first.user_bytes)),
        ("tolerate", goals.tolerate, float(first.tolerance)),
        ("budget", goals.budget, first.cost),
        ("watts", goals.watts, first.watts),
        ("loss_per_year", goals.loss_per_year, first.loss_per_year),
    ):
        if now is not None and has is not None:
            yield _goal_turn(decision, need, now, has, None)
    runs_shown = bool(decision.seen(first, "load", confirms=True))
    for goal in goals.time_goals():
        runs = decision.seen(first, goal.kind, confirms=runs_shown)
        each = [longest_ns(decision.loaded, first.shape, [run], goal) for run in runs]
        if each:
            whole = longest_ns(decision.loaded, first.shape, runs, goal)
            interval = mean_interval(each, independent=True)
            yield _goal_turn(decision, goal.key, goal.within_ns, whole, interval, how="simulated")
    yield from _price_turns(decision)


def _goal_turn(
    decision: Decision,
    need: str,
    now: float,
    at: float,
    interval: tuple[float, float] | None,
    how: str = "counted",
) -> AnswerTurn:
    low, high = interval or (None, None)
    # Beside times that scatter, one is faster only beyond the interval.
    instead = _next_beyond(decision, need, at if low is None else low)
    span = f", {value_words(need, low)} to {value_words(need, high)}" if low is not None and high is not None else ""
    return AnswerTurn(
        axis=need,
        now=now,
        turns_at=at,
        low=low,
        high=high,
        instead=instead,
        how=how,
        words=f"{limit_words(need, at)} ({how}{span}; then {instead})",
    )


def _next_beyond(decision: Decision, need: str, at: float) -> str:
    """Who would be the answer if a need were just beyond what the answer has."""
    # Space is met to a thousandth, so that is what one must have more.
    if need == "capacity":
        at *= 1 + ROUNDED
    for other in decision.feasible[1:]:
        value = _value_of(decision, other, need)
        if value is not None and (value > at if need in ("capacity", "tolerate") else value < at):
            return other.name
    simulated = decision.standings
    if any(goal.key == need for goal in decision.loaded.need.need.time_goals()):
        dearer = [one for one in decision.candidates if not one.missed and one.shape not in simulated]
        return "a dearer array, if any: none of those was simulated" if dearer else _NOBODY
    for other in decision.candidates:
        value = _value_of(decision, other, need)
        is_beyond = value is not None and (value > at if need in ("capacity", "tolerate") else value < at)
        if is_beyond and not other.missed and simulated.get(other.shape) in (None, "not decided"):
            cost = f" for {money_words(other.cost)}" if other.cost is not None else ""
            return f"perhaps {other.name}{cost}, whose speed was not looked at"
    return _NOBODY


def _value_of(decision: Decision, one: Contender, need: str) -> float | None:
    found = {
        "capacity": one.user_bytes,
        "tolerate": one.tolerance,
        "budget": one.cost,
        "watts": one.watts,
        "loss_per_year": one.loss_per_year,
    }
    if need in found:
        return found[need]
    goal = next(goal for goal in decision.loaded.need.need.time_goals() if goal.key == need)
    runs = decision.told(one, goal.kind)
    return longest_ns(decision.loaded, one.shape, runs, goal) if runs else None


def _price_turns(decision: Decision) -> Iterator[AnswerTurn]:
    """From which price of its disks on an array of others costs less; exact, as costs are counts times prices."""
    first = decision.feasible[0]
    if decision.loaded.need.asked != "cheapest" or first.cost is None:
        return
    others = [
        one
        for one in decision.candidates
        if one.shape.device != first.shape.device and not one.missed and decision.standings.get(one.shape) != "missed"
    ]
    if not others:
        return
    least = min(others, key=lambda one: (one.cost or 0.0, decision.standings.get(one.shape) != "met", one.number))
    factor = (least.cost or 0.0) / first.cost
    if factor < 1:
        return
    name, price = decision.loaded.device_name(first.shape.device), first.cost / first.disks
    known = "" if decision.standings.get(least.shape) == "met" else ", if it meets the goals: it was not simulated"
    words = f"{name} costs more than {money_words(price * factor)} instead of {money_words(price)}"
    yield AnswerTurn(
        axis=f"price of {name}",
        now=price,
        turns_at=price * factor,
        low=None,
        high=None,
        instead=least.name,
        how="reckoned",
        words=f"{words} (reckoned; then {least.name}{known})",
    )


@dataclass
class WorkMargins:
    """The answer and its rivals, at other places of the work."""

    decision: Decision
    progress: Progress
    spent: int = 0
    """Requests simulated, those of warm-ups too."""
    _known: dict[tuple[str, float], Cells] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How much may be simulated before nothing more is begun."""
        return max(LEAST_REQUESTS, self.decision.cells.done)

    def find(self) -> Margins:
        """Move what is assumed, each workload's share of reads and how hard it drives the array, on both sides."""
        found, decision, skipped = Margins(), self.decision, list[str]()
        first, rivals = decision.feasible[0], rivals_of(decision)
        works = [work for work in decision.loaded.works if "trace" not in work.table]
        if len(works) < len(decision.loaded.works):
            found.unseen.append("a trace is as it was recorded, and is not moved")
        self.progress.begin("what would change it", self.most, unit="request")
        try:
            for lines in lines_of(decision.loaded, first):
                still, unseen = Ends(), Ends()
                for line in lines:
                    for upwards in (False, True):
                        self._look(found, first, rivals, line, still, unseen, upwards=upwards)
                found.unturned += still.words()
                skipped += unseen.words()
        except KeyboardInterrupt:
            found.unseen.append("what comes after that, as it was interrupted")
        finally:
            self.progress.end()
        if skipped:
            found.unseen.append(f"{'; '.join(skipped)} (it would have taken longer than the choice itself)")
        found.requests = self.spent
        return found

    def relieve(self) -> Margins:
        """Where nothing meets the need: at which load, or under which assumption, what comes nearest would."""
        found = Margins()
        nearest = first_of_levels(too_slow(self.decision))
        self.progress.begin("what would have to give", self.most, unit="request")
        try:
            for line in (line for lines in lines_of(self.decision.loaded, *nearest[:1]) for line in lines):
                for upwards in line.sides_that_relieve:
                    if told := self._relieved(nearest, line, upwards=upwards):
                        found.relaxed.append(told)
        except KeyboardInterrupt:
            found.unseen.append("lighter loads, as it was interrupted")
        finally:
            self.progress.end()
        found.requests = self.spent
        return found

    def _relieved(self, nearest: list[Contender], line: MarginLine, *, upwards: bool) -> Relaxation | None:
        """The nearest place at which one of those nearest meets the goals; None where there is none on that side.

        Only of arrays that meet them in the workloads that are not moved.
        """
        best: tuple[float, str] | None = None
        for one in nearest:
            if self.spent >= self.most or not self._misses_only(one.shape, line.works):
                continue
            turned = turning(line.relieving, partial(self._short_of_goals, one.shape, line), upwards=upwards)
            if turned is not None:
                # The end of its interval that is farther off.
                end = turned.high if upwards else turned.low
                place = turned.at if end is None else end
                if best is None or (place < best[0]) == upwards:
                    best = (place, one.name)
        if best is None:
            return None
        place = best[0] if line.axis == "rate" else math.ceil(best[0]) if upwards else math.floor(best[0])
        return Relaxation(need=line.key, words=line.instead_words(place), admits=best[1], gain="")

    def _short_of_goals(self, shape: Shape, line: MarginLine, place: float) -> list[float]:
        """Above 0 while a goal is missed."""
        return [-value for value in self._goals(shape, line, place)]

    def _misses_only(self, shape: Shape, works: tuple[int, ...]) -> bool:
        """Whether a shape misses goals in these workloads, and in no others."""
        every, cells = range(len(self.decision.loaded.works)), self.decision.cells
        missing = {work for work in every for values, _ in goal_values_of(cells, shape, work) if math.fsum(values) < 0}
        return bool(missing) and missing <= set(works)

    def _look(
        self,
        found: Margins,
        first: Contender,
        rivals: list[Contender],
        line: MarginLine,
        still: Ends,
        unseen: Ends,
        *,
        upwards: bool,
    ) -> None:
        """Add where the answer turns on one side: the nearest place at which it fails, or a rival is better."""
        end = line.range.high if upwards else line.range.low
        if end == line.range.now:
            return
        if self.spent >= self.most:
            unseen.add(line, end, upwards=upwards)
            return
        nearest: tuple[Turning, str] | None = None
        range_ = line.range
        for instead, value in self._events(first, rivals, line):
            turned = turning(range_, value, upwards=upwards)
            if turned is not None and (nearest is None or line.is_nearer(turned.at, nearest[0].at)):
                nearest = turned, instead
                # What turns farther off is of no interest.
                range_ = range_.cut(turned, upwards=upwards)
        if nearest is None:
            still.add(line, end, upwards=upwards)
        else:
            found.turns.append(line.turn(*nearest))

    def _events(
        self, first: Contender, rivals: list[Contender], line: MarginLine
    ) -> Iterator[tuple[str, Callable[[float], list[float] | None]]]:
        """What may end the answer, and by place the values that are above 0 until it does."""
        if self._has_goals(line):
            yield _missed_words(self.decision.loaded, line.works), lambda place: self._goals(first.shape, line, place)
        for rival in rivals:
            yield rival.name, lambda place, rival=rival: self._against(first, rival, line, place)  # type: ignore[misc]

    def _has_goals(self, line: MarginLine) -> bool:
        loaded = self.decision.loaded
        return bool(loaded.need.need.time_goals()) or any(loaded.works[at].load.kind == "open" for at in line.works)

    def _goals(self, shape: Shape, line: MarginLine, place: float) -> list[float]:
        """How far a shape is beyond its goals, in what makes no difference: of the goal that is nearest."""
        cells = self._cells(line, place)
        self._run(cells, [shape], line)
        found = [goal for at in line.works for goal in goal_values_of(cells, shape, at)]
        goals = [[value / near for value in values] for values, near in found]
        return [min(each) for each in zip(*goals, strict=True)]

    def _against(self, first: Contender, rival: Contender, line: MarginLine, place: float) -> list[float]:
        """Above 0 while a rival is no better answer: it misses a goal, or is neither cheaper nor faster."""
        ways = []
        if self._has_goals(line):
            ways.append([-value for value in self._goals(rival.shape, line, place)])
        if self.decision.loaded.need.asked != "cheapest" or (rival.cost or 0.0) == (first.cost or 0.0):
            ways.append(self._ahead(first.shape, rival.shape, line, place))
        return [max(each) for each in zip(*ways, strict=True)]

    def _ahead(self, first: Shape, second: Shape, line: MarginLine, place: float) -> list[float]:
        """By how much the first is faster, in margins; what other workloads give is as it was."""
        cells, decision = self._cells(line, place), self.decision
        self._run(cells, [first, second], line)
        margin = math.log1p(decision.loaded.need.effort.margin_percent / 100)
        others = [one for one in range(len(decision.loaded.works)) if one not in line.works]
        logs = []
        for shape in (first, second):
            moved = runs_of(cells, shape, decision.figure, works=line.works)
            still = runs_of(decision.cells, shape, decision.figure, works=others) if others else [[]] * len(moved)
            logs.append([log_rate([*a, *b]) for a, b in zip(moved, still, strict=False)])
        return [(a - b) / margin for a, b in zip(*logs, strict=False)]

    def _run(self, cells: Cells, shapes: list[Shape], line: MarginLine) -> None:
        goals = {"load", *self.decision.loaded.need.need.states} if self._has_goals(line) else set()
        before = cells.done
        cells.run(
            Asked(shape, at, kind, repeat)
            for repeat in range(FIRST_REPEATS)
            for shape in shapes
            for at in line.works
            for kind in sorted({self.decision.figure} | goals | self._full(at))
        )
        self.spent += cells.done - before

    def _full(self, at: int) -> set[str]:
        return {SATURATED} if self.decision.loaded.works[at].load.kind == "open" else set()

    def _cells(self, line: MarginLine, place: float) -> Cells:
        """The cells of the need where it is moved to, kept while it is looked at."""
        key = (line.key, place)
        if key not in self._known:
            own, loaded = self.decision.cells, line.moved(place)
            self._known[key] = Cells(
                loaded, _Counted(self.progress, self), own.stop, own.requests, own.warm_up, own.runner
            )
        return self._known[key]


@dataclass
class _Counted(Progress):
    """Progress of one place as part of all that is looked at."""

    whole: Progress
    margins: WorkMargins

    def expect(self, total: int) -> None:
        """Nobody knows how many places it takes; at most so many."""
        self.whole.expect(max(self.margins.most, self.margins.spent + total))

    def advance(self, steps: int = 1) -> None:
        """Count it."""
        self.whole.advance(steps)


def rivals_of(decision: Decision) -> list[Contender]:
    """Who would be the answer first: the best behind it of other levels, and those that only a goal keeps from it."""
    first, asked = decision.feasible[0], decision.loaded.need.asked
    is_cheapest = asked == "cheapest"
    behind = [
        one
        for one in decision.feasible
        if one.shape.level != first.shape.level and (not is_cheapest or (one.cost or 0.0) == (first.cost or 0.0))
    ]
    missing = [one for one in too_slow(decision) if not is_cheapest or (one.cost or 0.0) < (first.cost or 0.0)]
    return [*first_of_levels(behind), *first_of_levels(missing)]


def _missed_words(loaded: LoadedNeed, works: tuple[int, ...]) -> str:
    """What becomes of the answer where it fails."""
    goals = loaded.need.need.time_goals()
    if len(goals) == 1 and all(loaded.works[at].load.kind != "open" for at in works):
        return f"{goals[0].key} is beyond {value_words(goals[0].key, goals[0].within_ns)}"
    return "a goal is missed" if goals else "it cannot keep up"


def in_order(turns: list[AnswerTurn]) -> list[AnswerTurn]:
    """The nearest first, by how many times what it is now."""

    def distance(turn: AnswerTurn) -> float:
        now, at = turn["now"], turn["turns_at"]
        return abs(math.log(at / now)) if now and at and now > 0 and at > 0 else math.inf

    return sorted(turns, key=distance)

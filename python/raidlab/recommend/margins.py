"""What would change an answer: how far a goal, a price or the work itself may move before another array is first.

Goals and prices are moved by what is known already: counts, prices, and the times of the runs that are shown. The work
(its share of reads, how hard it drives the array) is moved by simulating the answer and its nearest rivals at other
places, with seeds common to them, as `raidlab margins` does for a run (`raidlab.stats.turning`).

Invariants:

- A margin is of one thing moved by itself. Where nothing turns within what was looked at, that is said, and no margin
  is made up.
- Who is first beyond is named only as far as it is known: an array that was not simulated is called so.
- The cost is bounded: once as much was simulated as for the choice, what is left is named as not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from raidlab.analysis.margins import Margin
from raidlab.recommend.candidates import ROUNDED, Contender, Shape
from raidlab.recommend.cells import Asked, Cells, log_rate
from raidlab.recommend.decide import Decision, farness, goal_values_of, longest_ns, runs_of, short_of
from raidlab.recommend.load import LoadedNeed, ResolvedWork
from raidlab.recommend.words import limit_words, value_words
from raidlab.results.recommendation import AnswerTurn, Relaxation, money_words
from raidlab.run.progress import Progress
from raidlab.stats import mean_interval
from raidlab.stats.selection import FIRST_REPEATS
from raidlab.stats.turning import Range, turning

# What is looked at takes about as long as the choice did, at most, and may take so much.
LEAST_REQUESTS = 400_000
# A depth or a rate is looked at up to so many times higher and lower.
FARTHEST = 4.0
_MOST_DEPTH = 1024
_MOST_RIVALS = 2
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
    _known: dict[tuple[int, str, float], Cells] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How much may be simulated before nothing more is begun."""
        return max(LEAST_REQUESTS, self.decision.cells.done)

    def find(self) -> Margins:
        """Move each workload's share of reads and how hard it drives the array, on both sides."""
        found, decision, skipped = Margins(), self.decision, list[str]()
        first, rivals = decision.feasible[0], rivals_of(decision)
        works = [work for work in decision.loaded.works if "trace" not in work.table]
        if len(works) < len(decision.loaded.works):
            found.unseen.append("a trace is as it was recorded, and is not moved")
        self.progress.begin("what would change it", self.most, unit="request")
        try:
            for at, work in enumerate(decision.loaded.works):
                title = f"{work.name}: " if len(decision.loaded.works) > 1 else ""
                still, unseen = _Ends(title), _Ends(title)
                for axis, range_ in _ranges(work):
                    for upwards in (False, True):
                        self._look(found, first, rivals, at, axis, range_, still, unseen, upwards=upwards)
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
        """Where nothing meets the need: the load at which what comes nearest would, a workload at a time."""
        found, loaded = Margins(), self.decision.loaded
        nearest = _of_levels(_too_slow(self.decision))
        self.progress.begin("what would have to give", self.most, unit="request")
        try:
            for at, work in enumerate(loaded.works):
                for axis, range_ in _ranges(work):
                    if axis != "read" and (told := self._relieved(nearest, at, axis, range_)):
                        found.relaxed.append(told)
        except KeyboardInterrupt:
            found.unseen.append("lighter loads, as it was interrupted")
        finally:
            self.progress.end()
        found.requests = self.spent
        return found

    def _relieved(self, nearest: list[Contender], at: int, axis: str, range_: Range) -> Relaxation | None:
        """The heaviest load of a workload at which one of those nearest meets the goals; None where that is too light.

        Only of arrays that meet them in the other workloads.
        """
        below = replace(range_, low=1.0 if axis == "depth" else range_.now / FARTHEST**2)
        best: tuple[float, str] | None = None
        for one in nearest:
            if self.spent >= self.most or not self._misses_only(one.shape, at):
                continue
            turned = turning(below, partial(self._short_of_goals, one.shape, at, axis), upwards=False)
            if turned is not None:
                place = turned.at if turned.low is None else turned.low
                best = max(best or (0.0, ""), (place, one.name), key=lambda found: found[0])
        if best is None:
            return None
        work = self.decision.loaded.works[at]
        title = f"{work.name}: " if len(self.decision.loaded.works) > 1 else ""
        place = math.floor(best[0]) if axis == "depth" else best[0]
        words = f"{title}{_axis_words(axis, [place])} instead of {range_.now:,.4g}"
        return Relaxation(need=f"{title}{axis}", words=words, admits=best[1], gain="")

    def _short_of_goals(self, shape: Shape, at: int, axis: str, place: float) -> list[float]:
        """Above 0 while a goal is missed."""
        return [-value for value in self._goals(shape, at, axis, place)]

    def _misses_only(self, shape: Shape, at: int) -> bool:
        """Whether a shape misses goals in this workload, and in no other."""
        works = range(len(self.decision.loaded.works))
        cells = self.decision.cells
        missing = {work for work in works for values, _ in goal_values_of(cells, shape, work) if math.fsum(values) < 0}
        return missing == {at}

    def _look(
        self,
        found: Margins,
        first: Contender,
        rivals: list[Contender],
        at: int,
        axis: str,
        range_: Range,
        still: _Ends,
        unseen: _Ends,
        *,
        upwards: bool,
    ) -> None:
        """Add where the answer turns on one side: the nearest place at which it fails, or a rival is better."""
        work, end = self.decision.loaded.works[at], range_.high if upwards else range_.low
        if end == range_.now:
            return
        title = f"{work.name}: " if len(self.decision.loaded.works) > 1 else ""
        if self.spent >= self.most:
            unseen.add(axis, end, upwards=upwards)
            return
        nearest: AnswerTurn | None = None
        for instead, value in self._events(first, rivals, at, axis):
            turned = turning(range_, value, upwards=upwards)
            if turned is None:
                continue
            scale = 100.0 if axis == "read" else 1.0
            low, high = (None if one is None else scale * one for one in (turned.low, turned.high))
            margin = Margin(axis, scale * range_.now, scale * turned.at, low, high, instead, "simulated")  # type: ignore[arg-type]
            is_nearer = nearest is None or abs(margin.turns_at - scale * range_.now) < abs(
                nearest["turns_at"] - scale * range_.now
            )
            if is_nearer:
                nearest = AnswerTurn(
                    axis=f"{title}{axis}",
                    now=scale * range_.now,
                    turns_at=margin.turns_at,
                    low=low,
                    high=high,
                    instead=instead,
                    how="simulated",
                    words=f"{title}{margin.condition()}",
                )
        if nearest is None:
            still.add(axis, end, upwards=upwards)
        else:
            found.turns.append(nearest)

    def _events(
        self, first: Contender, rivals: list[Contender], at: int, axis: str
    ) -> Iterator[tuple[str, Callable[[float], list[float] | None]]]:
        """What may end the answer, and by place the values that are above 0 until it does."""
        if self._has_goals(at):
            yield _missed_words(self.decision.loaded, at), lambda place: self._goals(first.shape, at, axis, place)
        for rival in rivals:
            yield rival.name, lambda place, rival=rival: self._against(first, rival, at, axis, place)  # type: ignore[misc]

    def _has_goals(self, at: int) -> bool:
        return bool(self.decision.loaded.need.need.time_goals()) or self.decision.loaded.works[at].load.kind == "open"

    def _goals(self, shape: Shape, at: int, axis: str, place: float) -> list[float]:
        """How far a shape is beyond its goals, in what makes no difference: of the goal that is nearest."""
        cells = self._cells(at, axis, place)
        self._run(cells, [shape], at)
        goals = [[value / near for value in values] for values, near in goal_values_of(cells, shape, at)]
        return [min(each) for each in zip(*goals, strict=True)]

    def _against(self, first: Contender, rival: Contender, at: int, axis: str, place: float) -> list[float]:
        """Above 0 while a rival is no better answer: it misses a goal, or is neither cheaper nor faster."""
        ways = []
        if self._has_goals(at):
            ways.append([-value for value in self._goals(rival.shape, at, axis, place)])
        if self.decision.loaded.need.asked != "cheapest" or (rival.cost or 0.0) == (first.cost or 0.0):
            ways.append(self._ahead(first.shape, rival.shape, at, axis, place))
        return [max(each) for each in zip(*ways, strict=True)]

    def _ahead(self, first: Shape, second: Shape, at: int, axis: str, place: float) -> list[float]:
        """By how much the first is faster, in margins; what other workloads give is as it was."""
        cells, decision = self._cells(at, axis, place), self.decision
        self._run(cells, [first, second], at)
        margin = math.log1p(decision.loaded.need.effort.margin_percent / 100)
        others = [one for one in range(len(decision.loaded.works)) if one != at]
        logs = []
        for shape in (first, second):
            moved = runs_of(cells, shape, decision.figure, works=[at])
            still = runs_of(decision.cells, shape, decision.figure, works=others) if others else [[]] * len(moved)
            logs.append([log_rate([*a, *b]) for a, b in zip(moved, still, strict=False)])
        return [(a - b) / margin for a, b in zip(*logs, strict=False)]

    def _run(self, cells: Cells, shapes: list[Shape], at: int) -> None:
        goals = {"load", *self.decision.loaded.need.need.states} if self._has_goals(at) else set()
        full = {"saturated"} if self.decision.loaded.works[at].load.kind == "open" else set()
        before = cells.done
        cells.run(
            Asked(shape, at, kind, repeat)
            for repeat in range(FIRST_REPEATS)
            for shape in shapes
            for kind in sorted({self.decision.figure} | goals | full)
        )
        self.spent += cells.done - before

    def _cells(self, at: int, axis: str, place: float) -> Cells:
        """The cells of the need with one workload moved, kept while it is looked at."""
        key = (at, axis, place)
        if key not in self._known:
            own, loaded = self.decision.cells, _moved(self.decision.loaded, at, axis, place)
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
    missing = [one for one in _too_slow(decision) if not is_cheapest or (one.cost or 0.0) < (first.cost or 0.0)]
    return [*_of_levels(behind), *_of_levels(missing)]


def _too_slow(decision: Decision) -> list[Contender]:
    """What meets the need but for its speed, the nearest first."""
    slow = [
        one
        for one in decision.candidates
        if not one.missed and decision.standings.get(one.shape) in ("missed", "not decided")
    ]
    return sorted(slow, key=lambda one: (farness(short_of(decision, one)), one.number))


def _of_levels(candidates: list[Contender]) -> list[Contender]:
    """The first of each level, a few."""
    found: dict[str, Contender] = {}
    for one in candidates:
        found.setdefault(one.shape.level, one)
    return list(found.values())[:_MOST_RIVALS]


def _ranges(work: ResolvedWork) -> Iterator[tuple[str, Range]]:
    """What of a workload is moved, and how far."""
    read = work.table.get("read")
    if "trace" in work.table:
        return
    if isinstance(read, int | float):
        yield "read", Range(float(read), 0.0, 1.0, is_share=True)
    if work.load.kind == "closed":
        now = float(work.load.depth)
        most = min(max(now, _MOST_DEPTH), now * FARTHEST)
        yield "depth", Range(now, max(1.0, math.floor(now / FARTHEST)), most, is_share=False, whole=1)
    elif work.load.kind == "open":
        now = work.load.rate_per_s
        yield "rate", Range(now, now / FARTHEST, now * FARTHEST, is_share=False)


def _moved(loaded: LoadedNeed, at: int, axis: str, place: float) -> LoadedNeed:
    work = loaded.works[at]
    if axis == "read":
        moved = replace(work, table={**work.table, "read": min(max(place, 0.0), 1.0)})
    elif axis == "depth":
        moved = replace(work, load=replace(work.load, depth=round(place)))
    else:
        moved = replace(work, load=replace(work.load, rate_per_s=place))
    return replace(loaded, works=[*loaded.works[:at], moved, *loaded.works[at + 1 :]])


@dataclass
class _Ends:
    """How far each axis of a workload was looked along, or would have been."""

    title: str
    _by_axis: dict[str, dict[bool, float]] = field(default_factory=dict)

    def add(self, axis: str, end: float, *, upwards: bool) -> None:
        """Add one end of an axis."""
        self._by_axis.setdefault(axis, {})[upwards] = end

    def words(self) -> list[str]:
        """All of them in one line; none where there are none."""
        each = [
            f"{'' if len(ends) > 1 else 'up to ' if True in ends else 'down to '}{_axis_words(axis, [*ends.values()])}"
            for axis, ends in self._by_axis.items()
        ]
        return [f"{self.title}{', '.join(each)}"] if each else []


def _axis_words(axis: str, ends: list[float]) -> str:
    """A place on an axis, or from one to another."""
    if axis == "read":
        return f"{' to '.join(f'{100 * end:.0f}' for end in ends)} % reads"
    if axis == "depth":
        return f"{'a queue depth' if len(ends) == 1 else 'queue depths'} of {' to '.join(f'{end:.0f}' for end in ends)}"
    return f"{' to '.join(f'{end:,.4g}' for end in ends)} requests/s"


def _missed_words(loaded: LoadedNeed, at: int) -> str:
    """What becomes of the answer where it fails."""
    goals = loaded.need.need.time_goals()
    if len(goals) == 1 and loaded.works[at].load.kind != "open":
        return f"{goals[0].key} is beyond {value_words(goals[0].key, goals[0].within_ns)}"
    return "a goal is missed" if goals else "it cannot keep up"


def in_order(turns: list[AnswerTurn]) -> list[AnswerTurn]:
    """The nearest first, by how many times what it is now."""

    def distance(turn: AnswerTurn) -> float:
        now, at = turn["now"], turn["turns_at"]
        return abs(math.log(at / now)) if now and at and now > 0 and at > 0 else math.inf

    return sorted(turns, key=distance)

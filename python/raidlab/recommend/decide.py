"""Which array: what misses the need is dropped by rules that say so, the rest is simulated until it is told apart.

Steps: exact needs by the trees themselves (`candidates`); a few long runs, which show how long a warm-up is;
feasibility, a sequential test of each array at the load needed; a screen by counts of accesses, against what is proven
by then; selection (`stats.selection`); fresh seeds for the first three. Arrays are looked at in waves: cheapest first
where the cheapest is asked for, else those that count best first.

Invariants:

- An array is dropped by a rule, never by its place in an order; which rule dropped how many is told.
- The chance of a wrong word is split evenly over feasibility and selection, and there over all arrays looked at.
- Figures that are shown come from seeds that decided nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from raidlab.histogram import Histogram
from raidlab.recommend.candidates import Contender, Shape, Shortfall, enumerate_candidates, requests_per_access
from raidlab.recommend.cells import (
    CONFIRM_TIMES,
    LEAST_WARM_UP,
    MORE_WARM_UP,
    PILOT_REQUESTS,
    Asked,
    Cells,
    Seen,
    fastest_answers_ns,
    log_rate,
    pilot_warm_up,
)
from raidlab.recommend.load import LoadedNeed, ResolvedWork
from raidlab.recommend.need import TimeGoal
from raidlab.stats.selection import FIRST_REPEATS, Standing, remaining, standing

WAVE = 64
# Shares of requests so near the goal may be called either; rates, as logarithms.
_SHARE_INDIFFERENCE, _RATE_INDIFFERENCE = 0.005, 0.01
SATURATED = "saturated"
_MORE = 4
_DEARER = "dearer than one that meets the need"
SHOWN = 3
# Of those that come near the answer so many are looked at more closely, each of another level.
RIVALS = 2
# Arrays that miss one need by their shape alone, simulated so that the answer can say what relaxing it would admit.
_NEAR_MISSES = 4
# Of each kind of disk, at most so many arrays are run for long to see when they are in their stride.
_PILOTS = 4
# Of the fastest answer seen of a disk alone; one that is twice as fast is not seen among so many.
_REACH = 0.5
_UNIFORM = {"kind": "uniform"}


Stage = Literal["goals", "selection", "near misses", "confirmation", "complete"]


@dataclass
class Effort:
    """How often what is run."""

    first: int
    most: int
    confirm: int


@dataclass(frozen=True)
class RebuildPace:
    """How a disk of an array is rebuilt: how long all of it takes at the rate with which that begins."""

    hours: float
    mb_s: float


@dataclass
class Decision:
    """What was found."""

    loaded: LoadedNeed
    candidates: list[Contender]
    feasible: list[Contender]
    """Those proven, in the order of what is asked; the first is the answer."""
    undecided: list[Contender]
    """Those that were not told apart from a goal."""
    tied: list[Contender]
    """Of the feasible those not told apart from the answer."""
    dropped: dict[str, list[Contender]] = field(default_factory=dict)
    """By the rule that dropped them."""
    cells: Cells = field(repr=False, default=None)  # type: ignore[assignment]
    shown: list[Contender] = field(default_factory=list)
    """Those that were confirmed."""
    standings: dict[Shape, Standing] = field(default_factory=dict)
    """What was found of each array that was simulated at the load."""
    figure: str = "load"
    """Which runs throughput is taken from."""
    stage: Stage = "goals"
    """How far it came."""
    is_hopeless: bool = False
    """Whether no array can meet the need, whatever a run shows."""
    interrupted: bool = False

    @property
    def is_chosen(self) -> bool:
        """Whether the first was told apart from the others as far as that was asked for."""
        return self.stage in ("near misses", "confirmation", "complete")

    @property
    def answer(self) -> Contender | None:
        """The array that is the answer; None where there is none, or none was chosen before an interruption."""
        return self.feasible[0] if self.feasible and self.is_chosen else None

    @property
    def unseen(self) -> list[Contender]:
        """Arrays that meet the need by their shape, of which nothing is known and which no rule has dropped."""
        known = {one.number for dropped in self.dropped.values() for one in dropped}
        known |= {one.number for one in (*self.feasible, *self.undecided)}
        return [one for one in self.candidates if not one.missed and one.number not in known]

    def seen(self, candidate: Contender, kind: str, *, confirms: bool = False) -> list[list[Seen]]:
        """What runs gave: a list a repeat, with one a workload."""
        return runs_of(self.cells, candidate.shape, kind, confirms=confirms)

    def told(self, candidate: Contender, kind: str) -> list[list[Seen]]:
        """What runs with fresh seeds gave where there are any, else those of the search."""
        return self.seen(candidate, kind, confirms=True) or self.seen(candidate, kind)

    def rebuild(self, candidate: Contender) -> RebuildPace | None:
        """The rebuild beside the workload that leaves least for it; None where no run tells."""
        runs, works = self.told(candidate, "rebuilding"), range(len(self.loaded.works))
        each = [rebuild_ns(self.loaded, candidate.shape, [run[at] for run in runs]) for at in works]
        longest = max((one for one in each if one is not None), default=None)
        if longest is None:
            return None
        return RebuildPace(longest / 3600e9, 1e3 * self.loaded.bytes_of(candidate.shape.device) / longest)


class Decider:
    """A decision under way."""

    def __init__(self, loaded: LoadedNeed, cells: Cells, effort: Effort) -> None:
        self.loaded, self.cells, self.effort = loaded, cells, effort
        self.candidates = enumerate_candidates(loaded)
        self.works = range(len(loaded.works))
        self.error = (1 - loaded.need.effort.confidence) / 2
        self.margin = math.log1p(loaded.need.effort.margin_percent / 100)
        self.is_open = any(work.load.kind != "closed" for work in loaded.works)
        self.rated: dict[Shape, float] = {}
        self.standings: dict[Shape, Standing] = {}
        self.dropped: dict[str, list[Contender]] = {}

    @property
    def figure(self) -> str:
        """Which runs throughput is taken from: those at the load, or, of arrivals, at the percentile or a depth."""
        wants_held = self.is_open or self.loaded.need.asked == "pareto"
        has_trace = any("trace" in work.table for work in self.loaded.works)
        if wants_held and self.loaded.within is not None and not has_trace:
            return "held"
        return "closed" if self.is_open else "load"

    def expected_requests(self) -> int:
        """About how many requests it takes, those of warm-ups too; how long these are the first runs show."""
        fit = [one for one in self.candidates if not one.missed]
        if not fit:
            return (
                len(self.works)
                * len(self._kinds())
                * len(self._nearest(fit))
                * self.effort.first
                * 3
                * self.cells.requests
            )
        pilots = min(_PILOTS * len(self.loaded.models), len(fit)) * len(self.works) * PILOT_REQUESTS
        return pilots + self._after(fit)

    def _after(self, unseen: Iterable[Contender] | None = None) -> int:
        """About how many requests arrays unseen take, and all that follows; without arrays what follows alone."""
        shapes = {one.shape for one in unseen or ()}
        looked_at = min(len(shapes), WAVE) if self.loaded.need.asked == "cheapest" else len(shapes)
        near = {one.missed[0].need for one in self.candidates if len(one.missed) == 1} if unseen is not None else ()
        warm_up = self.cells.warm_up or int(LEAST_WARM_UP * self.cells.requests)
        search = (looked_at + _NEAR_MISSES * len(near)) * self.effort.first * (self.cells.requests + warm_up)
        confirmed = SHOWN * self.effort.confirm * (CONFIRM_TIMES * self.cells.requests + warm_up)
        return len(self.works) * len(self._kinds()) * (search + confirmed)

    def _kinds(self) -> set[str]:
        """The runs that tell of an array."""
        saturated = {SATURATED} if any(work.load.kind == "open" for work in self.loaded.works) else set()
        return {"load", *self.loaded.need.need.states, self.figure} | saturated

    def decide(self) -> Decision:
        """Decide; what was found until then if it is interrupted."""
        decision = Decision(self.loaded, self.candidates, [], [], [], self.dropped, self.cells)
        decision.standings, decision.figure = self.standings, self.figure
        try:
            self._decide(decision)
        except KeyboardInterrupt:
            decision.interrupted = True
        return decision

    def _decide(self, decision: Decision) -> None:
        fit = [one for one in self.candidates if not one.missed]
        self._note_missed()
        if not fit or not self._is_within_reach(fit):
            self._look_once(decision, fit)
            decision.stage = "complete"
            return
        self.cells.later = self._after(fit)
        self._find_warm_up(fit)
        looked_at: set[int] = set()
        for wave in self._waves(fit):
            looked_at |= {one.number for one in wave}
            self.cells.later = self._after(one for one in fit if one.number not in looked_at)
            left = self._screened(wave)
            self._test(left)
            decision.feasible += [one for one in left if self.standings.get(one.shape) == "met"]
            self._note_undecided(decision, [one for one in left if self.standings.get(one.shape) == "not decided"])
            self._drop("response time or rate", [one for one in left if self.standings.get(one.shape) == "missed"])
        self.cells.later = self._after(())
        decision.stage = "selection"
        self._select(decision)
        decision.stage, self.cells.later = "near misses", self._after()
        self._near_misses(decision)
        decision.stage, self.cells.later = "confirmation", 0
        self._confirm(decision)
        decision.stage = "complete"

    def _is_within_reach(self, fit: Sequence[Contender]) -> bool:
        """Whether the disks alone are as fast as the times asked for; no array of them answers before its disk does."""
        goals = self.loaded.need.need.time_goals()
        if not goals:
            return True
        fastest = fastest_answers_ns(self.cells, {one.shape.device for one in fit})
        asked = [(work, goal) for work in self.loaded.works for goal in goals]
        return any(
            all(
                goal.percentile is None or goal.within_ns >= _REACH * least_ns(answers, work, goal.percentile)
                for work, goal in asked
            )
            for answers in fastest.values()
        )

    def _look_once(self, decision: Decision, fit: Sequence[Contender]) -> None:
        """Nothing can meet the need, so a few short runs of what comes nearest say how far off it is."""
        decision.is_hopeless = True
        self.cells.warm_up = math.ceil(LEAST_WARM_UP * self.cells.requests)
        shapes = [one.shape for one in self._nearest(fit)]
        self._ask_goals(shapes, self.effort.first)
        self._ask(shapes, self.figure, self.effort.first)
        self.standings |= {shape: self._standing(shape, self.error) for shape in shapes}
        self._drop("response time or rate", fit)

    def _nearest(self, fit: Sequence[Contender]) -> list[Contender]:
        """What comes nearest, where nothing can meet the need."""

        def place(one: Contender) -> tuple[float, float]:
            return farness(one.missed), -requests_per_access(self.loaded, one)

        near = sorted(fit or self.candidates, key=place)
        if fit:
            return first_shapes(near, SHOWN)
        alone: dict[tuple[str, str], Contender] = {}
        several: dict[str, Contender] = {}
        for one in near:
            key = ", ".join(short.need for short in one.missed)
            if len(one.missed) > 1:
                several.setdefault(key, one)
                continue
            # The nearest of a level may miss a time too, which another level or the fastest has.
            alone.setdefault((key, one.shape.level), one)
            fastest = alone.setdefault((key, "fastest"), one)
            if place(one)[1] < place(fastest)[1]:
                alone[key, "fastest"] = one
        return [*first_shapes(list(alone.values()), len(alone)), *first_shapes(list(several.values()), SHOWN)]

    def _note_undecided(self, decision: Decision, undecided: Sequence[Contender]) -> None:
        """Those dearer than what is proven were not looked at to the end: that they are dearer says enough."""
        costs = [one.cost or 0.0 for one in decision.feasible] if self.loaded.need.asked == "cheapest" else []
        least = min(costs, default=math.inf)
        self._drop(_DEARER, [one for one in undecided if (one.cost or 0.0) > least])
        decision.undecided += [one for one in undecided if (one.cost or 0.0) <= least]

    def _find_warm_up(self, candidates: Sequence[Contender]) -> None:
        """Have a few arrays of every kind of disk run long enough to see when they are in their stride."""
        chosen: dict[Shape, None] = {}
        for device in range(len(self.loaded.models)):
            own = [one for one in candidates if one.shape.device == device]
            for key in (lambda one: one.shape.members, lambda one: requests_per_access(self.loaded, one)):
                chosen |= {pick(own, key=key).shape: None for pick in (min, max) if own}
        asked = [Asked(shape, work, "pilot", 0) for shape in chosen for work in self.works]
        self.cells.run(asked)
        took = max((pilot_warm_up(self.cells.seen[one]) for one in asked), default=0)
        self.cells.warm_up = math.ceil(max(LEAST_WARM_UP * self.cells.requests, MORE_WARM_UP * took))

    def _note_missed(self) -> None:
        for candidate in self.candidates:
            if candidate.missed and candidate.missed[0].need != "at_most":
                self._drop(candidate.missed[0].need, [candidate])

    def _drop(self, rule: str, candidates: Iterable[Contender]) -> None:
        found = list(candidates)
        if found:
            self.dropped.setdefault(rule, []).extend(found)

    def _waves(self, fit: list[Contender]) -> Iterable[list[Contender]]:
        """Candidates in the order in which they are looked at, shapes that are alike together."""
        if self.loaded.need.asked == "cheapest":
            ordered = sorted(fit, key=lambda one: (one.cost or 0.0, one.number))
        else:
            ordered = sorted(fit, key=lambda one: (-requests_per_access(self.loaded, one), one.number))
        start = 0
        while start < len(ordered):
            end, shapes = start, set[Shape]()
            # What costs the same is looked at together.
            while end < len(ordered) and (len(shapes) < WAVE or ordered[end].cost == ordered[end - 1].cost):
                shapes.add(ordered[end].shape)
                end += 1
                if len(shapes) >= 4 * WAVE:
                    break
            yield ordered[start:end]
            start = end

    def _screened(self, wave: list[Contender]) -> list[Contender]:
        """What is left of a wave: not dearer than what is proven, and not behind it whatever counting leaves out."""
        proven = [one for one in self.candidates if self.standings.get(one.shape) == "met" and not one.missed]
        if not proven:
            return wave
        if self.loaded.need.asked == "cheapest":
            least = min(one.cost or 0.0 for one in proven)
            self._drop(_DEARER, [one for one in wave if (one.cost or 0.0) > least])
            return [one for one in wave if (one.cost or 0.0) <= least]
        if self.loaded.need.asked == "pareto":
            return wave
        best = max(self._value(one.shape) for one in proven)
        behind = [one for one in wave if self._most(one) < best]
        self._drop("slower by count of accesses", behind)
        return [one for one in wave if one not in behind]

    def _most(self, candidate: Contender) -> float:
        """The most that a count of accesses allows, as a logarithm, by arrays of the same disks that were simulated."""
        known = [one for one in self.candidates if one.shape in self.standings and _same_disks(one, candidate)]
        if not known:
            return math.inf
        factor = 2 * math.log(self.loaded.need.effort.screen_factor)
        per = math.log(requests_per_access(self.loaded, candidate))
        return (
            max(self._value(one.shape) - math.log(requests_per_access(self.loaded, one)) for one in known)
            + per
            + factor
        )

    def _value(self, shape: Shape) -> float:
        """The mean logarithm of a shape's throughput, so far."""
        if shape not in self.rated:
            self._ask([shape], self.figure, self.effort.first)
            self.rated[shape] = mean(self._figures(shape)[: self.effort.first])
        return self.rated[shape]

    def _ask(self, shapes: Sequence[Shape], kind: str, repeats: int, *, confirms: bool = False) -> None:
        self.cells.run(
            Asked(shape, work, kind, repeat, confirms)
            for repeat in range(repeats)
            for shape in shapes
            for work in self.works
        )

    def _figures(self, shape: Shape, *, confirms: bool = False) -> list[float]:
        return [log_rate(seen) for seen in runs_of(self.cells, shape, self.figure, confirms=confirms)]

    def _test(self, candidates: Sequence[Contender]) -> None:
        """Have it decided of each whether it meets the goals that only a run shows."""
        shapes = list(dict.fromkeys(one.shape for one in candidates if one.shape not in self.standings))
        cheapest = {shape: min(one.cost or 0.0 for one in candidates if one.shape == shape) for shape in shapes}
        goals = max(1, len(self.loaded.works) * len(self.loaded.need.need.time_goals()))
        error = self.error / max(len(shapes) * goals, 1)
        open_shapes, repeats = shapes, self.effort.first
        while open_shapes and repeats <= self.effort.most:
            self._ask_goals(open_shapes, repeats)
            self.standings |= {shape: self._standing(shape, error) for shape in open_shapes}
            proven = [cheapest[shape] for shape in shapes if self.standings[shape] == "met"]
            limit = min(proven, default=math.inf) if self.loaded.need.asked == "cheapest" else math.inf
            undecided = [shape for shape in open_shapes if self.standings[shape] == "not decided"]
            open_shapes = [shape for shape in undecided if cheapest[shape] <= limit]
            repeats += _MORE

    def _ask_goals(self, shapes: Sequence[Shape], repeats: int, *, confirms: bool = False) -> None:
        for kind in sorted(self._kinds() - {self.figure} | {"load"}):
            self._ask(shapes, kind, repeats, confirms=confirms)

    def _standing(self, shape: Shape, error: float) -> Standing:
        found: set[Standing] = set()
        for values, indifference in self.goal_values(shape):
            found.add(standing(values, indifference, error, self.effort.first))
        return "missed" if "missed" in found else "not decided" if "not decided" in found else "met"

    def goal_values(self, shape: Shape, *, confirms: bool = False) -> Iterable[tuple[list[float], float]]:
        """For every goal and workload: one value a repeat, above 0 where it is met, and what makes no difference."""
        for at in self.works:
            yield from goal_values_of(self.cells, shape, at, confirms=confirms)

    def _select(self, decision: Decision) -> None:
        """Order what is feasible, and have the first told apart from those that stand beside it."""
        if not decision.feasible:
            return
        asked = self.loaded.need.asked
        shapes = list(dict.fromkeys(one.shape for one in decision.feasible))
        self._ask(shapes, self.figure, self.effort.first)
        for shape in shapes:
            self._value(shape)
        if asked == "cheapest":
            least = min(one.cost or 0.0 for one in decision.feasible)
            among = [one.shape for one in decision.feasible if (one.cost or 0.0) == least]
        else:
            among = shapes
        left, is_decided = self._kim_nelson(list(dict.fromkeys(among)))
        best = max(left, key=lambda shape: mean(self._figures(shape)))
        decision.tied = (
            [] if is_decided else [one for one in decision.feasible if one.shape in left and one.shape != best]
        )

        def place(one: Contender) -> tuple[float, ...]:
            by_price = one.cost or 0.0 if asked == "cheapest" else 0.0
            standing_of = 0 if one.shape == best else 1 if one.shape in left else 2
            return (by_price, standing_of, -mean(self._figures(one.shape)), one.cost or one.disks, one.number)

        decision.feasible.sort(key=place)

    def _kim_nelson(self, shapes: list[Shape]) -> tuple[list[Shape], bool]:
        """What is left when one is shown to be within the margin of the best, or runs are used up; and which it was."""
        left, repeats, count = shapes, self.effort.first, max(len(shapes) - 1, 1)
        while True:
            self._ask(left, self.figure, repeats)
            values = {shape: self._figures(shape)[:repeats] for shape in left}
            left = remaining(values, self.margin, self.error * max(len(left) - 1, 1) / count, self.effort.first)
            if len(left) == 1:
                return left, True
            if repeats >= self.effort.most:
                return left, False
            repeats = min(repeats + _MORE, self.effort.most)

    def _near_misses(self, decision: Decision) -> None:
        """Simulate what misses one need by its shape alone and would be better, the nearest few of each need.

        Where nothing meets the need, also those nearest to it that miss several.
        """
        by_need: dict[str, list[Contender]] = {}
        for candidate in self.candidates:
            if candidate.missed and self._would_be_better(candidate, decision):
                key = ", ".join(short.need for short in candidate.missed)
                if len(candidate.missed) == 1 or not decision.feasible:
                    by_need.setdefault(key, []).append(candidate)
        chosen = []
        for found in by_need.values():
            found.sort(key=lambda one: (farness(one.missed), -requests_per_access(self.loaded, one)))
            # What one level misses by its speed another may have.
            is_told_alone = len(found[0].missed) == 1 and not decision.feasible
            others = {one.shape.level: one for one in reversed(found)} if is_told_alone else {}
            chosen += [*first_shapes(found, _NEAR_MISSES), *others.values()]
        self._test(chosen)
        met = [one.shape for one in chosen if self.standings.get(one.shape) == "met"]
        # What too slow an array gives tells what a longer time would admit.
        slow = [one.shape for one in first_of_levels(too_slow(decision))] if decision.feasible else []
        self._ask(list(dict.fromkeys([*met, *slow])), self.figure, self.effort.first)

    def _would_be_better(self, candidate: Contender, decision: Decision) -> bool:
        """Whether it could come before the answer if its need were relaxed."""
        # No array is asked for without a disk that it cannot do without.
        if self.loaded.need.need.states and not candidate.tolerance:
            return False
        if not decision.feasible:
            return True
        if self.loaded.need.asked == "cheapest":
            return (candidate.cost or 0.0) < (decision.feasible[0].cost or 0.0)
        per = requests_per_access
        return per(self.loaded, candidate) > per(self.loaded, decision.feasible[0])

    def _confirm(self, decision: Decision) -> None:
        """Run the first few anew, longer and with seeds that decided nothing; what misses a goal there goes."""
        while True:
            decision.shown = first_shapes(decision.feasible, SHOWN)
            shapes = [one.shape for one in decision.shown]
            self._ask_goals(shapes, self.effort.confirm, confirms=True)
            if self.figure != "load":
                self._ask(shapes, self.figure, self.effort.confirm, confirms=True)
            failed = {shape for shape in shapes if not self._is_confirmed(shape)}
            if not failed:
                return
            self.standings |= dict.fromkeys(failed, "missed")
            self._drop("a goal missed in longer runs", [one for one in decision.feasible if one.shape in failed])
            decision.feasible = [one for one in decision.feasible if one.shape not in failed]

    def _is_confirmed(self, shape: Shape) -> bool:
        found = self.goal_values(shape, confirms=True)
        return all(mean(values) >= -indifference for values, indifference in found)


def least_ns(answers: Mapping[tuple[str, float], int], work: ResolvedWork, percentile: float) -> int:
    """What a percentile of a workload takes at least, by the fastest answers of a disk alone.

    Where more of its requests are reads than the percentile leaves out, it is that of a read at least, however fast a
    cache takes writes; and so of writes.
    """
    table = work.table
    is_spread = table.get("address", _UNIFORM) == _UNIFORM and table.get("span", 1.0) == 1.0
    # Where places are near one another, or nobody knows, a disk may have read ahead.
    places = {"uniform"} if is_spread and not {"task", "trace"} & set(table) else {place for place, _ in answers}
    least = {read: min(answers[place, read] for place in places) for read in (0.0, 1.0)}
    read, left_out = table.get("read"), 1 - percentile / 100 + _SHARE_INDIFFERENCE
    shares = {1.0: float(read), 0.0: 1 - float(read)} if isinstance(read, int | float) else {}
    return max((least[kind] for kind, share in shares.items() if share > left_out), default=min(least.values()))


def farness(missed: Iterable[Shortfall]) -> float:
    """How far an array is from what it misses, over all of it."""
    return math.fsum(math.log(short.ratio) for short in missed)


def first_shapes(candidates: Sequence[Contender], count: int) -> list[Contender]:
    """The first candidates of so many shapes."""
    found: dict[Shape, Contender] = {}
    for candidate in candidates:
        found.setdefault(candidate.shape, candidate)
    return list(found.values())[:count]


def goal_values_of(
    cells: Cells, shape: Shape, work: int, *, confirms: bool = False
) -> Iterable[tuple[list[float], float]]:
    """For every goal of a workload: one value a repeat, above 0 where it is met, and what makes no difference."""
    load = cells.loaded.works[work].load
    for goal in cells.loaded.need.need.time_goals():
        runs = runs_of(cells, shape, goal.kind, confirms=confirms, works=[work])
        if goal.percentile is None:
            times = [rebuild_ns(cells.loaded, shape, run) for run in runs]
            yield [math.log(goal.within_ns / time) for time in times if time is not None], _RATE_INDIFFERENCE
            continue
        shares = [run[0].response.share_within(goal.within_ns) or 0.0 for run in runs]
        yield [share - goal.percentile / 100 for share in shares], _SHARE_INDIFFERENCE
    if load.kind == "open":
        # A queue that grows without end may still be short when a run is over: capacity tells.
        full = runs_of(cells, shape, SATURATED, confirms=confirms, works=[work])
        yield [math.log(run[0].requests_per_s / load.rate_per_s) for run in full], _RATE_INDIFFERENCE


def runs_of(
    cells: Cells, shape: Shape, kind: str, *, confirms: bool = False, works: Sequence[int] | None = None
) -> list[list[Seen]]:
    """What runs of a shape gave: a list a repeat, with one a workload; until the first that is not there."""
    found: list[list[Seen]] = []
    works = range(len(cells.loaded.works)) if works is None else works
    while all(Asked(shape, work, kind, len(found), confirms) in cells.seen for work in works):
        found.append([cells.seen[Asked(shape, work, kind, len(found), confirms)] for work in works])
    return found


def time_ns(
    loaded: LoadedNeed, shape: Shape, runs: Sequence[Sequence[Seen]], work: int, goal: TimeGoal
) -> float | None:
    """The time that a goal is about, of a workload over all repeats; None where no run tells."""
    if goal.percentile is None:
        return rebuild_ns(loaded, shape, [run[work] for run in runs])
    return Histogram.merged(run[work].response for run in runs).percentile_ns(goal.percentile)


def longest_ns(loaded: LoadedNeed, shape: Shape, runs: Sequence[Sequence[Seen]], goal: TimeGoal) -> float:
    """The time that a goal is about, of the workload with the longest."""
    return max(time_ns(loaded, shape, runs, work, goal) or 0.0 for work in range(len(loaded.works)))


def rebuild_ns(loaded: LoadedNeed, shape: Shape, seen: Iterable[Seen]) -> float | None:
    """How long a whole disk is rebuilt at the mean rate of some runs; None where nothing was."""
    rates = [one.rebuilt_per_s for one in seen if one.rebuilt_per_s is not None]
    return 1e9 * loaded.bytes_of(shape.device) / max(mean(rates), 1.0) if rates else None


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return math.fsum(values) / len(values)


def _same_disks(one: Contender, other: Contender) -> bool:
    return one.shape.device == other.shape.device and one.shape.scheduler == other.shape.scheduler


def short_of(decision: Decision, candidate: Contender) -> list[Shortfall]:
    """All needs that a candidate misses: by its shape, and by what was simulated of it."""
    found = list(candidate.missed)
    if decision.standings.get(candidate.shape) in (None, "met"):
        return found
    for at, work in enumerate(decision.loaded.works):
        for goal in decision.loaded.need.need.time_goals():
            value = time_ns(decision.loaded, candidate.shape, decision.told(candidate, goal.kind), at, goal)
            if value is not None and value > goal.within_ns:
                found.append(Shortfall(goal.key, value, goal.within_ns))
        if work.load.kind == "open":
            rate = mean([run[at].requests_per_s for run in decision.told(candidate, SATURATED)])
            if rate < work.load.rate_per_s:
                found.append(Shortfall("rate", rate, work.load.rate_per_s))
    return found


def too_slow(decision: Decision) -> list[Contender]:
    """What meets the need but for its speed, the nearest first."""
    slow = [
        one
        for one in decision.candidates
        if not one.missed and decision.standings.get(one.shape) in ("missed", "not decided")
    ]
    return sorted(slow, key=lambda one: (farness(short_of(decision, one)), one.number))


def first_of_levels(candidates: list[Contender]) -> list[Contender]:
    """The first of each level, a few."""
    found: dict[str, Contender] = {}
    for one in candidates:
        found.setdefault(one.shape.level, one)
    return list(found.values())[:RIVALS]


def effort_of(loaded: LoadedNeed, *, quick: bool) -> Effort:
    """How often what is run; ``quick`` a third."""
    asked = loaded.need.effort
    if not quick:
        return Effort(FIRST_REPEATS, asked.most_repeats, asked.confirm)
    return Effort(FIRST_REPEATS, max(FIRST_REPEATS, asked.most_repeats // 3), max(3, asked.confirm // 2))

"""A decision as the document that is written, printed and drawn: figures, what binds, what relaxing it admits.

Invariants:

- Figures that stand beside the ranking are those of fresh seeds; where only the search saw an array, that is said.
- Nothing is simulated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from raidlab.recommend.build import commands_of
from raidlab.recommend.candidates import Contender, Shape, Shortfall
from raidlab.recommend.cells import CONFIRM_TIMES, array_name, log_rate
from raidlab.recommend.decide import Decision, farness, longest_ns, mean, short_of, time_ns
from raidlab.recommend.lines import ASSUMED, assumed_of
from raidlab.recommend.margins import Margins, goal_turns, in_order
from raidlab.recommend.need import TimeGoal
from raidlab.recommend.words import (
    load_words,
    missed_words,
    need_words,
    reliability_words,
    rule_words,
    sentence_of,
    several_words,
    unknown_words,
)
from raidlab.results.provenance import version_facts
from raidlab.results.recommendation import (
    VERSION,
    ArrayFigures,
    Dropped,
    MissedNeed,
    Recommendation,
    RecommendedArray,
    Relaxation,
)
from raidlab.stats import compare, corrected, mean_interval
from raidlab.study.device import fit_error_percent, fit_warning
from raidlab.study.units import format_number, format_time_ns

_MOST_RELAXATIONS = 3
_STATES_TOLD = {
    (): "Arrays are whole; a rebuild is not simulated.",
    ("degraded",): "Degraded: the first disk is missing; a rebuild is not simulated.",
    ("rebuilding",): "Rebuilding: a new first disk, throttled as by Linux md; measured as the rebuild begins.",
    ("degraded", "rebuilding"): "Degraded: the first disk is missing. Rebuilding: a new one takes its place, throttled "
    "as by Linux md; measured as the rebuild begins.",
}


@dataclass(frozen=True)
class _Found:
    """What is known of a candidate that was simulated."""

    candidate: Contender
    rates: list[float]
    """Throughput a repeat, the geometric mean over workloads; of fresh seeds where there are any."""
    searched: list[float]
    """The same of the search, whose seeds all arrays have in common."""
    short: list[Shortfall]


def document_of(decision: Decision, study: str, margins: Margins, *, is_cut_short: bool = False) -> Recommendation:
    """The document of a decision; ``study`` is the text of the study that measures its first arrays.

    ``is_cut_short`` says that it was interrupted after the choice.
    """
    loaded, first = decision.loaded, decision.answer
    found = [_found(decision, one) for one in _simulated(decision)]
    front = front_of([one for one in found if one.rates and not one.short], loaded.need.effort.margin_percent / 100)
    against = _against_first(decision)
    return Recommendation(
        version=VERSION,
        raidlab=version_facts()["version"],
        name=loaded.need.name,
        title=loaded.need.title or "Which array?",
        asked=loaded.need.asked,
        seed=loaded.need.seed,
        status="interrupted" if decision.interrupted or is_cut_short else "complete",
        answer=None if first is None else first.name,
        sentence=sentence_of(decision),
        needs=need_words(loaded),
        work=[f"{work.name}: {load_words(work)}" for work in loaded.works],
        basis=[*_of_each_work(decision), *_basis(decision, margins), *reliability_words(loaded)],
        figure=_figure_words(decision),
        percentiles=[goal.key for goal in _of_requests(decision)],
        has_prices=loaded.need.is_priced,
        looked_at=len([one for one in decision.candidates if one.is_at_hand]),
        simulated=len({one.shape for one in _simulated(decision)}),
        cells=len(decision.cells.seen),
        arrays=[_array(decision, one, one.candidate.number in front, against) for one in found],
        dropped=[
            Dropped(rule=rule_words(rule), arrays=len(dropped), example=dropped[0].name)
            for rule, dropped in decision.dropped.items()
        ],
        relaxations=[*_relaxations(decision, found), *margins.relaxed],
        turns=in_order([*margins.turns, *(goal_turns(decision) if first is not None else [])]),
        unturned=margins.unturned,
        unseen=margins.unseen,
        commands={} if first is None else commands_of(first),
        study=study,
    )


def _simulated(decision: Decision) -> list[Contender]:
    """Candidates of which something was simulated: those in the order of the answer, then the others."""
    ranked = {one.number for one in decision.feasible}
    others = [one for one in decision.candidates if one.number not in ranked and one.shape in decision.standings]
    return [*decision.feasible, *others]


def _found(decision: Decision, candidate: Contender) -> _Found:
    """What is known: from fresh seeds where there are any."""
    searched = _rates(decision, candidate, confirms=False)
    return _Found(
        candidate, _rates(decision, candidate, confirms=True) or searched, searched, short_of(decision, candidate)
    )


def _rates(decision: Decision, candidate: Contender, *, confirms: bool) -> list[float]:
    return [math.exp(log_rate(run)) for run in decision.seen(candidate, decision.figure, confirms=confirms)]


def _array(decision: Decision, found: _Found, on_front: bool, against: dict[Shape, str]) -> RecommendedArray:
    candidate = found.candidate
    # Before the choice there is no order.
    met = any(one.number == candidate.number for one in decision.feasible)
    ordered = decision.feasible if decision.is_chosen else []
    ranks = {one.number: place for place, one in enumerate(ordered, start=1)}
    is_open = any(one.number == candidate.number for one in decision.undecided)
    return RecommendedArray(
        name=candidate.name,
        tree=candidate.shape.text,
        device=decision.loaded.device_name(candidate.shape.device),
        level=candidate.shape.level,
        members=candidate.shape.members,
        spares=candidate.spares,
        disks=candidate.disks,
        chunk_bytes=candidate.chunk_bytes,
        user_bytes=candidate.user_bytes,
        tolerance=candidate.tolerance,
        cost=candidate.cost,
        watts=candidate.watts,
        loss_per_year=candidate.loss_per_year,
        verdict="meets" if met else "not decided" if is_open else "misses",
        rank=ranks.get(candidate.number),
        figures=_figures(decision, found),
        against_first=against.get(candidate.shape),
        is_tied=any(one.number == candidate.number for one in decision.tied),
        on_front=on_front,
        missed=[
            MissedNeed(need=miss.need, has=miss.has, wants=miss.wants, words=missed_words(miss)) for miss in found.short
        ],
    )


def _figures(decision: Decision, found: _Found) -> ArrayFigures | None:
    candidate = found.candidate
    confirmed = decision.seen(candidate, "load", confirms=True)
    runs = confirmed or decision.seen(candidate, "load")
    if not runs:
        return None
    of_figure = decision.seen(candidate, decision.figure, confirms=bool(confirmed)) or runs
    # Each run has a seed of its own.
    interval = mean_interval(found.rates, independent=True) if confirmed and found.rates else None
    within = {}
    for goal in _of_requests(decision):
        timed = decision.seen(candidate, goal.kind, confirms=bool(confirmed))
        within[goal.key] = longest_ns(decision.loaded, candidate.shape, timed, goal) / 1e6
    rebuild = decision.rebuild(candidate)
    return ArrayFigures(
        requests_per_s=mean(found.rates) if found.rates else mean([math.exp(log_rate(run)) for run in runs]),
        requests_per_s_interval=None if interval is None else _widened(interval, decision, candidate),
        mb_s=mean([math.fsum(seen.bytes_per_s for seen in run) / len(run) for run in of_figure]) / 1e6,
        within_ms=within,
        rebuild_mb_s=None if rebuild is None else rebuild.mb_s,
        rebuild_hours=None if rebuild is None else rebuild.hours,
        repeats=len(of_figure),
    )


def _of_requests(decision: Decision) -> list[TimeGoal]:
    """The goals that are percentiles of response time."""
    return [goal for goal in decision.loaded.need.need.time_goals() if goal.percentile is not None]


def _widened(interval: tuple[float, float], decision: Decision, candidate: Contender) -> list[float]:
    """An interval of simulated figures, with what a fitted device may be off by."""
    fit = decision.loaded.models[candidate.shape.device].fit
    off = min((fit_error_percent(fit) or 0.0) / 100, 0.99)
    return [interval[0] / (1 + off), interval[1] / (1 - off)]


def _against_first(decision: Decision) -> dict[Shape, str]:
    """Of those confirmed how they compare with the first, over the same fresh seeds, corrected for their number."""
    rates = {one.shape: _rates(decision, one, confirms=True) for one in decision.shown}
    if len(rates) < 2 or not all(rates.values()):
        return {}
    first, *others = rates
    differences = {array_name(shape): compare(rates[shape], rates[first], independent=True) for shape in others}
    told = corrected(differences)
    return {shape: str(told[array_name(shape)]).rstrip(".") for shape in others}


def front_of(found: Sequence[_Found], margin: float) -> set[int]:
    """The numbers of those that none is shown to beat in every respect: cost, throughput and yearly loss."""
    return {one.candidate.number for one in found if not any(_beats(other, one, margin) for other in found)}


def _beats(one: _Found, other: _Found, margin: float) -> bool:
    """Whether one is nowhere worse and somewhere better; in throughput only as far as paired repeats show it."""
    a, b = one.candidate, other.candidate
    if a.number == b.number:
        return False
    costs, losses = (a.cost or a.disks, b.cost or b.disks), (a.loss_per_year or 0.0, b.loss_per_year or 0.0)
    if costs[0] > costs[1] or losses[0] > losses[1]:
        return False
    ratio = compare(one.searched, other.searched, independent=True).ratio.interval
    low, high = (1.0, 1.0) if a.shape == b.shape else ratio or (0.0, math.inf)
    is_cheaper = costs[0] < costs[1] or losses[0] < losses[1]
    if low > 1:
        return True
    return is_cheaper and low >= 1 - margin and high >= 1 - margin


def _relaxations(decision: Decision, found: Sequence[_Found]) -> Iterator[Relaxation]:
    """For every need the least that would have to be given up to have something better; nothing better: no row."""
    if decision.interrupted and not decision.is_chosen:
        return
    best = next((one for one in found if one.candidate is decision.answer), None)
    singles: dict[str, list[_Found]] = {}
    for one in found:
        if len({miss.need for miss in one.short}) == 1 and (best is None or _gain(decision, one, best)):
            singles.setdefault(one.short[0].need, []).append(one)
    for need, those in singles.items():
        nearest = min(those, key=lambda one: (farness(one.short), one.candidate.cost or 0.0, -_rate(one)))
        yield Relaxation(
            need=need,
            words=missed_words(max(nearest.short, key=lambda miss: miss.ratio)),
            admits=nearest.candidate.name,
            gain=_gain(decision, nearest, best) if best is not None else "",
        )
    if best is None and not singles:
        several = [one for one in found if one.short]
        for one in sorted(several, key=lambda one: (farness(one.short), one.candidate.number))[:_MOST_RELAXATIONS]:
            needs = ", ".join(dict.fromkeys(miss.need for miss in one.short))
            yield Relaxation(need=needs, words=several_words(one.short), admits=one.candidate.name, gain="")


def _rate(found: _Found) -> float:
    return mean(found.rates) if found.rates else 0.0


def _gain(decision: Decision, one: _Found, best: _Found) -> str:
    """What an array has over the answer, in words; nothing where it is no better in what is asked."""
    if decision.loaded.need.asked == "cheapest":
        saved = (best.candidate.cost or 0.0) - (one.candidate.cost or 0.0)
        return f"{saved:,.6g} less" if saved > 0 else ""
    more = _rate(one) / _rate(best) - 1 if one.rates and best.rates else 0.0
    return f"{100 * more:.0f} % more" if more > decision.loaded.need.effort.margin_percent / 100 else ""


def _figure_words(decision: Decision) -> str:
    within, works = decision.loaded.within, decision.loaded.works
    times = "; a time is that of the workload with the longest" if decision.loaded.need.need.time_goals() else ""
    of = f" (geometric mean of the workloads{times})" if len(works) > 1 else ""
    if decision.figure == "held" and within is not None:
        return f"requests/s while p{within[0]:g} is {within[1] / 1e6:g} ms{of}"
    depths = {work.load.depth or work.depth for work in works}
    return f"requests/s at queue depth {', '.join(map(str, sorted(depths)))}{of}"


def _of_each_work(decision: Decision) -> Iterator[str]:
    """Of several workloads, what the answer gives each of them at its own load."""
    works, first = decision.loaded.works, decision.answer
    runs = [] if first is None else decision.seen(first, "load", confirms=True) or decision.seen(first, "load")
    if first is None or not runs or len(works) < 2:
        return
    told = []
    for at, work in enumerate(works):
        said = [f"{mean([run[at].requests_per_s for run in runs]):,.0f} requests/s"]
        goals = [goal for goal in _of_requests(decision) if goal.kind == "load"]
        times = [(goal.key, time_ns(decision.loaded, first.shape, runs, at, goal)) for goal in goals]
        said += [f"{key} {format_time_ns(time)}" for key, time in times if time is not None]
        told.append(f"{work.name} {', '.join(said)}")
    yield f"Each workload by itself, of {first.name}: {'; '.join(told)}."


def _basis(decision: Decision, margins: Margins) -> list[str]:
    """What the answer rests on, and what it does not say."""
    effort, requests = decision.loaded.need.effort, decision.cells.requests
    repeats = max((len(decision.seen(one, "load", confirms=True)) for one in decision.shown), default=0)
    confirmed = f"; figures with an interval from {repeats} fresh seeds of {CONFIRM_TIMES * requests:,}"
    told = [
        f"Simulated: {len(decision.cells.seen)} runs of {requests:,} requests after {decision.cells.warm_up:,} of "
        f"warm-up{confirmed if repeats else ''}.",
    ]
    if margins.requests:
        purpose = "would change it" if decision.feasible else "would have to give"
        told.append(f"To see what {purpose}, {margins.requests:,} requests more, at other places of the work.")
    if decision.is_hopeless:
        told.append("Of arrays that come nearest, after a short warm-up, as no array can meet the need: a first look.")
    if decision.interrupted:
        told.append(unknown_words(decision))
    elif decision.feasible:
        told.append(
            f"With {100 * effort.confidence:g} % the choice meets the goals and is within "
            f"{effort.margin_percent:g} % of the best of those that do."
        )
    devices: Iterable[str] = dict.fromkeys(decision.loaded.device_name(i) for i in range(len(decision.loaded.models)))
    for index, model in enumerate(decision.loaded.models):
        name, error = decision.loaded.device_name(index), fit_error_percent(model.fit)
        if (warning := fit_warning(name, model.fit)) is not None:
            told.append(f"{warning}.")
        elif error is not None:
            told.append(
                f"{name} was fitted, and nine throughputs in ten are within {error:.1f} % of what it gives: "
                "the intervals have that in them."
            )
    told.append(f"Disks as modelled: {', '.join(devices)}. {_STATES_TOLD[tuple(decision.loaded.need.need.states)]}")
    return [*told, *_of_assumptions(decision), *_of_rebuilds(decision)]


def _of_assumptions(decision: Decision) -> Iterator[str]:
    """What the files of disks assume that may decide the answer."""
    for shape in {one.shape.device: one.shape for one in decision.candidates}.values():
        for key, now in assumed_of(decision.loaded, shape).items():
            said = ASSUMED[key].words.format(f"{now:g}")
            yield f"Assumed of {decision.loaded.device_name(shape.device)}: {said} ({key})."


def _of_rebuilds(decision: Decision) -> Iterator[str]:
    """What a reader must know who sees how long rebuilds take; nothing where none was asked for."""
    first, goals = decision.answer, decision.loaded.need.need
    if goals.rebuilding is not None and goals.rebuilding.within is None:
        yield (
            'How long a rebuild may take was not asked for (rebuilding = { within = "24h" }): one that hardly moves '
            "holds requests up least."
        )
    rebuild = None if first is None else decision.rebuild(first)
    if first is None or rebuild is None or first.loss_per_year is None:
        return
    stated = decision.loaded.need.devices[first.shape.device].rebuild_mb_s
    if rebuild.mb_s < stated:
        yield (
            f"Loss a year is that of rebuilds at the {stated:g} MB/s stated; beside this work one of {first.name} "
            f"begins with {format_number(rebuild.mb_s)}, and more is lost."
        )

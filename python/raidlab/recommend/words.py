"""Needs, misses and answers in words.

Invariant: nothing is worked out here but wording; quantities are written in the units that people write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from raidlab.recommend.candidates import Contender, Shortfall
from raidlab.recommend.load import LoadedNeed, ResolvedWork
from raidlab.recommend.need import PERCENTILES, REBUILD
from raidlab.results.recommendation import LEVEL_TITLES, chance_words, hours_words, money_words, size_words
from raidlab.study.units import format_bytes, format_number, format_time_ns

if TYPE_CHECKING:
    from raidlab.recommend.decide import Decision

_RULES = {
    "capacity": "too little space",
    "tolerate": "too few failures borne",
    "budget": "beyond the budget",
    "watts": "too many watts",
    "loss_per_year": "data lost too often",
    "response time or rate": "too slow (response time or rate)",
}


def value_words(need: str, value: float) -> str:
    """A value of a need in words."""
    if need == "capacity":
        return size_words(value)
    if need == "budget":
        return money_words(value)
    if need == "watts":
        return f"{value:g} W"
    if need == "loss_per_year":
        return chance_words(value)
    if need == "rate":
        return f"{float(f'{value:.4g}'):,.10g}/s"
    if need == REBUILD:
        return hours_words(value / 3600e9)
    if need.rsplit(maxsplit=1)[-1] in PERCENTILES:
        return format_time_ns(value)
    return f"{value:g}"


def missed_words(missed: Shortfall) -> str:
    """What a need would have to be for an array to meet it.

    Examples
    --------
    >>> missed_words(Shortfall("p90", 62e6, 50e6)), missed_words(Shortfall("at_most", 9, 8))
    ('p90 of 62 ms instead of 50 ms', 'one more disk (9 instead of 8)')
    """
    has, wants = value_words(missed.need, missed.has), value_words(missed.need, missed.wants)
    if missed.need == "at_most":
        more = int(missed.has - missed.wants)
        return f"{'one more disk' if more == 1 else f'{more} more disks'} ({has} instead of {wants})"
    if missed.need == "tolerate":
        return f"bearing {has} failure{'' if missed.has == 1 else 's'} instead of {wants}"
    if missed.need == "loss_per_year":
        return f"a loss a year of {has} instead of {wants}"
    names = {"capacity": "a capacity", "budget": "a budget", "watts": "a draw", "rate": "a rate", REBUILD: "a rebuild"}
    if has == wants:
        return f"{names.get(missed.need, missed.need)} of just over {wants}"
    return f"{names.get(missed.need, missed.need)} of {has} instead of {wants}"


def limit_words(need: str, at: float) -> str:
    """What a need would have to ask for more than, to put the answer out.

    Examples
    --------
    >>> limit_words("p90", 48.3e6), limit_words("tolerate", 1)
    ('p90 must stay below 48.3 ms', 'more than 1 failure must be borne')
    """
    said = value_words(need, at)
    match need:
        case "capacity":
            return f"more than {said} of user data must fit"
        case "tolerate":
            return f"more than {said} failure{'' if at == 1 else 's'} must be borne"
        case "budget":
            return f"less than {said} may be spent"
        case "watts":
            return f"less than {said} may be drawn"
        case "rebuild":
            return f"a rebuild must take less than {said}"
        case "loss_per_year":
            return f"a loss a year of less than {said} is needed"
        case _:
            return f"{need} must stay below {said}"


def rule_words(rule: str) -> str:
    """A rule by which arrays are dropped."""
    return _RULES.get(rule, rule)


def need_words(loaded: LoadedNeed) -> list[str]:
    """All that is needed, one a line."""
    goals = loaded.need.need
    found = ["any capacity" if goals.capacity is None else f"{size_words(goals.capacity)} of user data"]
    found.append(f"bears {goals.tolerate} failure{'' if goals.tolerate == 1 else 's'}")
    if goals.rate is not None:
        found.append(f"{goals.rate:,.6g} requests/s")
    found += [f"{goal.key} within {value_words(goal.key, goal.within_ns)}" for goal in goals.time_goals()]
    if goals.budget is not None:
        found.append(f"at most {money_words(goals.budget)}")
    if goals.watts is not None:
        found.append(f"at most {goals.watts:g} W")
    if goals.loss_per_year is not None:
        found.append(f"loses data in a year with a chance of at most {chance_words(goals.loss_per_year)}")
    return found


def load_words(work: ResolvedWork) -> str:
    """What a workload is, in short, and how hard it drives the array."""
    table = work.table
    if "trace" in table:
        return f"a trace, {work.load.words}"
    read, size = table.get("read"), table.get("size")
    parts = []
    if isinstance(read, int | float):
        parts.append("reads" if read == 1 else "writes" if read == 0 else f"{100 * read:g} % reads")
    if isinstance(size, dict) and isinstance(size.get("bytes"), int):
        parts.append(f"of {format_bytes(size['bytes'])}")
    elif isinstance(size, dict) and isinstance(size.get("mean"), int):
        parts.append(f"of {format_bytes(size['mean'])} on average")
    note = f" ({work.note})" if work.note else ""
    return f"{' '.join(parts)}, {work.load.words}{note}"


def reliability_words(loaded: LoadedNeed) -> Iterator[str]:
    """What the figures of loss rest on; nothing where there are none."""
    known = [
        f"{loaded.device_name(at)}: {held.afr_percent:g} % fail in a year, rebuilt at {held.rebuild_mb_s:g} MB/s, "
        f"a bit in {1 / held.ure_per_bit:.0e} unreadable".replace("e+", "e")
        if held.ure_per_bit
        else f"{loaded.device_name(at)}: {held.afr_percent:g} % fail in a year, rebuilt at {held.rebuild_mb_s:g} MB/s"
        for at, held in enumerate(loaded.need.devices)
        if held.afr_percent is not None
    ]
    if known:
        wait = hours_words(loaded.need.replace / 3600e9)
        yield f"Loss a year, by closed form: {'; '.join(known)}; without a spare a new disk is there after {wait}."


def sentence_of(decision: Decision) -> str:
    """The answer in a sentence."""
    if decision.interrupted and not decision.is_chosen:
        return _undecided_words(decision)
    goals = "meets the need"
    if not decision.feasible:
        near = f"; {len(decision.undecided)} could not be told apart from a goal" if decision.undecided else ""
        return f"None: no array of these disks {goals}{_failures_words(decision)}{near}."
    first, asked = decision.feasible[0], decision.loaded.need.asked
    others = [one.name for one in decision.tied]
    cost = f" for {money_words(first.cost)}" if first.cost is not None else ""
    title = {"cheapest": "the cheapest", "fastest": "the fastest", "pareto": "the fastest"}[asked]
    tied = ""
    if others:
        more = f" and {len(others) - 3} others" if len(others) > 3 else ""
        tied = f" Not told apart from it: {', '.join(others[:3])}{more}."
    stopped = " by the search alone; interrupted before that was confirmed" if decision.interrupted else ""
    rebuilt = _rebuilt_words(decision, first)
    return f"{first.name}{cost}: {title} that {goals}{stopped}.{rebuilt}{tied}{_open_words(decision, first)}"


def _rebuilt_words(decision: Decision, first: Contender) -> str:
    """How long the answer takes to be rebuilt; nothing where that was not simulated."""
    rebuild = decision.rebuild(first)
    if rebuild is None:
        return ""
    took, rate = hours_words(rebuild.hours), format_number(rebuild.mb_s)
    return f" Beside this work a disk of it is rebuilt in {took}, at the {rate} MB/s with which that begins."


def _failures_words(decision: Decision) -> str:
    """That no array looked at bears so many failures; nothing where one does."""
    at_hand = [one for one in decision.candidates if one.is_at_hand]
    most = max(one.tolerance for one in at_hand)
    if most >= decision.loaded.need.need.tolerate:
        return ""
    levels = list(dict.fromkeys(LEVEL_TITLES[one.shape.level] for one in at_hand))
    who = f"{levels[0]} bears" if len(levels) == 1 else "those looked at bear"
    return f": {who} {f'at most {most} failure' if most else 'no failure'}{'s' if most > 1 else ''}"


def several_words(missed: Iterable[Shortfall]) -> str:
    """What would have to give together, as alternatives to it stand on other lines.

    Examples
    --------
    >>> several_words([Shortfall("at_most", 7, 6), Shortfall("p99", 129e6, 110e6)])
    'all of: one more disk (7 instead of 6); p99 of 129 ms instead of 110 ms'
    """
    first, *others = [missed_words(miss) for miss in missed]
    return f"all of: {'; '.join([first, *others])}" if others else first


def _undecided_words(decision: Decision) -> str:
    """What an interruption left open before anything was chosen."""
    met, asked = decision.feasible, decision.loaded.need.asked
    so_far = "no array was shown to meet the need"
    if met:
        more = f" and {len(met) - 1} more" if len(met) > 1 else ""
        so_far = f"{met[0].name}{more} meet{'' if more else 's'} the need"
    best = "the cheapest" if asked == "cheapest" else "the fastest"
    return f"Not decided: interrupted before {best} was found. So far {so_far}."


def unknown_words(decision: Decision) -> str:
    """What is not known of an answer that was interrupted."""
    unseen, open_goals = decision.unseen, len(decision.undecided)
    unknown = []
    if unseen:
        are = "array was" if len(unseen) == 1 else "arrays were"
        unknown.append(f"{len(unseen)} {are} not looked at to the end (such as {unseen[0].name})")
    if open_goals:
        unknown.append(f"{open_goals} not told apart from a goal")
    if not decision.is_chosen:
        unknown.append("those that meet the need were not told apart from one another")
    if decision.stage in ("goals", "selection", "near misses"):
        unknown.append("what asking less would admit was not looked at")
    unknown.append("no figure is confirmed with fresh seeds")
    return f"Interrupted, so nothing is promised: {'; '.join(unknown)}."


def _open_words(decision: Decision, first: Contender) -> str:
    """The cheapest array that would come before the answer, had its runs shown that it meets the goals."""
    if decision.loaded.need.asked != "cheapest":
        return ""
    near = [one for one in decision.undecided if (one.cost or 0.0) < (first.cost or 0.0)]
    if not near:
        return ""
    return f" {near[0].name} ({money_words(near[0].cost or 0.0)}) is neither shown to meet the goals nor to miss them."

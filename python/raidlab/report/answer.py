"""The answer of a run in a sentence or two: which arrangement serves which work best, and by how much.

Invariants:

- A sentence says only what the tables show: no figure is worked out here that is not in a comparison.
- The reference is a contender: an array is said to lead only when it is shown to be ahead of the reference too.
- Differences within `NOTHING_SHOWN_PERCENT` points, or that repeats do not bear out (the paired 95 % interval of the
  ratio holds 1), are not called differences. Those level with the best are ranked directly behind it, and stand no
  worse against the reference: what is level with one that is level with it may still be behind.
- Who is next may be the reference. Of two arrays the one that is ahead is the answer, the reference too.
- Where members share a device that is said first, and nobody is called best.
- Nothing is answered from a target that a check calls INVALID, from live cells that were run once, or from fewer than
  `LEAST_REQUESTS` requests.
- Figures at an equal response time are preferred, workload by workload, where every array met the target. Where some
  workloads are judged there and others are not, the sentence names both, and says why the others are not.
- Who is best has margins (`raidlab.analysis.margins`), against all that are not level with it; where nothing is shown,
  there is no order that could turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from raidlab.analysis.checks import INVALID, WARN, Finding, shared_device
from raidlab.analysis.margins import (
    BestMargins,
    Contest,
    kept_margins,
    margins_of,
    margins_of_open,
    rates_of,
    with_simulated,
)
from raidlab.analysis.metrics import Analysis, ComparedArray, Comparison
from raidlab.analysis.metrics.comparison import ALWAYS_EXCEEDED, NEVER_EXCEEDED
from raidlab.analysis.metrics.point import OPEN_LOADS
from raidlab.stats import NOTHING_SHOWN_PERCENT, differs, ratio_interval
from raidlab.study.schema import Compare
from raidlab.study.units import format_number
from raidlab.study.words import ON_THE_CLOCK

# Of fewer, the 90th percentile has no upper end at 95 %: 0.9^36 is the first power below 2.5 %.
LEAST_REQUESTS = 36
TARGET_WORDS = {
    "sim": "Simulated",
    "original": "Simulated on the study's hardware",
    "emulated": "Measured on emulated disks",
    "live": "Measured here",
}
SHARED = (
    "The members have no devices of their own: this shows the work that each level causes here, and does not judge "
    "separate disks."
)
PER_WORDS = {"disk": "per disk", "user_capacity": "per user capacity", "array": "for the whole array"}
# What the best of the others does against the reference: ahead, level, behind.
VERBS = {"ahead": ("leads", "lead"), "level": ("keeps up", "keep up"), "behind": ("comes closest", "come closest")}
# Level only because its repeats scatter: its figure is a margin or more above the reference's, or below.
UNSURE = {"above": "may lead", "below": "may keep up"}
_ORDER = (*VERBS, "none")
_TWO = 2
_MISSES, _STAYS = ("misses", "miss"), ("stays", "stay")


@dataclass(frozen=True)
class Clause:
    """What is said of one workload."""

    workload: str
    standing: str
    """``ahead``, ``level`` or ``behind`` the reference, or ``ahead`` of the only other array; ``none`` where nothing is
    shown, or too little was measured."""
    said: str
    """Who does what: "raid10 comes closest"."""
    figure: str
    """The share of the reference, with its interval; empty where there is none."""


@dataclass(frozen=True)
class TableAnswer:
    """The answer for one table on one target."""

    target: str
    title: str
    sentence: str
    """All of it."""
    summary: str = ""
    """Who is best, of more than two beside the reference, in how many workloads; empty where there is but one."""
    basis: str = ""
    """What the shares are shares of."""
    clauses: tuple[Clause, ...] = ()
    """The same workload by workload, in the order of the study; empty where there are no shares."""
    others: str = ""
    """What is said of loads whose requests arrive by themselves."""
    caution: str = ""
    """What has to be known before all of it; empty where it may be taken as it is."""


@dataclass(frozen=True)
class _Place:
    """One workload's best array, with those level with it, where they stand against the reference, and who is next."""

    level: tuple[str, ...]
    standing: str
    percent: float
    figure: str
    following: str
    rivals: tuple[ComparedArray, ...] = ()
    """Whom it is before, the nearest first."""
    row: ComparedArray | None = None
    """The best itself."""

    @property
    def names(self) -> str:
        return listed(self.level)

    @property
    def said(self) -> str:
        if self.standing == "level" and abs(self.percent - 100.0) >= NOTHING_SHOWN_PERCENT:
            return f"{self.names} {UNSURE['above' if self.percent > 100.0 else 'below']}"
        return f"{self.names} {VERBS[self.standing][len(self.level) > 1]}"


def answers(analysis: Analysis, findings: Sequence[Finding]) -> list[TableAnswer]:
    """One answer for each target, from the first table of the study; none where a check says INVALID."""
    answered = []
    for target, comparisons in _asked(analysis).items():
        broken = no_answer(findings, target)
        if broken:
            answered.append(TableAnswer(target, TARGET_WORDS[target], f"{broken}."))
        else:
            answer = _answer(target, comparisons)
            answered.append(replace(answer, caution=SHARED) if _shares_devices(findings, target) else answer)
    return answered


def _asked(analysis: Analysis) -> dict[str, list[Comparison]]:
    """By target, the comparisons of the first table of the study, as far as it asks about them."""
    found: dict[str, list[Comparison]] = {}
    for comparison in analysis.comparisons:
        compare = comparison.compare
        is_asked = not compare.workloads or comparison.workload in compare.workloads
        if compare.group == analysis.run.study.compare[0].group and is_asked:
            found.setdefault(comparison.target, []).append(comparison)
    return found


def contests_of_run(analysis: Analysis, findings: Sequence[Finding], targets: Collection[str]) -> list[Contest]:
    """Who is best in the answers of some targets, and before whom."""
    by_target: dict[str, list[Comparison]] = {}
    for comparison in _sound(analysis, findings, targets):
        by_target.setdefault(comparison.target, []).append(comparison)
    return [contest for comparisons in by_target.values() for contest in contests_of(comparisons)]


def _sound(analysis: Analysis, findings: Sequence[Finding], targets: Collection[str]) -> list[Comparison]:
    """What is asked of targets that may be answered from, and whose members do not share a device."""
    return [
        comparison
        for target, comparisons in (_asked(analysis) if analysis.run.study.compare else {}).items()
        if target in targets and not no_answer(findings, target) and not _shares_devices(findings, target)
        for comparison in comparisons
    ]


def margins_of_run(analysis: Analysis, findings: Sequence[Finding]) -> list[BestMargins]:
    """What would change each best of a run's answers, target by target; what was simulated is in the run's folder."""
    found = [margins_of(analysis, contest) for contest in contests_of_run(analysis, findings, analysis.targets)]
    for comparison in _sound(analysis, findings, analysis.targets):
        soonest = _soonest(comparison) if comparison.rows[0].point.load in OPEN_LOADS else None
        if soonest is not None and len(soonest[1]) == 1 and len(soonest[0]) > 1:
            found.append(margins_of_open(analysis, comparison, *soonest[0][:2]))
    return [one for one in with_simulated(found, kept_margins(analysis.run)) if one.turns]


def no_answer(findings: Iterable[Finding], target: str) -> str:
    """Which checks say INVALID of a target, so that nothing is answered from it; empty where none does."""
    broken = sorted({one.check for one in findings if one.verdict == INVALID and one.target == target})
    return f"No answer: {listed(broken)} {'says' if len(broken) == 1 else 'say'} INVALID" if broken else ""


def contests_of(comparisons: Sequence[Comparison]) -> list[Contest]:
    """Who is best under each closed loop of one table on one target, and before whom."""
    closed = [one for one in comparisons if one.rows[0].point.load not in OPEN_LOADS]
    if not closed or _is_once(closed[0].target, closed):
        return []
    found = []
    for comparison in map(_contended, closed):
        held = _is_held(comparison)
        place = None if _is_short(comparison) else _place(comparison, held=held)
        if isinstance(place, _Place) and place.rivals and place.row is not None:
            set_apart = {place.row.array, *(row.array for row in place.rivals)}
            others = tuple(name for name in place.level if name not in set_apart)
            found.append(Contest(comparison, place.row, place.rivals, others, held))
    return found


def _is_once(target: str, comparisons: list[Comparison]) -> bool:
    """Whether cells on the clock were run once, so that no difference can be shown."""
    return target in ON_THE_CLOCK and all(len(row.rates) < 2 for one in comparisons for row in one.rows)


def _shares_devices(findings: Sequence[Finding], target: str) -> bool:
    return any((one.check, one.verdict, one.target) == (shared_device.NAME, WARN, target) for one in findings)


def _answer(target: str, comparisons: list[Comparison]) -> TableAnswer:
    closed = [comparison for comparison in comparisons if comparison.rows[0].point.load not in OPEN_LOADS]
    opened = [comparison for comparison in comparisons if comparison.rows[0].point.load in OPEN_LOADS]
    others = " ".join(_by_response(comparison) for comparison in opened)
    if closed and _is_once(target, closed):
        once = "Each cell was run once, so no difference can be shown."
        return TableAnswer(target, TARGET_WORDS[target], f"{once} {others}".strip())
    if not closed:
        return TableAnswer(target, TARGET_WORDS[target], others)
    return _by_throughput(target, closed, others)


def _by_throughput(target: str, comparisons: list[Comparison], others: str) -> TableAnswer:
    """Closed loop: who gives the most, workload by workload, against the reference."""
    reference = comparisons[0].compare.reference
    comparisons = [_contended(comparison) for comparison in comparisons]
    are_two = len({row.array for comparison in comparisons for row in comparison.rows}) == _TWO
    leaders: list[_Place] = []
    clauses = []
    for comparison in comparisons:
        place = None if _is_short(comparison) else _place(comparison, held=_is_held(comparison))
        if _is_short(comparison):
            clauses.append(Clause(comparison.workload, "none", "too few requests to say", ""))
        elif isinstance(place, _Place):
            place = _led(place, reference) if are_two and place.standing == "behind" else place
            leaders.append(place)
            # Of many workloads the line of each has room for the best alone.
            following = place.following if len(comparisons) == 1 or comparison.compare.contenders else ""
            clauses.append(Clause(comparison.workload, place.standing, place.said, place.figure + following))
        elif place is not None:
            clauses.append(Clause(comparison.workload, "none", "no difference is shown", place))
    basis = f"Throughput {PER_WORDS[comparisons[0].compare.per]} {_basis(comparisons)}, as a share of {reference}"
    sentence = f"{basis}: {_joined(clauses)}. {others}".strip()
    summary = _summary(leaders, len(clauses), "" if are_two else f"Beside {reference}, ")
    return TableAnswer(target, TARGET_WORDS[target], sentence, summary, basis, tuple(clauses), others)


def _led(place: _Place, reference: str) -> _Place:
    """What is behind the reference, told of the reference."""
    return replace(place, level=(reference,), standing="ahead", figure=f"{place.names} has {place.figure}")


def speaks_of(compare: Compare, array: str) -> bool:
    """Whether the answer of a run speaks of an array."""
    return not compare.contenders or array in (compare.reference, *compare.contenders)


def _contended(comparison: Comparison) -> Comparison:
    """A comparison of the arrays that the study asks about, over the loads that it asks about."""
    compare = comparison.compare
    rows = [row for row in comparison.rows if speaks_of(compare, row.array)]
    if compare.sweep_from is not None and all(row.sweep_rates for row in rows):
        base = next((row.sweep_rates for row in rows if row.array == compare.reference), ())
        rows = [replace(row, rates=row.sweep_rates, values=row.values | _over_sweep(row, base)) for row in rows]
    return replace(comparison, rows=tuple(rows))


def _over_sweep(row: ComparedArray, base: tuple[float, ...]) -> dict[str, float | None]:
    shares = [100 * rate / other for rate, other in zip(row.sweep_rates, base, strict=False)]
    return {"relative_throughput_percent": sum(shares) / len(shares) if shares else None}


def _joined(clauses: list[Clause]) -> str:
    """All clauses in one sentence: who leads, who keeps up, who comes closest, then where nothing is shown."""
    together: dict[tuple[str, str], list[str]] = {}
    for clause in clauses:
        figure = f" ({clause.figure})" if clause.figure else ""
        together.setdefault((clause.standing, clause.said), []).append(f"{clause.workload}{figure}")
    ordered = sorted(together.items(), key=lambda item: (_ORDER.index(item[0][0]), item[0][1] * (item[0][0] == "none")))
    said = [f"{who} in {listed(work)}" for (_, who), work in ordered]
    return "; ".join(said) if said else "nothing could be compared"


def _summary(leaders: list[_Place], count: int, beside: str) -> str:
    """Who is best, or level with the best, of all or of those beside the reference, in how many of the workloads."""
    if count < 2 or not leaders:
        return ""
    wins: dict[str, int] = {}
    for place in leaders:
        for name in place.level:
            wins[name] = wins.get(name, 0) + 1
    by_count: dict[int, list[str]] = {}
    for name, won in wins.items():
        by_count.setdefault(won, []).append(name)
    ranked = sorted(by_count, reverse=True)
    is_are = "is" if len(by_count[ranked[0]]) == 1 else "are"
    first = f"{listed(by_count[ranked[0]])} {is_are} best or as good as the best in {ranked[0]} of {count} workloads"
    return f"{beside}{', '.join([first, *(f'{listed(by_count[won])} in {won}' for won in ranked[1:])])}."


def _basis(comparisons: list[Comparison]) -> str:
    """What is equal: a response time or the load; where not one for all, of which workloads, and why the load is."""
    at_target = [comparison for comparison in comparisons if _is_held(comparison)]
    loaded = [comparison for comparison in comparisons if comparison not in at_target]
    if not loaded:
        return _target_words(at_target)
    if not any(row.held for comparison in comparisons for row in comparison.rows):
        return _load_words(loaded)
    by_reason: dict[str, list[str]] = {}
    for comparison in loaded:
        by_reason.setdefault(_why_not_held(comparison), []).append(comparison.workload)
    reasons = listed([f"in {listed(work)} ({why})" for why, work in by_reason.items()])
    first = f"{_target_words(at_target)} in {listed([one.workload for one in at_target])}, and " if at_target else ""
    return f"{first}{_load_words(loaded)} {reasons}"


def _target_words(comparisons: list[Comparison]) -> str:
    """The response time that is held; without its figure where workloads hold several."""
    held = [row.held for comparison in comparisons for row in comparison.rows if row.held is not None]
    percentiles, targets = {one.percentile for one in held}, {one.target_ms for one in held}
    if len(percentiles) > 1:
        return "at a response time that each workload holds"
    # A multiple of an idle response is another time for each workload; the tables have them.
    time = f" ({_time(targets.pop())})" if len(targets) == 1 else ""
    return f"at the same p{percentiles.pop():g} of response time{time}"


def _load_words(comparisons: list[Comparison]) -> str:
    if all(row.sweep_rates for comparison in comparisons for row in comparison.rows):
        return f"on average over all loads from queue depth {comparisons[0].compare.sweep_from}"
    loads = list(dict.fromkeys(comparison.load for comparison in comparisons))
    return f"at {loads[0]}" if len(loads) == 1 else "at the heaviest load of each sweep"


def _why_not_held(comparison: Comparison) -> str:
    """Why arrays are not compared at an equal response time."""
    held = {row.array: row.held for row in comparison.rows if row.held is not None}
    if not held:
        return "no response time is held there"
    missed = [array for array, one in held.items() if one.bound == ALWAYS_EXCEEDED]
    below = [array for array, one in held.items() if one.bound == NEVER_EXCEEDED]
    if missed:
        return f"{listed(missed)} {_MISSES[len(missed) > 1]} the target even with one request at a time"
    if below:
        return f"{listed(below)} {_STAYS[len(below) > 1]} below the target at every depth tried"
    return "not every array has a figure at the target"


def _time(ms: float) -> str:
    return f"{format_number(ms)} ms"


def _place(comparison: Comparison, *, held: bool) -> _Place | str | None:
    """The best of the arrays beside the reference; the range where none differs from another or the reference."""
    reference = next((row for row in comparison.rows if row.array == comparison.compare.reference), None)
    figures = {row.array: relative_percent(row, held=held) for row in comparison.rows}
    known = [(figure, row) for row in comparison.rows if (figure := figures[row.array]) is not None]
    ranked = sorted((pair for pair in known if pair[1] is not reference), key=lambda pair: -pair[0])
    if not ranked or reference is None:
        return None
    top, best = ranked[0]
    peers = list(takewhile(lambda pair: not _is_behind(pair, ranked[0], held=held), ranked))
    standings = {row.array: _standing((figure, row), reference, held=held) for figure, row in peers}
    standing = standings[best.array]
    # What is behind the best is behind the reference too, unless the best is ahead of it.
    if set(standings.values()) == {"level"} and len(peers) == len(ranked):
        return f"{min(figure for figure, _ in known):.0f}-{max(figure for figure, _ in known):.0f} %"
    level = [row.array for _, row in peers if _ORDER.index(standings[row.array]) <= _ORDER.index(standing)]
    # Where it leads, the reference is one of those that it leads.
    led = [(100.0, reference)] if standing == "ahead" else []
    others = sorted([*(pair for pair in ranked if pair[1].array not in level), *led], key=lambda pair: -pair[0])
    # That it leads says all of the reference, unless somebody stands behind that.
    following = f"; next is {others[0][1].array} with {others[0][0]:.0f} %" if others[len(led) :] else ""
    rivals = tuple(row for _, row in sorted([*ranked[len(peers) :], *led], key=lambda pair: -pair[0]))
    if not rivals and standing == "behind":
        # Of two the one that comes closest is the second, and the reference the best.
        share = _figure(top, best, reference, held=held)
        return _Place(tuple(level), standing, top, share, following, (best,), reference)
    share = _figure(top, best, reference, held=held)
    return _Place(tuple(level), standing, top, share, following, rivals, best)


def _standing(pair: tuple[float, ComparedArray], reference: ComparedArray, *, held: bool) -> str:
    """How an array stands against the reference."""
    if _is_behind((100.0, reference), pair, held=held):
        return "ahead"
    return "behind" if _is_behind(pair, (100.0, reference), held=held) else "level"


def _figure(percent: float, row: ComparedArray, reference: ComparedArray, *, held: bool) -> str:
    """The best array's share, with its interval where there are repeats."""
    interval = ratio_interval(rates_of(row, held=held), rates_of(reference, held=held))
    if interval is None:
        return f"{percent:.0f} %"
    return f"{percent:.0f} %, 95 % interval {100 * interval[0]:.0f} to {100 * interval[1]:.0f}"


def _by_response(comparison: Comparison) -> str:
    """Open loop: who answers soonest; throughput is what was offered, and says nothing."""
    times = {row.array: time for row in comparison.rows if (time := row.values["response_time_ms_p90"]) is not None}
    if not times:
        return f"{comparison.workload}: nothing could be compared."
    found = _soonest(comparison)
    if found is None:
        behind = [row.array for row in comparison.rows if not row.point.keeps_up]
        return f"{comparison.workload}: {listed(behind)} cannot keep up even with {comparison.load}, the least tried."
    ranked, soonest = found
    if len(soonest) == len(ranked) > 1:
        return (
            f"{comparison.workload}, {comparison.load}: no difference is shown, 90 % are answered within"
            f" {format_number(times[ranked[0]])} to {_time(times[ranked[-1]])}."
        )
    others = ", ".join(f"{array} {_time(times[array])}" for array in ranked if array not in soonest)
    verb = "answers" if len(soonest) == 1 else "answer"
    return (
        f"{comparison.workload}, {comparison.load}: {listed(soonest)} {verb} soonest,"
        f" 90 % within {_time(times[soonest[-1]])}{f' ({others})' if others else ''}."
    )


def _soonest(comparison: Comparison) -> tuple[list[str], list[str]] | None:
    """The arrays by their p90, and those of them that answer soonest; None where one does not keep up."""
    times = {row.array: time for row in comparison.rows if (time := row.values["response_time_ms_p90"]) is not None}
    if not times or not all(row.point.keeps_up for row in comparison.rows):
        return None
    ranked = sorted(times, key=lambda array: times[array])
    margin = 1 + NOTHING_SHOWN_PERCENT / 100
    return ranked, [array for array in ranked if times[array] <= times[ranked[0]] * margin]


def relative_percent(row: ComparedArray, *, held: bool) -> float | None:
    """An array's figure against the reference: at equal response time, or at the heaviest load."""
    if held:
        return row.held.relative_percent if row.held is not None else None
    return row.values["relative_throughput_percent"]


def _is_behind(pair: tuple[float, ComparedArray], best: tuple[float, ComparedArray], *, held: bool) -> bool:
    """Whether one is shown to be behind the other: by a margin and, where there are repeats, beyond their noise."""
    if best[0] - pair[0] < NOTHING_SHOWN_PERCENT:
        return False
    return differs(rates_of(best[1], held=held), rates_of(pair[1], held=held)) is not False


def _is_short(comparison: Comparison) -> bool:
    return any(row.point.total("all_requests") < LEAST_REQUESTS for row in comparison.rows)


def _is_held(comparison: Comparison) -> bool:
    return all(
        row.held is not None and row.held.relative_percent is not None and not row.held.is_lower_bound
        for row in comparison.rows
    )


def listed(items: Sequence[str], last: str = "and") -> str:
    """Names in a row, as people say them."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"

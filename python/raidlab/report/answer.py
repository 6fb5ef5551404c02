"""The answer of a run in a sentence or two: which arrangement serves which work best, and by how much.

Invariants:

- A sentence says only what the tables show: no figure is worked out here that is not in a comparison.
- The reference is a contender: an array is said to lead only when it is shown to be ahead of the reference too.
- Differences within `NOTHING_SHOWN_PERCENT` points, or that repeats do not bear out (the paired 95 % interval of the
  ratio holds 1), are not called differences. Those level with the best are the ones ranked directly behind it.
- Nothing is answered from a target that a check calls INVALID, from live cells that were run once, or from fewer than
  `LEAST_REQUESTS` requests.
- Figures at an equal response time are preferred where every array met the target; the sentence says which it uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raidlab.checks import INVALID, Finding
from raidlab.metrics import Analysis, Comparison, Row
from raidlab.metrics.point import OPEN_LOADS
from raidlab.stats import differs, ratio_interval

NOTHING_SHOWN_PERCENT = 5.0
# Of fewer, the 90th percentile has no upper end at 95 %: 0.9^36 is the first power below 2.5 %.
LEAST_REQUESTS = 36
TARGET_WORDS = {
    "sim": "Simulated",
    "original": "Simulated on the study's hardware",
    "emulated": "Measured on emulated disks",
    "live": "Measured here",
}
PER_WORDS = {"disk": "per disk", "user_capacity": "per user capacity", "array": "for the whole array"}
# What the best of the others does against the reference: ahead, level, behind.
_VERBS = {"ahead": ("leads", "lead"), "level": ("keeps up", "keep up"), "behind": ("comes closest", "come closest")}
_ORDER = tuple(_VERBS)


@dataclass(frozen=True)
class Answer:
    """The answer for one table on one target."""

    target: str
    title: str
    sentence: str


@dataclass(frozen=True)
class _Place:
    """One workload's best array, with those level with it, and where they stand against the reference."""

    names: str
    are_many: bool
    standing: str
    figure: str


def answers(analysis: Analysis, findings: Sequence[Finding]) -> list[Answer]:
    """One answer for each target, from the first table of the study.

    Parameters
    ----------
    analysis : Analysis
    findings : sequence of Finding
        The checks of the run: where one says INVALID there is no answer.
    """
    found: dict[str, list[Comparison]] = {}
    for comparison in analysis.comparisons:
        if comparison.compare.group == analysis.run.study.compare[0].group:
            found.setdefault(comparison.target, []).append(comparison)
    answered = []
    for target, comparisons in found.items():
        broken = sorted(
            {finding.check for finding in findings if finding.verdict == INVALID and finding.target == target}
        )
        sentence = (
            f"No answer: {_listed(broken)} {'says' if len(broken) == 1 else 'say'} INVALID."
            if broken
            else _sentence(target, comparisons)
        )
        answered.append(Answer(target, TARGET_WORDS[target], sentence))
    return answered


def _sentence(target: str, comparisons: list[Comparison]) -> str:
    closed = [comparison for comparison in comparisons if comparison.rows[0].point.load not in OPEN_LOADS]
    opened = [comparison for comparison in comparisons if comparison.rows[0].point.load in OPEN_LOADS]
    sentences = []
    on_the_clock = target in ("emulated", "live")
    if closed and on_the_clock and all(len(row.rates) < 2 for comparison in closed for row in comparison.rows):
        sentences.append("Each cell was run once, so no difference can be shown.")
    elif closed:
        sentences.append(_by_throughput(closed))
    return " ".join([*sentences, *(_by_response(comparison) for comparison in opened)])


def _by_throughput(comparisons: list[Comparison]) -> str:
    """Closed loop: who gives the most, workload by workload, against the reference."""
    reference = comparisons[0].compare.reference
    held = all(_is_held(comparison) for comparison in comparisons)
    clauses: dict[tuple[str, str], list[str]] = {}
    ties: list[str] = []
    short = [comparison.workload for comparison in comparisons if _is_short(comparison)]
    for comparison in comparisons:
        if comparison.workload in short:
            continue
        place = _place(comparison, held=held)
        if isinstance(place, _Place):
            verb = _VERBS[place.standing][place.are_many]
            clauses.setdefault((place.standing, f"{place.names} {verb}"), []).append(
                f"{comparison.workload} ({place.figure})"
            )
        elif place is not None:
            ties.append(f"{comparison.workload} ({place})")
    ordered = sorted(clauses.items(), key=lambda item: _ORDER.index(item[0][0]))
    said = [f"{who} in {_listed(work)}" for (_, who), work in ordered]
    if ties:
        said.append(f"no difference is shown in {_listed(ties)}")
    if short:
        said.append(f"too few requests to say in {_listed(short)}")
    text = "; ".join(said) if said else "nothing could be compared"
    per = PER_WORDS[comparisons[0].compare.per]
    return f"Throughput {per} {_basis(comparisons, held=held)}, as a share of {reference}: {text}."


def _basis(comparisons: list[Comparison], *, held: bool) -> str:
    row = comparisons[0].rows[0]
    if held and row.held is not None:
        return f"at the same p{row.held.percentile:g} of response time"
    loads = list(dict.fromkeys(comparison.load for comparison in comparisons))
    return f"at {loads[0]}" if len(loads) == 1 else "at the heaviest load of each sweep"


def _place(comparison: Comparison, *, held: bool) -> _Place | str | None:
    """The best of the arrays beside the reference; the range where none differs from another or the reference."""
    reference = next((row for row in comparison.rows if row.array == comparison.compare.reference), None)
    figures = {row.array: relative_percent(row, held=held) for row in comparison.rows}
    known = [(figure, row) for row in comparison.rows if (figure := figures[row.array]) is not None]
    ranked = sorted((pair for pair in known if pair[1] is not reference), key=lambda pair: -pair[0])
    if not ranked or reference is None:
        return None
    top, best = ranked[0]
    level = [best.array]
    for figure, row in ranked[1:]:
        if _is_behind((figure, row), (top, best), held=held):
            break
        level.append(row.array)
    shown = _is_behind((top, best), (100.0, reference), held=held)
    ahead = _is_behind((100.0, reference), (top, best), held=held)
    if not shown and not ahead and len(level) == len(ranked):
        return f"{min(figure for figure, _ in known):.0f}-{max(figure for figure, _ in known):.0f} %"
    standing = "ahead" if ahead else "behind" if shown else "level"
    return _Place(_listed(level), len(level) > 1, standing, _figure(top, best, reference, held=held))


def _figure(percent: float, row: Row, reference: Row, *, held: bool) -> str:
    """The best array's share, with its interval where there are repeats."""
    interval = ratio_interval(_rates(row, held=held), _rates(reference, held=held))
    if interval is None:
        return f"{percent:.0f} %"
    return f"{percent:.0f} %, 95 % interval {100 * interval[0]:.0f} to {100 * interval[1]:.0f}"


def _by_response(comparison: Comparison) -> str:
    """Open loop: who answers soonest; throughput is what was offered, and says nothing."""
    times = {row.array: time for row in comparison.rows if (time := row.values["response_time_ms_p90"]) is not None}
    if not times:
        return f"{comparison.workload}: nothing could be compared."
    behind = [row.array for row in comparison.rows if not row.point.keeps_up]
    if behind:
        return f"{comparison.workload}: {_listed(behind)} cannot keep up even with {comparison.load}, the least tried."
    ranked = sorted(times, key=lambda array: times[array])
    margin = 1 + NOTHING_SHOWN_PERCENT / 100
    soonest = [array for array in ranked if times[array] <= times[ranked[0]] * margin]
    if len(soonest) == len(ranked) > 1:
        return (
            f"{comparison.workload}, {comparison.load}: no difference is shown, 90 % are answered within"
            f" {times[ranked[0]]:.3g} to {times[ranked[-1]]:.3g} ms."
        )
    others = ", ".join(f"{array} {times[array]:.3g} ms" for array in ranked if array not in soonest)
    verb = "answers" if len(soonest) == 1 else "answer"
    return (
        f"{comparison.workload}, {comparison.load}: {_listed(soonest)} {verb} soonest,"
        f" 90 % within {times[soonest[-1]]:.3g} ms{f' ({others})' if others else ''}."
    )


def relative_percent(row: Row, *, held: bool) -> float | None:
    """An array's figure against the reference: at equal response time, or at the heaviest load."""
    if held:
        return row.held.relative_percent if row.held is not None else None
    return row.values["relative_throughput_percent"]


def _is_behind(pair: tuple[float, Row], best: tuple[float, Row], *, held: bool) -> bool:
    """Whether one is shown to be behind the other: by a margin and, where there are repeats, beyond their noise."""
    if best[0] - pair[0] < NOTHING_SHOWN_PERCENT:
        return False
    return differs(_rates(best[1], held=held), _rates(pair[1], held=held)) is not False


def _is_short(comparison: Comparison) -> bool:
    return any(row.point.total("all_requests") < LEAST_REQUESTS for row in comparison.rows)


def _rates(row: Row, *, held: bool) -> tuple[float, ...]:
    return row.held.rates if held and row.held is not None else row.rates


def _is_held(comparison: Comparison) -> bool:
    return all(
        row.held is not None and row.held.relative_percent is not None and not row.held.is_lower_bound
        for row in comparison.rows
    )


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]

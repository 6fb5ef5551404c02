"""The answer of a run in a sentence or two: which arrangement serves which work best, and by how much.

Invariants:

- A sentence says only what the tables show: no figure is worked out here that is not in a comparison.
- Differences within `NOTHING_SHOWN_PERCENT` points, or that repeats do not bear out (the paired 95 % interval of the
  ratio holds 1), are not called differences, and nobody is the best of a tie.
- Figures at an equal response time are preferred where every array has one; the sentence says which it uses.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.metrics import Analysis, Comparison
from raidlab.stats import differs

NOTHING_SHOWN_PERCENT = 5.0
TARGET_WORDS = {"sim": "Simulated", "original": "Simulated on the study's hardware", "live": "Measured here"}
PER_WORDS = {"disk": "per disk", "user_capacity": "per user capacity", "array": "for the whole array"}


@dataclass(frozen=True)
class Answer:
    """The answer for one table on one target."""

    target: str
    title: str
    sentence: str


def answers(analysis: Analysis) -> list[Answer]:
    """One answer for each target, from the first table of the study."""
    found: dict[str, list[Comparison]] = {}
    for comparison in analysis.comparisons:
        if comparison.compare.group == analysis.run.study.compare[0].group:
            found.setdefault(comparison.target, []).append(comparison)
    return [_answer(target, comparisons) for target, comparisons in found.items()]


def _answer(target: str, comparisons: list[Comparison]) -> Answer:
    closed = [comparison for comparison in comparisons if comparison.rows[0].point.load != "open"]
    opened = [comparison for comparison in comparisons if comparison.rows[0].point.load == "open"]
    sentences = [_by_throughput(closed)] if closed else []
    sentences += [_by_response(comparison) for comparison in opened]
    return Answer(target, TARGET_WORDS[target], " ".join(sentences))


def _by_throughput(comparisons: list[Comparison]) -> str:
    """Closed loop: who gives the most against the reference, workload by workload."""
    reference = comparisons[0].compare.reference
    best: dict[str, list[str]] = {}
    ties: list[str] = []
    held = all(_is_held(comparison) for comparison in comparisons)
    for comparison in comparisons:
        figures = {
            row.array: percent
            for row in comparison.rows
            if row.array != reference and (percent := relative_percent(comparison, row.array, held=held)) is not None
        }
        if not figures:
            continue
        winner = max(figures, key=lambda array: figures[array])
        behind = [array for array in figures if _is_behind(comparison, array, winner, figures, held=held)]
        if len(figures) > 1 and not behind:
            ties.append(f"{comparison.workload} ({min(figures.values()):.0f}-{figures[winner]:.0f} %)")
            continue
        close = [array for array in figures if array != winner and array not in behind]
        names = _listed([winner, *close])
        best.setdefault(names, []).append(f"{comparison.workload} ({figures[winner]:.0f} %)")
    clauses = [f"{names} {'lead' if ' and ' in names else 'leads'} in {_listed(work)}" for names, work in best.items()]
    if ties:
        clauses.append(f"no difference is shown in {_listed(ties)}")
    row, loads = comparisons[0].rows[0], list(dict.fromkeys(comparison.load for comparison in comparisons))
    if held and row.held is not None:
        basis = f"at the same p{row.held.percentile:g} of response time"
    else:
        basis = f"at {loads[0]}" if len(loads) == 1 else "at the heaviest load of each sweep"
    text = "; ".join(clauses) if clauses else "nothing could be compared"
    return f"Throughput {PER_WORDS[comparisons[0].compare.per]} {basis}, as a share of {reference}: {text}."


def _by_response(comparison: Comparison) -> str:
    """Open loop: who answers soonest; throughput is what was offered, and says nothing."""
    times = {row.array: time for row in comparison.rows if (time := row.values["response_time_ms_p90"]) is not None}
    if not times:
        return f"{comparison.workload}: nothing could be compared."
    soonest = min(times, key=lambda array: times[array])
    others = ", ".join(f"{array} {time:.3g} ms" for array, time in times.items() if array != soonest)
    return (
        f"{comparison.workload}, {comparison.load}: {soonest} answers soonest, 90 % within {times[soonest]:.3g} ms"
        f"{f' ({others})' if others else ''}."
    )


def relative_percent(comparison: Comparison, array: str, *, held: bool) -> float | None:
    """An array's figure against the reference: at equal response time, or at the heaviest load."""
    row = next(row for row in comparison.rows if row.array == array)
    if held:
        return row.held.relative_percent if row.held is not None else None
    return row.values["relative_throughput_percent"]


def _is_behind(comparison: Comparison, array: str, winner: str, figures: dict[str, float], *, held: bool) -> bool:
    """Whether an array is shown to be behind the best: by a margin and, where there are repeats, beyond their noise."""
    if figures[winner] - figures[array] < NOTHING_SHOWN_PERCENT:
        return False
    rates = {
        row.array: row.held.rates if held and row.held is not None else row.rates
        for row in comparison.rows
        if row.array in (array, winner)
    }
    return differs(rates[winner], rates[array]) is not False


def _is_held(comparison: Comparison) -> bool:
    return all(row.held is not None and row.held.relative_percent is not None for row in comparison.rows)


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]

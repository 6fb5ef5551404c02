"""What a run measured, where its study compares nothing: of each array and workload the most it gives.

Where the study draws maps of which level gives most, these are the answer.

Invariant: in an open loop what is served is what was offered; there the response time is told instead.
"""

from __future__ import annotations

from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.answer import TARGET_WORDS, Clause, TableAnswer
from raidlab.report.figures import winners
from raidlab.report.figures.words import number
from raidlab.stats import interval_above_zero

# A first screen holds so many lines; the table below has them all.
_MOST = 12
NS_PER_MS = 1e6


def measured(analysis: Analysis) -> list[TableAnswer]:
    """One answer for each target, of the points that the study lists."""
    found = []
    for target in analysis.targets:
        if mapped := winners.answer(analysis, target):
            found.append(mapped)
            continue
        best: dict[tuple[str, str], Point] = {}
        for point in analysis.points:
            if point.target == target and point.is_swept:
                key = (point.array, point.workload)
                best[key] = max(best.get(key, point), point, key=lambda one: one.per_s("all_bytes"))
        if not best:
            continue
        clauses = [_clause(point) for point in list(best.values())[:_MOST]]
        more = f" The first {_MOST} of {len(best)}." if len(best) > _MOST else ""
        summary = f"{len(best)} pairs of array and workload were run, and nothing was asked to be compared.{more}"
        first = clauses[0]
        sentence = f"{first.workload}: {first.figure}." if len(best) == 1 else summary
        found.append(
            TableAnswer(target, TARGET_WORDS[target], sentence, summary, "The most that each gave", tuple(clauses))
        )
    return found


def _clause(point: Point) -> Clause:
    where = f"{point.array}, {point.workload}"
    p90 = point.response.percentile_ns(90)
    time = "" if p90 is None else f"90 % within {_time(p90)}"
    if point.is_open:
        return Clause(where, "none", point.level, time)
    rates = [rate / 1e6 for rate in point.each_per_s("all_bytes")]
    interval = interval_above_zero(rates)
    sure = "" if interval is None else f" (95 % interval {number(interval[0])} to {number(interval[1])})"
    rate = number(point.per_s("all_bytes") / 1e6)
    return Clause(where, "none", point.level, f"{rate} MB/s{sure}; {time}".rstrip("; "))


def _time(time_ns: float) -> str:
    """A time in the unit in which it is readable."""
    return f"{number(time_ns / 1e6)} ms" if time_ns >= NS_PER_MS else f"{number(time_ns / 1e3)} us"

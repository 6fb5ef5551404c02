"""What is said of the differences between two sides, in a terminal and on a page.

Invariant: what is called a difference was shown by a test; what was not tested says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from raidlab.analysis.metrics.run_comparison import ComparisonRow, RunComparison
from raidlab.stats import Answer, Difference

# One repeat a side, where there is no interval.
_SINGLE = 2


def subject_of(row: ComparisonRow, rows: list[ComparisonRow]) -> str:
    """Where a figure comes from; the direction where its workload has both."""
    return f"{row.targets}, {row.arrays}: {row.a.workload}{direction_words(row, rows)}"


def direction_words(row: ComparisonRow, rows: list[ComparisonRow]) -> str:
    """The direction of a figure, where its workload has both."""
    ways = {other.operation for other in rows if other.a.workload == row.a.workload} - {"all"}
    return f", {row.operation}s" if row.operation != "all" and len(ways) > 1 else ""


def load_words(level: str) -> str:
    """A load in a word or two."""
    return level.replace("queue depth", "depth").replace(" requests/s offered", "/s")


def answer_words(difference: Difference) -> str:
    """What is to be said of a difference, in at most 29 characters."""
    ratio = difference.ratio
    if ratio.value is None:
        return "nothing measured"
    if difference.interval is None:
        return f"{signed(ratio.value)} %, {'single run' if ratio.n <= _SINGLE else 'too few repeats'}"
    ends = difference.interval
    if ends == (1, 1):
        return "the same in every repeat"
    if not difference.shown:
        return f"none shown ({signed(ends[0])} to {signed(ends[1])} %)"
    low, high = sorted(abs(100 * (end - 1)) for end in ends)
    way = "more" if ratio.value > 1 else "less"
    return f"{percent(100 * abs(ratio.value - 1))} % {way} ({percent(low)} to {percent(high)})"


def mean_words(answer: Answer) -> str:
    """A geometric mean of ratios as a change, with its interval."""
    value = f"{signed(answer.value or 1.0)} %"
    return (
        value
        if answer.low is None or answer.high is None
        else (f"{value} ({signed(answer.low)} to {signed(answer.high)})")
    )


def how(count: int) -> str:
    """How sure the lines are, for the heading."""
    if count == 0:
        return ", without intervals"
    return " at 95 %" + (f", corrected for {count} comparisons (Holm)" if count > 1 else "")


def footnotes(found: RunComparison) -> Iterator[str]:
    """What was done, and nothing of what was not."""
    rows = found.rows
    if any(len(part) > 1 for row in rows for part in row.each):
        yield "A and B are geometric means of the repeats."
    tested = [row for row in rows if row.difference.p is not None]
    if len(tested) < len(rows):
        lines = f"{len(rows) - len(tested)} of {len(rows)} lines have" if tested else "All lines have"
        what = "these were not" if tested else "nothing was"
        yield f"{lines} a single repeat on a side, which does not show how repeats differ: {what} tested."
    if not tested:
        return
    yield _pairing(tested)
    if len(tested) > 1:
        yield "Intervals are as wide as the correction asks of their line, so that they agree with what is said."
    if any(mean.interval is not None for mean in found.geometric_means().values()):
        yield "That of a geometric mean of ratios is its own, not corrected."
    yield "'finds' is the difference that so many repeats, spread as they are, find nine times of ten."


def _pairing(rows: list[ComparisonRow]) -> str:
    """Which of the lines that were tested are of pairs, and why the others are not."""
    others = [row for row in rows if not row.is_paired]
    if not others:
        return "Compared in pairs of repeats with the same requests."
    unequal = sum(not row.is_equally_often for row in others)
    reasons = [
        *(["the repeats of A and B are not the same ones"] if unequal else []),
        *(["their seeds differ, and so their requests"] if unequal < len(others) else []),
    ]
    lines = "Repeats" if len(others) == len(rows) else f"The repeats of {len(others)} of {len(rows)} lines"
    pairs = "" if len(others) == len(rows) else ", the others in pairs of repeats with the same requests"
    return f"{lines} were not compared in pairs (Welch): {' or '.join(reasons)}{pairs}."


def percent(value: float) -> str:
    """A change: one decimal where it is small."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def signed(ratio: float) -> str:
    """A ratio as a change with its sign."""
    value = 100 * (ratio - 1)
    shown = percent(abs(value))
    return shown if shown == "0.0" else f"{'-' if value < 0 else '+'}{shown}"


def four_digits(value: float) -> str:
    """Four significant digits."""
    if not math.isfinite(value) or value <= 0:
        return "-"
    digits = max(0, 3 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 4)}f}"


def headline(found: RunComparison) -> str:
    """The answer to a comparison: how many differences are shown, of which figure how large on the whole."""
    tested = [row for row in found.rows if row.difference.p is not None]
    if not tested:
        return "Nothing was tested: a single repeat on a side does not show how repeats differ."
    said = []
    means = found.geometric_means()
    for kind in dict.fromkeys(row.figure.kind for row in tested):
        mine = [row for row in tested if row.figure.kind == kind]
        shown = [row for row in mine if row.difference.shown]
        more = sum((row.difference.ratio.value or 1.0) > 1 for row in shown)
        title = mine[0].figure.title.partition(",")[0]
        if len(mine) == 1:
            said.append(f"{title}: {answer_words(mine[0].difference)}")
            continue
        mean = f", on the whole {mean_words(means[kind])}" if kind in means else ""
        differ = f"B has more in {more} and less in {len(shown) - more}" if shown else "no difference is shown"
        said.append(f"{title}: {differ} of {len(mine)} loads{mean}")
    text = "; ".join(said) + "."
    return text[0].upper() + text[1:]

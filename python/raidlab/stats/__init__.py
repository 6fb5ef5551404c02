"""Statistics: intervals, warm-up, steady state, comparisons; one file a method.

Which method is for what, and what each refuses, is in `docs/reference/statistics.md`. A method is imported from its own
file; what comparisons of repeats need stands here.

Invariants:

- Pure functions of numbers; nothing here knows a run.
- A method gives an interval that covers what it claims, or a reason why there is none (`Answer`). `benches/coverage`
  holds all of them to that.
- An interval comes from repeats, never from the requests of one run: those depend on one another in ways that no run
  of a useful length shows.
"""

from raidlab.stats.answer import Answer, Reason
from raidlab.stats.interval import (
    NOTHING_SHOWN_PERCENT,
    interval_above_zero,
    mean_interval,
    spread_percent,
    student,
    taken_for_granted,
)
from raidlab.stats.paired import Difference, compare, corrected, differs, ratio_interval
from raidlab.stats.replications import LEAST_REPEATS, MOST_REPEATS, mean_so_far, wants_more
from raidlab.stats.welch import compare_unpaired

__all__ = [
    "LEAST_REPEATS",
    "MOST_REPEATS",
    "NOTHING_SHOWN_PERCENT",
    "Answer",
    "Difference",
    "Reason",
    "compare",
    "compare_unpaired",
    "corrected",
    "differs",
    "interval_above_zero",
    "mean_interval",
    "mean_so_far",
    "ratio_interval",
    "spread_percent",
    "student",
    "taken_for_granted",
    "wants_more",
]

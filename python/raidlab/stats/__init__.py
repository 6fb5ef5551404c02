"""Statistics: intervals, warm-up, steady state, comparisons; one file a method.

Which method is for what, and what each refuses, is in `docs/reference/statistics.md`. A method is imported from its own
file; what comparisons of repeats need stands here.

Invariants:

- Pure functions of numbers; nothing here knows a run.
- A method gives an interval that covers what it claims, or a reason why there is none (`Answer`). `python -m
  raidlab.stats.coverage` holds all of them to that.
"""

from raidlab.stats.answer import Answer, Reason
from raidlab.stats.interval import mean_interval, spread_percent, student
from raidlab.stats.paired import Difference, compare, compare_all, corrected, differs, ratio_interval
from raidlab.stats.replications import LEAST_VALUES, half_width_percent
from raidlab.stats.welch import compare_unpaired

__all__ = [
    "LEAST_VALUES",
    "Answer",
    "Difference",
    "Reason",
    "compare",
    "compare_all",
    "compare_unpaired",
    "corrected",
    "differs",
    "half_width_percent",
    "mean_interval",
    "ratio_interval",
    "spread_percent",
    "student",
]

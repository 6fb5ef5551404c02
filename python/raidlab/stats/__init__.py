"""Statistics of repeats.

Invariant: pure functions of numbers; nothing here knows a run.
"""

from raidlab.stats.interval import mean_interval, spread_percent
from raidlab.stats.paired import differs, ratio_interval

__all__ = ["differs", "mean_interval", "ratio_interval", "spread_percent"]

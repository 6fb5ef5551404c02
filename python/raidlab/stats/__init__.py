"""Statistics of repeats.

Invariant: pure functions of numbers; nothing here knows a run.
"""

from raidlab.stats.half_width import LEAST_VALUES, half_width_percent
from raidlab.stats.interval import mean_interval, spread_percent
from raidlab.stats.paired import differs, ratio_interval

__all__ = ["LEAST_VALUES", "differs", "half_width_percent", "mean_interval", "ratio_interval", "spread_percent"]

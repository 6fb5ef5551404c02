"""Statistics of repeats.

Invariant: pure functions of numbers; nothing here knows a run.
"""

from raidlab.stats.interval import mean_interval, spread_percent

__all__ = ["mean_interval", "spread_percent"]

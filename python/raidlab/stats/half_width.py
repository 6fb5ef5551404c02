"""How narrow the interval of a mean is, for whoever repeats until it is narrow enough."""

from __future__ import annotations

from collections.abc import Sequence

from raidlab.stats.interval import mean_interval

# The interval of two values is too wide to be of use: the quantile alone is 12.7.
LEAST_VALUES = 3


def half_width_percent(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % interval of a mean, in percent of it; None for fewer than three values.

    Examples
    --------
    >>> round(half_width_percent([99.0, 100.0, 101.0]), 2)
    2.48
    """
    interval = mean_interval(values) if len(values) >= LEAST_VALUES else None
    mean = sum(values) / len(values) if values else 0.0
    return None if interval is None or not mean else 100 * (interval[1] - interval[0]) / 2 / mean

"""Intervals for what is repeated.

Invariants:

- One value has no interval; two or more have Student's, at 95 %.
- An interval says how repeats of the same run differ on this machine; it says nothing of other machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond 30 the normal one is within 2 %.
_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL_95 = 1.96


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean of repeats; None for fewer than two.

    Examples
    --------
    >>> low, high = mean_interval([10.0, 12.0])
    >>> round(low, 1), round(high, 1)
    (-1.7, 23.7)
    """
    count = len(values)
    if count < 2:
        return None
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = _T_95[count - 2] if count - 1 <= len(_T_95) else _NORMAL_95
    half = quantile * math.sqrt(variance / count)
    return mean - half, mean + half


def spread_percent(values: Sequence[float]) -> float | None:
    """The range of repeats as a percentage of their mean; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return 100 * (max(values) - min(values)) / mean if mean else None

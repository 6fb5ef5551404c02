"""Paired comparison of two things measured in the same repeats.

Invariants:

- Pairing is by repeat: what the machine did to both in one repeat cancels.
- The interval is that of the mean log ratio, so that "twice" and "half" are equally far from "the same".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from raidlab.stats.interval import mean_interval


def ratio_interval(own: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of ``own / other`` over paired repeats; None for fewer than two pairs.

    Parameters
    ----------
    own, other : sequence of float
        One value a repeat, in the same order.

    Examples
    --------
    >>> low, high = ratio_interval([2.0, 2.2, 1.8], [1.0, 1.0, 1.0])
    >>> round(low, 2), round(high, 2)
    (1.55, 2.57)
    """
    pairs = [(a, b) for a, b in zip(own, other, strict=False) if a > 0 and b > 0]
    interval = mean_interval([math.log(a / b) for a, b in pairs])
    return None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))


def differs(own: Sequence[float], other: Sequence[float]) -> bool | None:
    """Whether the interval of the ratio leaves out 1; None when there is no interval."""
    interval = ratio_interval(own, other)
    return None if interval is None else not interval[0] <= 1 <= interval[1]

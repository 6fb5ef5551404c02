"""What each repeat adds to a figure of all repeats together: the jackknife's pseudo-values.

A figure that is no mean, such as the greatest of several loads, is another in each repeat than in all together: noise
moves every repeat's own extreme outward, so that the mean of those lies beyond the extreme of what is true, the more
surely the more repeats there are. Its pseudo-values do not: their mean is the figure of all repeats, less what it
changes by where one is left out, and they have an interval as the values of repeats have.

Invariants:

- Pure functions; nothing here knows a run.
- Of a mean, the pseudo-values are the repeats themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from raidlab.stats.interval import mean_interval


def pseudo_values(repeats: int, figure: Callable[[Sequence[int]], float | None]) -> list[float | None]:
    """What each of several repeats adds to a figure; None where the others alone do not have it.

    Parameters
    ----------
    repeats : int
        How many there are; of a single one its own value is all there is.
    figure : callable
        The figure over the repeats of these numbers, from 0 on, together; any unit.

    References
    ----------
    M. H. Quenouille, Notes on bias in estimation, Biometrika 43 (1956) 353-360; J. W. Tukey, Bias and confidence in
    not-quite large samples, Annals of Mathematical Statistics 29 (1958) 614.

    Examples
    --------
    >>> first, second = [10.0, 14.0, 12.0], [13.0, 9.0, 11.0]
    >>> def greatest(kept):
    ...     return max(sum(values[one] for one in kept) / len(kept) for values in (first, second))
    >>> [max(pair) for pair in zip(first, second)]
    [13.0, 14.0, 12.0]
    >>> pseudo_values(3, greatest)
    [10.0, 12.0, 12.0]
    """
    numbers = range(repeats)
    if not numbers:
        return []
    whole = figure(numbers)
    if repeats == 1 or whole is None:
        return [whole] * repeats
    rest = [figure([other for other in numbers if other != one]) for one in numbers]
    return [None if one is None else repeats * whole - (repeats - 1) * one for one in rest]


def interval_around(value: float, each: Sequence[float], least: float = -math.inf) -> tuple[float, float] | None:
    """The 95 % interval of a figure by its pseudo-values; None for fewer than two.

    Where several are alike, their extreme lies about twice as far out as pseudo-values show; so the interval is wider
    by what lies between the figure and the mean of those, on either side.

    Parameters
    ----------
    value : float
        The figure of all repeats together; any unit.
    each : sequence of float
        Its pseudo-values, in the same unit.
    least : float
        What it cannot be less than, such as 0 of a rate: the interval goes no further down.

    Examples
    --------
    >>> low, high = interval_around(12.5, [10.0, 14.0, 12.0])
    >>> round(low, 2), round(high, 2)
    (6.53, 17.47)
    >>> interval_around(2.0, [0.0, 4.0], least=0.0)[0]
    0.0
    """
    interval = mean_interval(each)
    if interval is None:
        return None
    apart = abs(value - math.fsum(each) / len(each))
    return max(interval[0] - apart, least), max(interval[1] + apart, least)

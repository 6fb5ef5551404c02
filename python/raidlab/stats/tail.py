"""How heavy the tails of values are: whether a mean of them can have an interval at all.

Where the variance is not finite (a tail index of 0.5 or more: Pareto with an exponent of 2 or less), the mean of a
sample jumps with its largest value and no interval made of the sample's own spread holds.

Invariants:

- The index is judged by its upper bound: a tail is light only if the times show it.
- Where it is of two kinds, few slow requests above many quick ones, the quick are no part of it: it begins higher.
- Only the upper tail counts: no time is below 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.histogram import Histogram

# Where the variance ceases to be finite.
NOT_FINITE = 0.5
# The tail: a tenth of the values, of many values fewer, since the index is that of the limit.
_TAIL_SHARE = 0.1
_TAIL_ROOTS = 4.0
# Hosking and Wallis give a variance of 1.33 / k at an index of 0 and 1.85 / k at 0.3; the bound is one-sided 97.5 %.
_ERROR = 1.4
_BOUND = 1.96
# Of tails that are of one kind (indices from 0 to 0.7, lognormal times) 1 to 5 in a hundred lie farther from the
# distribution fitted, in units of 1 / sqrt(k).
_MISFIT = 1.0
# No tail is sought among fewer.
_LEAST = 80


@dataclass(frozen=True)
class TailIndex:
    """The upper tail of some times."""

    index: float
    """The shape of the generalised Pareto distribution of what exceeds a high threshold: 1 / exponent of a power law, 0
    for an exponential tail, below 0 for a tail that ends."""
    low: float
    high: float
    """The index less and plus 1.96 standard errors."""
    k: int
    """How many values the tail holds."""

    @property
    def has_variance(self) -> bool:
        """Whether the times show that their variance is finite: the index and half its bound lie below 0.5."""
        return (self.index + self.high) / 2 <= NOT_FINITE


def tail_index(times: Histogram) -> TailIndex:
    """Estimate the index of the upper tail by probability-weighted moments.

    The tail begins at a tenth of the times or fewer. Where no finite variance shows there and the generalised Pareto
    distribution does not fit, half of its times are asked, and so on: a few bursts of slow requests above many quick
    ones look, taken together, like a tail without end.

    Parameters
    ----------
    times : Histogram
        Of at least 30 times; they may be correlated.

    Returns
    -------
    TailIndex
        Of the first threshold that shows a finite variance (a higher one by its whole bound), otherwise of the lowest.

    References
    ----------
    J. R. M. Hosking and J. R. Wallis, Parameter and quantile estimation for the generalized Pareto distribution,
    Technometrics 29 (1987) 339-349. V. Choulakian and M. A. Stephens, Goodness-of-fit tests for the generalized Pareto
    distribution, Technometrics 43 (2001) 478-484 (a threshold is raised until it fits).

    Examples
    --------
    >>> times = 1e6 * (1 - (np.arange(4000) + 0.5) / 4000) ** (-1 / 1.5)
    >>> tail_index(Histogram.of({"value_ns": times, "count": [1] * 4000})).index > 0.5
    True
    """
    n = times.total
    k = max(3, int(min(_TAIL_SHARE * n, _TAIL_ROOTS * math.sqrt(n))))
    largest = _largest(times, k + 1)
    lowest = _tail_of(largest)
    if lowest.has_variance or _fits(largest, lowest.index):
        return lowest
    while k // 2 >= _LEAST:
        k //= 2
        largest = largest[-k - 1 :]
        found = _tail_of(largest)
        if _fits(largest, found.index):
            # Who looks again must ask for the whole bound.
            return found if found.high <= NOT_FINITE else lowest
    return lowest


def _largest(times: Histogram, count: int) -> NDArray[np.float64]:
    """So many of the largest times, ascending."""
    from_end = np.minimum(np.cumsum(times.count[::-1]), count).astype(np.int64)
    return np.repeat(times.value_ns[::-1].astype(np.float64), np.diff(from_end, prepend=0))[::-1]


def _tail_of(largest: NDArray[np.float64]) -> TailIndex:
    """That of the tail whose threshold is the first of these."""
    excess = largest[1:] - largest[0]
    k = excess.size
    mean = excess.mean()
    # The mean of the smaller of two, halved: each value weighted by the share of values above it.
    weighted = (excess * (k - np.arange(1, k + 1)) / (k - 1)).mean()
    spread = mean - 2 * weighted
    # Excesses all alike, or none: a tail that ends at once.
    index = float(2 - mean / spread) if spread > 1e-12 * mean else -math.inf
    error = _BOUND * _ERROR / math.sqrt(k)
    return TailIndex(index, index - error, index + error, k)


def _fits(largest: NDArray[np.float64], index: float) -> bool:
    """Whether the excesses are close to the generalised Pareto distribution with their mean and this index.

    Kolmogorov's distance, asked at distinct values only, since a histogram rounds up.
    """
    excess = largest[1:] - largest[0]
    k = excess.size
    # The mean is scale / (1 - index); with an index of 1 all but one are alike.
    scale = excess.mean() * (1 - index)
    if not math.isfinite(index) or scale <= 0:
        return False
    if abs(index) < 1e-9:
        above = np.exp(-excess / scale)
    else:
        above = np.power(np.maximum(0.0, 1 + index * excess / scale), -1 / index)
    distance = np.abs(1 - np.searchsorted(excess, excess, side="right") / k - above).max()
    return bool(distance * math.sqrt(k) <= _MISFIT)

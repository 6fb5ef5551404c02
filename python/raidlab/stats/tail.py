"""How heavy the tails of values are: whether a mean of them can have an interval at all.

Where the variance is not finite (a tail index of 0.5 or more: Pareto with an exponent of 2 or less), the mean of a
sample jumps with its largest value and no interval made of the sample's own spread holds. Between 1/3 and 0.5 (third
moment not finite) intervals hold only from very many values on.

Invariants:

- The index is judged by its upper bound: a tail is light only if the values show it.
- Both tails are looked at; the heavier one counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Where the variance, and where the third moment, ceases to be finite.
NOT_FINITE = 0.5
HEAVY = 1 / 3
# The tail: a tenth of the values, of many values fewer, since the index is that of the limit.
_TAIL_SHARE = 0.1
_TAIL_ROOTS = 4.0
# Hosking and Wallis give a variance of 1.33 / k at an index of 0 and 1.85 / k at 0.3; the bound is one-sided 97.5 %.
_ERROR = 1.4
_BOUND = 1.96


@dataclass(frozen=True)
class TailIndex:
    """The heavier tail of some values.

    Attributes
    ----------
    index : float
        The shape of the generalised Pareto distribution of what exceeds a high threshold: 1 / exponent of a power
        law, 0 for an exponential tail, below 0 for a tail that ends.
    low, high : float
        The index less and plus 1.96 standard errors.
    k : int
        How many values the tail holds.
    """

    index: float
    low: float
    high: float
    k: int


def tail_index(values: NDArray[np.float64]) -> TailIndex:
    """Estimate the index of the heavier tail by probability-weighted moments.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), n at least 30, any unit; correlated values are allowed.

    Returns
    -------
    TailIndex

    References
    ----------
    J. R. M. Hosking and J. R. Wallis, Parameter and quantile estimation for the generalized Pareto distribution,
    Technometrics 29 (1987) 339-349. Values with several modes, such as hits and misses of a cache, do not deceive
    these moments as they deceive estimators from logarithms (Hill's).

    Examples
    --------
    >>> values = (1 - (np.arange(4000) + 0.5) / 4000) ** (-1 / 1.5)
    >>> tail_index(values).index > 0.5
    True
    >>> tail_index(-np.log(1 - (np.arange(4000) + 0.5) / 4000)).high < HEAVY
    True
    """
    n = values.size
    k = max(3, int(min(_TAIL_SHARE * n, _TAIL_ROOTS * math.sqrt(n))))
    index = max(_index_of_upper_tail(values, k), _index_of_upper_tail(-values, k))
    error = _BOUND * _ERROR / math.sqrt(k)
    return TailIndex(index, index - error, index + error, k)


def _index_of_upper_tail(values: NDArray[np.float64], k: int) -> float:
    largest = np.partition(values, values.size - k - 1)[values.size - k - 1 :]
    largest.sort()
    excess = largest[1:] - largest[0]
    mean = excess.mean()
    # The mean of the smaller of two, halved: each value weighted by the share of values above it.
    weighted = (excess * (k - np.arange(1, k + 1)) / (k - 1)).mean()
    spread = mean - 2 * weighted
    # Excesses all alike, or none: a tail that ends at once.
    return float(2 - mean / spread) if spread > 1e-12 * mean else -math.inf

"""Whether values that follow one another depend on one another.

Invariants:

- The test uses ranks, so that no single large value decides.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.special import normal_cdf


def alike_p(values: NDArray[np.float64]) -> float:
    """The probability that independent values are as alike to their neighbours as these: von Neumann's ratio of ranks.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), n at least 10, in the order of their occurrence.

    References
    ----------
    R. Bartels, The rank version of von Neumann's ratio test for randomness, Journal of the American Statistical
    Association 77 (1982) 40-46.

    Examples
    --------
    >>> alike_p(np.arange(100.0)) < 1e-6
    True
    """
    n = values.size
    ranks = mid_ranks(values) - (n + 1) / 2
    total = float(ranks @ ranks)
    if total <= 0:
        return 1.0
    steps = np.diff(ranks)
    ratio = float(steps @ steps) / total
    deviation = math.sqrt(4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2))
    return normal_cdf((ratio - 2) / deviation)


def mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value, from 1; values that are equal have the mean of their ranks.

    Examples
    --------
    >>> [float(rank) for rank in mid_ranks(np.array([3.0, 1.0, 3.0, 2.0]))]
    [3.5, 1.0, 3.5, 2.0]
    """
    order = np.argsort(values)
    ordered = values[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if values.size else np.zeros(0, dtype=bool)
    starts = np.nonzero(first)[0]
    ends = np.append(starts[1:], values.size)
    ranks = np.empty(values.size)
    ranks[order] = ((starts + ends + 1) / 2)[np.cumsum(first) - 1]
    return ranks

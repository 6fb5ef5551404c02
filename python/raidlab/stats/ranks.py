"""Ranks of values, equal ones sharing theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value, from 1; values that are equal have the mean of their ranks.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,).

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

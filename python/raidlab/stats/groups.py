"""Whether groups of values differ by more than their values do within them.

Invariants:

- The answer is a probability; how large a difference matters is for others to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.special import beta_cdf


def groups_p(groups: Sequence[Sequence[float] | NDArray[np.float64]]) -> float | None:
    """The probability of means so different where the groups do not differ: Fisher's analysis of variance.

    Parameters
    ----------
    groups : sequence of sequence of float
        At least two groups, together at least one value more than there are groups; values independent and of one
        spread.

    Returns
    -------
    float or None
        None where there are too few values.

    References
    ----------
    R. A. Fisher, Statistical Methods for Research Workers (1925), chapter 7; R. Jain, The Art of Computer Systems
    Performance Analysis (1991), chapter 20.

    Examples
    --------
    >>> round(groups_p([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]), 4)
    0.0066
    """
    arrays = [np.asarray(group, dtype=np.float64) for group in groups]
    n = sum(array.size for array in arrays)
    between_degrees, within_degrees = len(arrays) - 1, n - len(arrays)
    if between_degrees < 1 or within_degrees < 1 or any(array.size == 0 for array in arrays):
        return None
    centre = sum(float(array.sum()) for array in arrays) / n
    between = sum(array.size * (float(array.mean()) - centre) ** 2 for array in arrays)
    within = sum(float(((array - array.mean()) ** 2).sum()) for array in arrays)
    if between + within <= 0:
        return 1.0
    # F's distribution in terms of the share of the variance that lies within the groups.
    return beta_cdf(within / (between + within), within_degrees / 2, between_degrees / 2)

"""Student's quantiles, bent for skewed values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.special import t_quantile


def skewness(values: NDArray[np.float64]) -> float:
    """The unbiased third standardised moment of shape (n,) values, n at least 3; 0 for values that are all alike.

    Examples
    --------
    >>> round(skewness(np.array([1.0, 1.0, 1.0, 5.0])), 6)
    2.0
    """
    n = values.size
    centred = values - values.mean()
    squares = float(centred @ centred) / n
    if squares <= 0:
        return 0.0
    third = float((centred**3).mean())
    return third / math.pow(squares, 1.5) * math.sqrt(n * (n - 1)) / (n - 2)


def skewed_ends(values: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """How many standard errors below and above the mean of independent values its interval ends.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), n at least 3.
    confidence : float
        0 to 1.

    Returns
    -------
    below, above : float
        For symmetric values both are Student's quantile; for a long tail above, ``above`` is the larger.

    References
    ----------
    R. Willink, A confidence interval and test for the mean of an asymmetric distribution, Communications in
    Statistics - Theory and Methods 34 (2005) 753-766; after P. Hall, On the removal of skewness by transformation,
    Journal of the Royal Statistical Society B 54 (1992) 221-228.

    Examples
    --------
    >>> below, above = skewed_ends(np.array([1.0, 1.0, 1.2, 1.4, 2.0, 5.0]), 0.95)
    >>> below < above
    True
    """
    quantile = t_quantile((1 + confidence) / 2, values.size - 1)
    bend = skewness(values) / (6 * math.sqrt(values.size))
    return _bent(quantile, bend), -_bent(-quantile, bend)


def _bent(quantile: float, bend: float) -> float:
    if abs(bend) < 1e-9:
        return quantile
    return (float(np.cbrt(1 + 6 * bend * (quantile - bend))) - 1) / (2 * bend)

"""How much values that follow one another depend on one another, and how many independent ones they are worth.

Invariants:

- The correlation time is 1 for independent values and counts all lags: the variance of the mean of n values is their
  variance times the correlation time, divided by n.
- Tests of correlation use ranks, so that no single large value decides.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.ranks import mid_ranks
from raidlab.stats.special import normal_cdf

# A series is averaged down to about as many values before a model is fitted: what counts are its long waves.
_FITTED_VALUES = 2000
_LARGEST_ORDER = 20


def correlation_time(values: NDArray[np.float64]) -> float:
    """The integrated autocorrelation time, from an autoregressive model of the values.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), in the order of their occurrence, n at least 10.

    Returns
    -------
    float
        In values; below 1 where neighbours balance one another. 1 for values that are all alike.

    References
    ----------
    P. Heidelberger and P. D. Welch, A spectral method for confidence interval generation and run length control in
    simulations, Communications of the ACM 24 (1981) 233-245 (the spectrum at zero); J. P. Burg, Maximum entropy
    spectral analysis (thesis, Stanford, 1975; the fit); G. Schwarz, Annals of Statistics 6 (1978) 461-464 (the order).

    Examples
    --------
    >>> noise = np.random.default_rng(1).standard_normal(20_000)
    >>> 0.9 < correlation_time(noise) < 1.1
    True
    """
    variance = float(values.var())
    if variance <= 0:
        return 1.0
    group = max(1, values.size // _FITTED_VALUES)
    kept = values.size // group
    series = values[: kept * group].reshape(kept, group).mean(axis=1)
    return group * _variance_at_zero(series - series.mean()) / variance


def _variance_at_zero(series: NDArray[np.float64]) -> float:
    """The spectrum at frequency zero of the autoregressive model that Schwarz's criterion prefers."""
    n = series.size
    largest = int(min(10 * math.log10(n), n // 10, _LARGEST_ORDER))
    variance = float(series @ series) / n
    floor = 1e-12 * variance
    coefficients = np.ones(1)
    best, best_cost = variance, n * math.log(max(variance, 1e-300))
    forward, backward = series[1:], series[:-1]
    for order in range(1, largest + 1):
        power = float(forward @ forward + backward @ backward)
        if variance <= floor or power <= 0:
            break
        reflection = -2 * float(forward @ backward) / power
        coefficients = np.append(coefficients, 0.0)
        coefficients = coefficients + reflection * coefficients[::-1]
        variance *= 1 - reflection * reflection
        forward, backward = (forward + reflection * backward)[1:], (backward + reflection * forward)[:-1]
        cost = n * math.log(max(variance, 1e-300)) + order * math.log(n)
        if cost < best_cost:
            best, best_cost = variance / float(coefficients.sum()) ** 2, cost
    return best


def von_neumann_z(values: NDArray[np.float64]) -> float:
    """Von Neumann's ratio of successive differences as a standard normal deviate: large when neighbours are alike.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), n at least 4, in the order of their occurrence.

    References
    ----------
    J. von Neumann, Distribution of the ratio of the mean square successive difference to the variance, Annals of
    Mathematical Statistics 12 (1941) 367-395.

    Examples
    --------
    >>> von_neumann_z(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])) > 2
    True
    """
    n = values.size
    centred = values - values.mean()
    total = float(centred @ centred)
    if total <= 0:
        return 0.0
    steps = np.diff(values)
    return (1 - float(steps @ steps) / (2 * total)) / math.sqrt((n - 2) / (n * n - 1))


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

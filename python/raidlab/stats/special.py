"""Distribution functions that the intervals need: Student's t, its noncentral form, the binomial.

NumPy has none of them, and SciPy weighs more than all of raidlab's other dependencies together.

Invariants:

- Plain functions of numbers. Errors are below 1e-9 of the probability where it lies between 1e-12 and 1 - 1e-12.
- Quantiles invert the distribution functions of this file, so that the two never disagree.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-300
_STANDARD_DEVIATIONS = 12.0


def normal_cdf(value: float) -> float:
    """The standard normal distribution function.

    Examples
    --------
    >>> round(normal_cdf(1.96), 4)
    0.975
    """
    return 0.5 * math.erfc(-value / math.sqrt(2))


def beta_cdf(value: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction.

    Parameters
    ----------
    value : float
        x, in 0 to 1.
    a, b : float
        Above 0.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 8.17(v) (the fraction) and 8.17.4 (the reflection); evaluated by
    Lentz's method, Applied Optics 15 (1976) 668-671.

    Examples
    --------
    >>> round(beta_cdf(0.5, 2.0, 3.0), 6)
    0.6875
    """
    if value <= 0 or value >= 1:
        return 0.0 if value <= 0 else 1.0
    if value > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - value, b, a)
    log_front = a * math.log(value) + b * math.log1p(-value)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    fraction, c, d, step = 1.0, 1.0, 0.0, 0
    change = 0.0
    while abs(change - 1) > 1e-15 and step < 20_000:
        m = step // 2
        if step == 0:
            coefficient = 1.0
        elif step % 2:
            coefficient = -(a + m) * (a + b + m) * value / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            coefficient = m * (b - m) * value / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + coefficient * d)
        c = _away_from_zero(1 + coefficient / c)
        change = c * d
        fraction *= change
        step += 1
    return math.exp(log_front) * (fraction - 1) / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_cdf(value: float, degrees: float) -> float:
    """Student's distribution function.

    Parameters
    ----------
    degrees : float
        Degrees of freedom, above 0.

    References
    ----------
    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1.

    Examples
    --------
    >>> round(t_cdf(2.228, 10), 4)
    0.975
    """
    tail = 0.5 * beta_cdf(degrees / (degrees + value * value), degrees / 2, 0.5)
    return tail if value < 0 else 1 - tail


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: float) -> float:
    """The inverse of `t_cdf`, by bisection.

    Examples
    --------
    >>> round(t_quantile(0.975, 2), 3)
    4.303
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < probability:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


def noncentral_t_cdf(value: float, degrees: float, shift: float) -> float:
    """The distribution function of (Z + shift) / sqrt(chi2 / degrees): what a t statistic does when there is an effect.

    Integrated over the scale s = sqrt(chi2 / degrees), whose density is narrow around 1: P(Z + shift < value s).

    Parameters
    ----------
    degrees : float
        Degrees of freedom, above 0.
    shift : float
        The noncentrality: effect divided by its standard error.

    References
    ----------
    Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, volume 2 (1995), chapter 31.

    Examples
    --------
    >>> round(noncentral_t_cdf(2.0, 10, 1.0), 4)
    0.8076
    """
    # In u = log s the density is smooth and falls off on both sides, whatever the degrees of freedom.
    width = _STANDARD_DEVIATIONS / math.sqrt(2 * degrees) * (1 + 3 / degrees)
    u = np.linspace(-width - 4 / degrees, width, 801)
    log_density = degrees * u - degrees / 2 * np.expm1(2 * u)
    density = np.exp(log_density - log_density.max())
    at = np.array([normal_cdf(value * math.exp(each) - shift) for each in u])
    return float((density * at).sum() / density.sum())


def binomial_cdf(n: int, probability: float) -> tuple[int, NDArray[np.float64]]:
    """P(X <= k) of a binomial X, for all k that matter.

    Parameters
    ----------
    n : int
        Trials, at least 1.
    probability : float
        Strictly between 0 and 1.

    Returns
    -------
    first : int
        The k of the first element; below it the probability is less than 1e-30.
    cdf : numpy.ndarray
        Shape (m,): P(X <= first), P(X <= first + 1), ...

    Notes
    -----
    Ratios of neighbouring probabilities, k + 1 to k, are (n - k) / (k + 1) p / (1 - p); their products from the mode
    outwards, divided by their sum, are the probabilities. So there is no factorial and nothing cancels.

    Examples
    --------
    >>> first, cdf = binomial_cdf(2, 0.5)
    >>> first, [float(share) for share in cdf]
    (0, [0.25, 0.75, 1.0])
    """
    reach = math.ceil(_STANDARD_DEVIATIONS * math.sqrt(n * probability * (1 - probability)) + 60)
    mode = min(n, math.floor((n + 1) * probability))
    first, last = max(0, mode - reach), min(n, mode + reach)
    k = np.arange(first, last, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + math.log(probability) - math.log1p(-probability)
    log_mass = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(log_mass - log_mass.max())
    return first, np.cumsum(mass / mass.sum())

"""What a comparison can find, said before it is made.

Invariants:

- The power is that of the very tests in `paired.compare` (Student's, on log ratios of pairs) and, given the standard
  error and degrees of freedom, in `welch.compare_unpaired`.
- The spread is that of the log ratio of a pair. For two things that vary by c percent each on their own it is about
  1.41 c; taken from a handful of pairs it is itself uncertain, and the promise with it.
"""

from __future__ import annotations

import math

from raidlab.stats.answer import CONFIDENCE
from raidlab.stats.special import noncentral_t_cdf, t_quantile

PROMISED = 0.9


def power_of_error(
    effect_percent: float,
    error_percent: float,
    degrees: float,
    confidence: float = CONFIDENCE,
    *,
    comparisons: int = 1,
) -> float:
    """The probability that a true difference is found, by the standard error of the mean log ratio.

    Parameters
    ----------
    effect_percent : float
        By how much one is more than the other, in percent; above -100.
    error_percent : float
        The standard error of the mean log ratio, in percent, above 0: the spread of pairs over the root of their count.
    degrees : float
        Its degrees of freedom, above 0: one less than there are pairs.
    confidence : float
        Of the test, 0 to 1.
    comparisons : int
        The size of the family for Holm's correction; the power is then that of its first step, a lower bound.

    References
    ----------
    J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd edition (1988), chapter 2.

    Examples
    --------
    >>> round(power_of_error(5.0, 1.5, 10.0), 2)
    0.83
    """
    miss = (1 - confidence) / comparisons
    shift = math.log1p(effect_percent / 100) / (error_percent / 100)
    beyond = t_quantile(1 - miss / 2, degrees)
    found_above = 1 - noncentral_t_cdf(beyond, degrees, shift)
    return found_above + noncentral_t_cdf(-beyond, degrees, shift)


def detectable_by_error(
    error_percent: float,
    degrees: float,
    promised: float = PROMISED,
    confidence: float = CONFIDENCE,
    *,
    comparisons: int = 1,
) -> float | None:
    """The smallest difference, in percent, that is found with the power promised; None above 1000 %.

    Parameters
    ----------
    error_percent, degrees
        As for `power_of_error`; without any error every difference is found.
    promised : float
        0 to 1.
    confidence, comparisons
        As for `power_of_error`.

    Examples
    --------
    >>> round(detectable_by_error(1.5, 10.0), 1)
    5.6
    """
    if error_percent <= 0:
        return 0.0
    low, high = 0.0, 1000.0
    if power_of_error(high, error_percent, degrees, confidence, comparisons=comparisons) < promised:
        return None
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        enough = power_of_error(middle, error_percent, degrees, confidence, comparisons=comparisons) >= promised
        low, high = (low, middle) if enough else (middle, high)
    return high

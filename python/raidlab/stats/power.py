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
MOST_PAIRS = 10_000


def power(
    effect_percent: float, spread_percent: float, pairs: int, confidence: float = CONFIDENCE, *, comparisons: int = 1
) -> float:
    """The probability that a true difference is found.

    Parameters
    ----------
    effect_percent : float
        By how much one is more than the other, in percent; above -100.
    spread_percent : float
        The standard deviation of the log ratio of a pair, in percent, above 0.
    pairs : int
        At least 2.
    confidence : float
        Of the test, 0 to 1.
    comparisons : int
        The size of the family for Holm's correction; the power is then that of its first step, a lower bound.

    Raises
    ------
    ValueError
        When there are fewer than two pairs, or no spread.

    References
    ----------
    J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd edition (1988), chapter 2.

    Examples
    --------
    >>> round(power(5.0, 5.0, pairs=12), 2)
    0.87
    """
    if pairs < 2 or spread_percent <= 0 or effect_percent <= -100:
        raise ValueError(
            f"a comparison needs two pairs, a spread above 0 and an effect above -100 %; asked were {pairs} pairs, "
            f"{spread_percent:g} % and {effect_percent:g} %"
        )
    error_percent = spread_percent / math.sqrt(pairs)
    return power_of_error(effect_percent, error_percent, pairs - 1, confidence, comparisons=comparisons)


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
    effect_percent, confidence, comparisons
        As for `power`.
    error_percent : float
        The standard error, in percent, above 0.
    degrees : float
        Its degrees of freedom, above 0.

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


def pairs_for(
    effect_percent: float,
    spread_percent: float,
    promised: float = PROMISED,
    confidence: float = CONFIDENCE,
    *,
    comparisons: int = 1,
) -> int | None:
    """How many pairs find a true difference with the power promised; None beyond 10,000.

    Parameters
    ----------
    effect_percent, spread_percent, confidence, comparisons
        As for `power`.
    promised : float
        0 to 1.

    Examples
    --------
    >>> pairs_for(5.0, 5.0)
    14
    """
    low, high = 1, 2
    while power(effect_percent, spread_percent, high, confidence, comparisons=comparisons) < promised:
        low, high = high, 2 * high
        if high > MOST_PAIRS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = power(effect_percent, spread_percent, middle, confidence, comparisons=comparisons) >= promised
        low, high = (low, middle) if enough else (middle, high)
    return high


def detectable_percent(
    spread_percent: float,
    pairs: int,
    promised: float = PROMISED,
    confidence: float = CONFIDENCE,
    *,
    comparisons: int = 1,
) -> float | None:
    """The smallest difference, in percent, that so many pairs find with the power promised; None above 1000 %.

    Examples
    --------
    >>> round(detectable_percent(5.0, 14), 1)
    4.8
    """
    error_percent = spread_percent / math.sqrt(pairs)
    return detectable_by_error(error_percent, pairs - 1, promised, confidence, comparisons=comparisons)


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
    promised, confidence, comparisons
        As for `pairs_for`.

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

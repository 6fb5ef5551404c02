"""Percentiles of independent values, with an interval that assumes nothing of their distribution.

The number of n independent values that do not exceed the p-th percentile is binomial. So two ranks can be named
between whose values the percentile lies with at least the confidence asked, whatever the distribution.

Invariants:

- Ranks are exact: the confidence is at least the one asked, at every n.
- A percentile is the smallest value that at least that share does not exceed, as everywhere in raidlab.
- Where even the extremes are not far enough out, there are too few values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from raidlab.histogram import Histogram
from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.correlation import alike_p
from raidlab.stats.series import as_array
from raidlab.stats.special import binomial_cdf

METHOD = "ranks"
# From here on the values themselves are asked whether they are independent.
TESTED_FROM = 100
_ALIKE_P = 0.01


@lru_cache(maxsize=4096)
def rank_interval(n: int, percentile: float, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """The ranks (1 to n) between whose values the percentile lies; None where n is too small.

    Parameters
    ----------
    n : int
        How many independent values.
    percentile : float
        Strictly between 0 and 100.
    confidence : float
        0 to 1; each end misses with at most half of the rest.

    References
    ----------
    W. J. Conover, Practical Nonparametric Statistics, 3rd edition (1999), 3.2; J.-Y. Le Boudec, Performance Evaluation
    of Computer and Communication Systems (2010), 2.2.2 and its table.

    Examples
    --------
    >>> rank_interval(10, 50), rank_interval(100, 50), rank_interval(5, 50)
    ((2, 9), (40, 61), None)
    """
    miss = (1 - confidence) / 2
    first, cdf = binomial_cdf(n, percentile / 100)
    # The value of rank l exceeds the percentile when at most l - 1 values do not; that of rank u fails to reach it
    # when at least u values lie below.
    low = first + int(np.searchsorted(cdf, miss, side="right"))
    high = first + int(np.searchsorted(cdf, 1 - miss, side="left")) + 1
    return (low, high) if low >= 1 and high <= n else None


def least_values(percentile: float, confidence: float = CONFIDENCE) -> int:
    """The least number of independent values for which `rank_interval` has ranks.

    Below, even the extremes of the values lie on one side of the percentile too often.

    Examples
    --------
    >>> least_values(50), least_values(90), least_values(99)
    (6, 36, 368)
    """
    share = max(percentile, 100 - percentile) / 100
    return math.ceil(math.log((1 - confidence) / 2) / math.log(share) - 1e-9)


def percentile_of_values(
    values: Sequence[float] | NDArray[np.float64], percentile: float, confidence: float = CONFIDENCE
) -> Answer:
    """A percentile of independent values.

    Parameters
    ----------
    values : sequence of float
        Shape (n,), any unit, in the order of their occurrence. The caller vouches that they are independent; from 100
        values on that is tested (`alike_p`, at 1 %).
    percentile : float
        Strictly between 0 and 100.
    confidence : float
        0 to 1.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES`, such as below 6 values for the 50th and below 368 for the 99th percentile;
        `NOT_INDEPENDENT` for correlated values, which `percentile_of_series` is for.

    Examples
    --------
    >>> percentile_of_values(range(1, 101), 50).reason
    <Reason.NOT_INDEPENDENT: 'not_independent'>
    >>> answer = percentile_of_values([8.0, 3.0, 9.0, 1.0, 5.0, 2.0, 10.0, 4.0, 7.0, 6.0], 50)
    >>> answer.value, answer.interval
    (5.0, (2.0, 9.0))
    """
    series = as_array(values)
    n = series.size
    if n >= TESTED_FROM and (alike := alike_p(series)) < _ALIKE_P:
        return Answer.refused(
            Reason.NOT_INDEPENDENT,
            f"Neighbours among the {n} values are more alike than independent ones would be (p = {alike:.2g}).",
            method=METHOD,
            n=n,
            confidence=confidence,
        )
    ordered = np.sort(series)
    value = float(ordered[nearest_rank(n, percentile) - 1]) if n else None
    ranks = rank_interval(n, percentile, confidence) if n else None
    if ranks is None:
        return _too_few(n, n, percentile, confidence, value)
    return Answer(value, float(ordered[ranks[0] - 1]), float(ordered[ranks[1] - 1]), confidence, METHOD, n)


def percentile_of_histogram(
    histogram: Histogram, percentile: float, confidence: float = CONFIDENCE, *, effective_n: float | None = None
) -> Answer:
    """A percentile of the times in a histogram, in nanoseconds.

    Parameters
    ----------
    histogram : Histogram
        Values ascending, with their counts.
    percentile : float
        Strictly between 0 and 100.
    confidence : float
        0 to 1.
    effective_n : float, optional
        How many independent times they are worth, where they are correlated: their number divided by the correlation
        time, such as one estimated from a sample of the series. Absent, the caller vouches that they are independent.

    Returns
    -------
    Answer
        Its ends are values of the histogram, and so as exact as its buckets.

    Examples
    --------
    >>> columns = {"value_ns": list(range(1, 101)), "count": [10] * 100}
    >>> percentile_of_histogram(Histogram.of(columns), 50).interval
    (47.0, 54.0)
    >>> percentile_of_histogram(Histogram.of(columns), 50, effective_n=100).interval
    (40.0, 61.0)
    """
    total = histogram.total
    trials = total if effective_n is None else min(total, int(effective_n))
    value = histogram.percentile_ns(percentile)
    ranks = rank_interval(trials, percentile, confidence) if trials else None
    if value is None or ranks is None:
        return _too_few(trials, total, percentile, confidence, None if value is None else float(value))
    # Rank l of the effective values is a group of total / trials of the actual ones; the outer ends count.
    low, high = (ranks[0] - 1) * total // trials + 1, -(-ranks[1] * total // trials)
    at = np.searchsorted(np.cumsum(histogram.count), [low, high])
    ends = histogram.value_ns[at]
    return Answer(float(value), float(ends[0]), float(ends[1]), confidence, METHOD, total)


def nearest_rank(n: int, percentile: float) -> int:
    """The rank, 1 to n, of the smallest of n values that at least the share does not exceed.

    Examples
    --------
    >>> nearest_rank(10, 90), nearest_rank(10, 91)
    (9, 10)
    """
    return max(1, math.ceil(n * percentile / 100 - 1e-9))


def _too_few(trials: int, n: int, percentile: float, confidence: float, value: float | None) -> Answer:
    worth = f"{n} values" if trials == n else f"{n} values, worth {trials} independent ones,"
    sentence = f"{worth} do not reach far enough around the {percentile:g}th percentile for {100 * confidence:g} %."
    return Answer.refused(Reason.TOO_FEW_SAMPLES, sentence, method=METHOD, n=n, value=value, confidence=confidence)

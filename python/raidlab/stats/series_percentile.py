"""Percentiles of values that depend on one another.

How often a series lies below its percentile is a mean, of ones and zeros. Its variance, taken from batch means, says
how many independent values would vary as much; their ranks, scaled up, give the interval (Woodruff's way, made for
samples of clusters). The distribution of the values does not matter, only how they follow one another.

Invariants:

- Whether there is an interval is decided by the correlation of the ranks and by the number of values, not by the
  ones and zeros that give its width.
- With independent values the interval is that of `rank_interval`, but interpolated between ranks and a little wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.batch_means import independent_batches, variance_of_mean
from raidlab.stats.correlation import correlation_time
from raidlab.stats.percentile import nearest_rank
from raidlab.stats.ranks import mid_ranks
from raidlab.stats.series import LEAST_EFFECTIVE, LEAST_VALUES, as_array
from raidlab.stats.special import binomial_cdf, normal_quantile, t_quantile

METHOD = "ranks of a series"
_BATCH_TIMES = 4.0
# Beyond the percentile, on its thinner side, there must be so many effective values.
_LEAST_BEYOND = 10.0
_ALLOWANCE_VALUES = 25.0


def percentile_of_series(
    values: Sequence[float] | NDArray[np.float64], percentile: float, confidence: float = CONFIDENCE
) -> Answer:
    """A percentile of a steady series.

    Parameters
    ----------
    values : sequence of float
        Shape (n,), any unit, in the order of their occurrence, the warm-up cut (`mser5`).
    percentile : float
        Strictly between 0 and 100.
    confidence : float
        0 to 1.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below 500 values, below 100 effective ones, or with fewer than 10 effective ones beyond the
        percentile (1000 for the 99th).

    References
    ----------
    R. S. Woodruff, Confidence intervals for medians and other position measures, Journal of the American Statistical
    Association 47 (1952) 635-646; interpolated ranks after A. D. Hutson, Calculating nonparametric confidence
    intervals for quantiles using fractional order statistics, Journal of Applied Statistics 26 (1999) 343-353.

    Examples
    --------
    >>> answer = percentile_of_series(np.random.default_rng(1).standard_exponential(4000), 90)
    >>> answer.low < 2.303 < answer.high
    True
    """
    series = as_array(values)
    n = series.size
    ordered = np.sort(series)
    value = float(ordered[nearest_rank(n, percentile) - 1]) if n else None

    def too_few(sentence: str) -> Answer:
        return Answer.refused(Reason.TOO_FEW_SAMPLES, sentence, method=METHOD, n=n, value=value, confidence=confidence)

    if n < LEAST_VALUES or value is None:
        return too_few(f"{n} values; at least {LEAST_VALUES} are needed.")
    effective = n / max(1.0, correlation_time(mid_ranks(series)))
    thin = min(percentile, 100 - percentile) / 100
    needed = max(LEAST_EFFECTIVE, _LEAST_BEYOND / thin)
    if effective < needed:
        return too_few(
            f"{n} values are worth {effective:.0f} independent ones; {needed:.0f} are needed for their "
            f"{percentile:g}th percentile."
        )
    below = (series <= value).astype(np.float64)
    means = independent_batches(below, _BATCH_TIMES * max(1.0, correlation_time(below)))
    if means is None:
        return too_few(f"The {n} values lie above and below their {percentile:g}th percentile for long stretches.")
    trials = _trials(n, float(below.mean()), means, confidence, 1 + _ALLOWANCE_VALUES / effective)
    ends = _fractional_ranks(trials, percentile, confidence)
    if ends is None:
        return too_few(
            f"{n} values are worth {trials} independent ones at the {percentile:g}th percentile, which is not enough."
        )
    # The value of rank l stands for the share (l - 1/2) / trials.
    low, high = (float(np.interp((end - 0.5) * n / trials - 0.5, np.arange(n), ordered)) for end in ends)
    return Answer(value, min(low, value), max(high, value), confidence, METHOD, n)


def _trials(n: int, share: float, means: NDArray[np.float64], confidence: float, allowance: float) -> int:
    """How many independent values would give the share below an interval as wide as the batches do."""
    variance = variance_of_mean(means)
    worth = min(float(n), share * (1 - share) / variance) if variance > 0 else float(n)
    # Few batches know their own variance badly: Student's quantile against the normal one.
    student = t_quantile((1 + confidence) / 2, means.size - 1) / normal_quantile((1 + confidence) / 2)
    return max(1, int(worth / (student * allowance) ** 2))


@lru_cache(maxsize=4096)
def _fractional_ranks(trials: int, percentile: float, confidence: float) -> tuple[float, float] | None:
    """`rank_interval` with ranks interpolated, so that each end misses as often as it may; None beyond the extremes."""
    miss = (1 - confidence) / 2
    first, cdf = binomial_cdf(trials, percentile / 100)
    k = first + np.arange(cdf.size)
    low, high = float(np.interp(miss, cdf, k)) + 1, float(np.interp(1 - miss, cdf, k)) + 1
    return (low, high) if cdf[0] <= miss and high <= trials else None

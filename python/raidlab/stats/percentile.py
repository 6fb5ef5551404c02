"""Percentiles of several repeats, with an interval that assumes nothing of the distribution of their times.

Invariants:

- Requests within a repeat may depend on one another as they like; what tells how uncertain a percentile is are the
  repeats.
- A percentile is the smallest value that at least that share does not exceed, as everywhere in raidlab.
- Where even the extremes are not far enough out, there are too few requests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from raidlab.histogram import Histogram
from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.interval import ORDER_TESTED_FROM, order_sentence
from raidlab.stats.special import binomial_cdf, t_quantile

METHOD = "shares of repeats"
LEAST_REPEATS = 3
# Beyond a percentile there must be so many clusters of requests; and where repeats are too few to show how many there
# are, so many requests of each (of the median a quarter), which are enough for a queue that is busy 90 % of the time.
_LEAST_CLUSTERS = 30
_ALLOWANCE_CLUSTERS = 10.0
_LEAST_EACH = 1000


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


def percentile_of_repeats(repeats: Sequence[Histogram], percentile: float, confidence: float = CONFIDENCE) -> Answer:
    """A percentile of the times of all requests of several repeats, in nanoseconds.

    Requests of one run depend on one another; repeats do not. So each time is asked in how many of the requests of each
    repeat it was not exceeded, and the interval holds those times for which these shares are, by Student's test, in the
    mean the one asked for. It is at least as wide as that of as many independent requests.

    Parameters
    ----------
    repeats : sequence of Histogram
        Those of the repeats, in the order in which they were run.
    percentile : float
        Strictly between 0 and 100.
    confidence : float
        0 to 1.

    Returns
    -------
    Answer
        Of the merged histogram; its ends are values of it, and so as exact as its buckets. `TOO_FEW_SAMPLES` below
        three repeats, or where too few requests lie beyond the percentile: below ten repeats some 1,000 of each (10,000
        requests a repeat for the 90th percentile, 100,000 for the 99th), from ten on so many as are worth 30
        independent ones. `NOT_INDEPENDENT` where ten or more repeats follow one another too closely.

    References
    ----------
    R. S. Woodruff, Confidence intervals for medians and other position measures, Journal of the American Statistical
    Association 47 (1952) 635-646 (samples of clusters; here each cluster is a repeat).

    Examples
    --------
    >>> times = [Histogram.of({"value_ns": range(at, 100 + at), "count": [100] * 100}) for at in (0, 2, 4)]
    >>> answer = percentile_of_repeats(times, 90)
    >>> answer.value, answer.interval
    (91.0, (87.0, 96.0))
    """
    known = [repeat for repeat in repeats if repeat.total]
    merged = Histogram.merged(known)
    total, share = merged.total, percentile / 100
    value = merged.percentile_ns(percentile)

    def no(reason: Reason, sentence: str) -> Answer:
        estimate = None if value is None else float(value)
        return Answer.refused(reason, sentence, method=METHOD, n=total, value=estimate, confidence=confidence)

    ranks = rank_interval(total, percentile, confidence) if total else None
    if ranks is None or value is None or len(known) < LEAST_REPEATS:
        words = (
            f"{total} requests of {len(known)} repeats do not reach far enough around the {percentile:g}th percentile"
        )
        return no(Reason.TOO_FEW_SAMPLES, f"{words}; at least {LEAST_REPEATS} repeats are needed.")
    excess = _excess(known, merged, share)
    at = int(np.searchsorted(merged.value_ns, value))
    # Of few distinct times the one below may be the one that tells repeats apart.
    beside = excess[:, max(at - 1, 0) : at + 1]
    clusters = _clusters(float(beside.std(axis=0, ddof=1).max()), len(known), percentile)
    if (sentence := _too_few_beyond(clusters, total, len(known), percentile)) is not None:
        return no(Reason.TOO_FEW_SAMPLES, sentence)
    if (sentence := order_sentence(excess[:, at].tolist())) is not None:
        return no(Reason.NOT_INDEPENDENT, sentence)
    low, high = _ends(
        merged, excess, ranks, confidence, 1.0 if clusters is None else 1 + _ALLOWANCE_CLUSTERS / clusters
    )
    ends = merged.value_ns[[min(low, at), min(max(high, at), merged.value_ns.size - 1)]]
    return Answer(float(value), float(ends[0]), float(ends[1]), confidence, METHOD, total)


def _ends(
    merged: Histogram, excess: NDArray[np.float64], ranks: tuple[int, int], confidence: float, allowance: float
) -> tuple[int, int]:
    """The places of the first time that is not shown to be too low, and of the last not shown to be too high."""
    repeats, places = excess.shape
    mean = excess.mean(axis=0)
    quantile = t_quantile((1 + confidence) / 2, repeats - 1) * allowance
    half = quantile * excess.std(axis=0, ddof=1) / math.sqrt(repeats)
    counts = np.cumsum(merged.count)
    low = min(np.count_nonzero(mean + half < 0), np.searchsorted(counts, ranks[0]))
    high = max(places - np.count_nonzero(mean - half > 0), np.searchsorted(counts, ranks[1]))
    return int(low), int(high)


def _clusters(spread: float, repeats: int, percentile: float) -> float | None:
    """How many independent requests those beyond a percentile are worth; None of repeats too few to tell.

    Slow requests come in clusters, since a queue drains slowly; the fewer of them, the more uneven repeats.
    """
    beyond = min(percentile, 100 - percentile) / 100
    if repeats < ORDER_TESTED_FROM:
        return None
    return repeats * (beyond / spread) ** 2 if spread > 0 else math.inf


def _too_few_beyond(clusters: float | None, total: int, repeats: int, percentile: float) -> str | None:
    """Why what lies beyond a percentile tells too little of it; None where it tells enough."""
    if clusters is not None:
        if clusters >= _LEAST_CLUSTERS:
            return None
        return (
            f"The requests beyond the {percentile:g}th percentile of {repeats} repeats are worth {clusters:.1f} "
            f"independent ones, so unevenly do repeats have them; at least {_LEAST_CLUSTERS} are needed."
        )
    beyond = min(percentile, 100 - percentile) / 100
    each, needed = beyond * total / repeats, _LEAST_EACH * (1 - beyond) ** 2
    if each >= needed - 1e-9:
        return None
    return (
        f"{each:.0f} requests of each of {repeats} repeats lie beyond the {percentile:g}th percentile; of fewer than "
        f"{ORDER_TESTED_FROM} repeats, which do not show how such requests cluster, {needed:.0f} are needed."
    )


def _excess(repeats: Sequence[Histogram], merged: Histogram, share: float) -> NDArray[np.float64]:
    """By repeat and value: the requests that did not exceed it, less the share asked for, per request of a repeat."""
    mean_total = merged.total / len(repeats)
    rows = []
    for repeat in repeats:
        counts = np.concatenate([[0], np.cumsum(repeat.count)])
        within = counts[np.searchsorted(repeat.value_ns, merged.value_ns, side="right")]
        rows.append((within - share * repeat.total) / mean_total)
    return np.stack(rows)

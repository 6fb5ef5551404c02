"""The interval of the mean of repeats.

Invariants:

- A repeat is one whole run. Its value is a sum or mean of many requests, so that it is close to normal; that it is
  independent of the others is asked of their order once there are enough of them to answer.
- One value has no interval; two or more have Student's, which from 30 on follows the skewness they show.
- An interval speaks of repeats like those that were run. What happens in one repeat of ten is seen in three repeats
  once in four times, and in 30 nearly always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.correlation import alike_p
from raidlab.stats.skewness import skewed_ends
from raidlab.stats.special import t_quantile
from raidlab.stats.tail import NOT_FINITE, TailIndex

# Of what a floating-point number holds.
_LARGEST_LOG = 709.0
METHOD = "student"
# Figures of single runs that differ by less are called level: what they scatter by is not known.
NOTHING_SHOWN_PERCENT = 5.0
# From so many repeats on their skewness is known well enough to bend the interval, and correlation is found.
MANY = 30
# Fewer say nothing of the order they came in.
ORDER_TESTED_FROM = 10
_ALIKE_P, _ALIKE_P_OF_MANY = 0.05, 0.1
# Values that differ by no more are equal but for rounding, whose order says nothing.
_ROUNDING = 1e-12


def student(
    values: Sequence[float],
    confidence: float = CONFIDENCE,
    *,
    tail: TailIndex | None = None,
    symmetric: bool = False,
    independent: bool = False,
) -> Answer:
    """The mean of repeats, with its interval.

    Parameters
    ----------
    values : sequence of float
        One a repeat, any unit, in the order in which they were run.
    confidence : float
        0 to 1.
    tail : TailIndex, optional
        That of the requests within the repeats, where the values are means of theirs: a few means do not show by
        themselves that what they are means of has no finite variance. A heavy one widens the interval.
    symmetric : bool
        True of differences between things that are alike in kind: the interval follows no skewness they show.
    independent : bool
        True of repeats of which that is known, such as simulated ones with a seed each: their order, which looks like
        that of dependent ones in one case of twenty, is not asked.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below two values, `VARIANCE_NOT_FINITE` where the tail does not show a finite one,
        `NOT_INDEPENDENT` where ten or more follow one another too closely.

    References
    ----------
    Student, The probable error of a mean, Biometrika 6 (1908) 1-25; R. Jain, The Art of Computer Systems Performance
    Analysis (1991), 13.2.

    Examples
    --------
    >>> answer = student([10.0, 12.0, 11.0])
    >>> round(answer.low, 2), answer.value, round(answer.high, 2)
    (8.52, 11.0, 13.48)
    """
    n = len(values)
    mean = math.fsum(values) / n if n else None

    def no(reason: Reason, sentence: str) -> Answer:
        return Answer.refused(reason, sentence, method=METHOD, n=n, value=mean, confidence=confidence)

    if mean is None or n < 2:
        return no(Reason.TOO_FEW_SAMPLES, f"{n} repeats show nothing of how repeats differ; at least 2 are needed.")
    if tail is not None and not tail.has_variance:
        return no(
            Reason.VARIANCE_NOT_FINITE,
            f"The tail index of the requests is {tail.index:.2f}, at most {tail.high:.2f}; from {NOT_FINITE} on the "
            "variance is not finite and the mean has no interval. A percentile has one.",
        )
    if not independent and (sentence := order_sentence(values)) is not None:
        return no(Reason.NOT_INDEPENDENT, sentence)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    # A few means of heavy-tailed requests are seldom as far apart as they can be.
    allowance = 1 / (1 - max(0.0, tail.index) ** 2) if tail is not None else 1.0
    error = math.sqrt(variance / n) * allowance
    below = above = t_quantile((1 + confidence) / 2, n - 1)
    if n >= MANY and not symmetric:
        below, above = skewed_ends(np.asarray(values, dtype=np.float64), confidence)
    return Answer(mean, mean - below * error, mean + above * error, confidence, METHOD, n)


def ratio_of(log: float) -> float:
    """The ratio whose logarithm this is; an end of an interval may lie beyond all numbers, and is the last of them.

    Examples
    --------
    >>> ratio_of(0.0), ratio_of(2900.0) > 1e300
    (1.0, True)
    """
    return math.exp(min(log, _LARGEST_LOG))


def order_sentence(values: Sequence[float], beside: int = 0) -> str | None:
    """What is wrong with the order of repeats: that neighbours are alike. None where nothing is, or below ten.

    ``beside`` is of how many others the same is asked for one answer: independent ones are refused no oftener for it.

    Examples
    --------
    >>> order_sentence(range(12))
    'Neighbours among the 12 repeats are more alike than independent ones would be (p = 0.00018).'
    """
    n = len(values)
    if n < ORDER_TESTED_FROM or max(values) - min(values) <= _ROUNDING * abs(values[0]):
        return None
    alike = alike_p(np.asarray(values, dtype=np.float64))
    if alike >= (_ALIKE_P_OF_MANY if n >= MANY else _ALIKE_P) / (1 + beside):
        return None
    return f"Neighbours among the {n} repeats are more alike than independent ones would be (p = {alike:.2g})."


def taken_for_granted(repeats: int) -> str | None:
    """What the intervals of so many repeats take for granted that were not drawn by seed; None where it was asked.

    Examples
    --------
    >>> taken_for_granted(3)
    'taken to be independent and normal, which fewer than 30 cannot show'
    >>> taken_for_granted(30)
    """
    return f"taken to be independent and normal, which fewer than {MANY} cannot show" if repeats < MANY else None


def mean_interval(values: Sequence[float], *, independent: bool = False) -> tuple[float, float] | None:
    """The 95 % interval of the mean of repeats; None where `student` gives none.

    Examples
    --------
    >>> low, high = mean_interval([10.0, 12.0])
    >>> round(low, 1), round(high, 1)
    (-1.7, 23.7)
    """
    return student(values, independent=independent).interval


def interval_above_zero(values: Sequence[float]) -> tuple[float, float] | None:
    """The `mean_interval` of what cannot be negative, such as a rate: as far as it lies above 0.

    Examples
    --------
    >>> low, high = interval_above_zero([10.0, 12.0])
    >>> low, round(high, 1)
    (0.0, 23.7)
    """
    interval = mean_interval(values)
    return None if interval is None else (max(interval[0], 0.0), interval[1])


def spread_percent(values: Sequence[float]) -> float | None:
    """The range of repeats as a percentage of their mean; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return 100 * (max(values) - min(values)) / mean if mean else None

"""The interval of the mean of repeats.

Invariants:

- A repeat is one whole run: independent of the others, and its value a sum or mean of many requests, so that it is
  close to normal. For the requests of one run there is `batch_means`.
- One value has no interval; two or more have Student's.
- An interval says how repeats of the same run differ on this machine; it says nothing of other machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.special import t_quantile
from raidlab.stats.tail import NOT_FINITE, TailIndex

METHOD = "student"


def student(values: Sequence[float], confidence: float = CONFIDENCE, *, tail: TailIndex | None = None) -> Answer:
    """The mean of repeats, with its interval.

    Parameters
    ----------
    values : sequence of float
        One a repeat, any unit.
    confidence : float
        0 to 1.
    tail : TailIndex, optional
        That of the requests within the repeats, where they are at hand: a few means do not show by themselves that
        what they are means of has no finite variance. A heavy one widens the interval.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below two values, `VARIANCE_NOT_FINITE` where the tail does not show a finite one.

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
    if tail is not None and (tail.index + tail.high) / 2 > NOT_FINITE:
        return no(
            Reason.VARIANCE_NOT_FINITE,
            f"The tail index of the requests is {tail.index:.2f}, at most {tail.high:.2f}; from {NOT_FINITE} on the "
            "variance is not finite and the mean has no interval. A percentile has one.",
        )
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    # A few means of heavy-tailed requests are seldom as far apart as they can be.
    allowance = 1 / (1 - max(0.0, tail.index) ** 2) if tail is not None else 1.0
    half = t_quantile((1 + confidence) / 2, n - 1) * math.sqrt(variance / n) * allowance
    return Answer(mean, mean - half, mean + half, confidence, METHOD, n)


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean of repeats; None for fewer than two.

    Examples
    --------
    >>> low, high = mean_interval([10.0, 12.0])
    >>> round(low, 1), round(high, 1)
    (-1.7, 23.7)
    """
    return student(values).interval


def spread_percent(values: Sequence[float]) -> float | None:
    """The range of repeats as a percentage of their mean; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return 100 * (max(values) - min(values)) / mean if mean else None

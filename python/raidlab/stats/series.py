"""Whether a series of values can bear an interval of its mean: one judgement for all methods that give one.

Invariants:

- The judgement rests on the number of values, on their correlation and on their tails, never on the interval itself.
- Close to its limits an interval is widened: whoever passes just by luck, with a correlation or a tail estimated too
  low, would otherwise be given one that is too narrow. The allowance vanishes with more values.

The limits and allowances are those with which every cell of the coverage grid holds (`python -m
raidlab.stats.coverage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import Answer, Reason
from raidlab.stats.correlation import correlation_time
from raidlab.stats.tail import HEAVY, NOT_FINITE, tail_index

LEAST_VALUES = 500
LEAST_EFFECTIVE = 100
_ALLOWANCE_VALUES = 15.0


@dataclass(frozen=True)
class Judgement:
    """What is known of a series before its interval is made.

    Attributes
    ----------
    refusal : Answer or None
        Why there is no interval.
    correlation_time : float
        At least 1, in values.
    allowance : float
        The factor, at least 1, by which an interval is widened.
    """

    refusal: Answer | None
    correlation_time: float
    allowance: float


def judge(values: NDArray[np.float64], *, method: str, confidence: float, judge_tail: bool) -> Judgement:
    """Judge a series.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), in the order of their occurrence.
    method : str
        Named in a refusal.
    confidence : float
    judge_tail : bool
        False where each value is itself a sum or mean of many, whose tail says nothing.
    """
    n = values.size
    value = float(values.mean()) if n else None

    def no(reason: Reason, sentence: str) -> Judgement:
        return Judgement(
            Answer.refused(reason, sentence, method=method, n=n, value=value, confidence=confidence), 1.0, 1.0
        )

    least = LEAST_VALUES if judge_tail else LEAST_EFFECTIVE
    if n < least:
        return no(Reason.TOO_FEW_SAMPLES, f"{n} values; at least {least} are needed.")
    heaviest = 0.0
    if judge_tail:
        tail = tail_index(values)
        if tail.index >= NOT_FINITE:
            return no(
                Reason.VARIANCE_NOT_FINITE,
                f"The {tail.k} most extreme of {n} values follow a power law of exponent {1 / tail.index:.2g}; at 2 or "
                "less the variance is not finite and the mean has no interval. A percentile has one.",
            )
        if tail.high > HEAVY:
            return no(
                Reason.TOO_FEW_SAMPLES,
                f"The tail index of {n} values is {tail.index:.2f} and may be {tail.high:.2f}; an interval of the mean "
                f"holds up to {HEAVY:.2f}. More values would narrow it; a percentile has an interval in any case.",
            )
        heaviest = max(0.0, tail.high)
    time = max(1.0, correlation_time(values))
    effective = n / time
    if effective < LEAST_EFFECTIVE:
        return no(
            Reason.TOO_FEW_SAMPLES,
            f"{n} values are worth {effective:.0f} independent ones (correlation time {time:.3g} values); at least "
            f"{LEAST_EFFECTIVE} are needed.",
        )
    allowance = (1 + _ALLOWANCE_VALUES / effective) / (1 - heaviest**2)
    return Judgement(None, time, allowance)


def as_array(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as floating point numbers.

    Raises
    ------
    ValueError
        When they are not one row of finite numbers.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"values must be one row of finite numbers; they have the shape {array.shape}")
    return array

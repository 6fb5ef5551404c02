"""The interval of the mean of values that depend on one another: means of batches, with the batch chosen by rule.

Response times of successive requests are alike (a queue drains slowly), so their mean varies more than their spread
tells. Means of batches much longer than the correlation are nearly independent, and Student's interval holds for them.

Invariants:

- A batch is at least four correlation times long and doubled until von Neumann's test finds its means independent.
- Too few batches, too few effective values or too heavy a tail: no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.correlation import von_neumann_z
from raidlab.stats.series import as_array, judge
from raidlab.stats.skewness import skewed_ends

METHOD = "batch means"
_BATCH_TIMES = 4.0
_LEAST_BATCHES = 20
# One-sided 5 %.
_ALIKE_Z = 1.645


def batch_means(
    values: Sequence[float] | NDArray[np.float64], confidence: float = CONFIDENCE, *, judge_tail: bool = True
) -> Answer:
    """The mean of a steady series, with its interval.

    Parameters
    ----------
    values : sequence of float
        Shape (n,), any unit, in the order of their occurrence, the warm-up cut (`mser5`).
    confidence : float
        0 to 1.
    judge_tail : bool
        False where each value is itself a sum or mean of many requests, such as a rate of one second; then 100
        values can be enough instead of 500.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below 500 values, below 100 effective ones, or where the tail could be too heavy;
        `VARIANCE_NOT_FINITE` for a tail like a power law of exponent 2 or less.

    References
    ----------
    B. Schmeiser, Batch size effects in the analysis of simulation output, Operations Research 30 (1982) 556-568; the
    corrections for skewed and still slightly correlated batch means follow A. Tafazzoli, J. R. Wilson, E. K. Lada and
    N. M. Steiger, Performance of Skart, INFORMS Journal on Computing 23 (2011) 297-314.

    Examples
    --------
    >>> answer = batch_means(np.random.default_rng(1).normal(10.0, 1.0, 2000))
    >>> answer.low < 10.0 < answer.high
    True
    >>> batch_means([1.0, 2.0, 3.0]).reason
    <Reason.TOO_FEW_SAMPLES: 'too_few_samples'>
    """
    series = as_array(values)
    judged = judge(series, method=METHOD, confidence=confidence, judge_tail=judge_tail)
    if judged.refusal is not None:
        return judged.refusal
    n, mean = series.size, float(series.mean())
    means = independent_batches(series, _BATCH_TIMES * judged.correlation_time)
    if means is None:
        return Answer.refused(
            Reason.TOO_FEW_SAMPLES,
            f"No {_LEAST_BATCHES} batches of the {n} values have independent means.",
            method=METHOD,
            n=n,
            value=mean,
            confidence=confidence,
        )
    error = math.sqrt(variance_of_mean(means)) * judged.allowance
    below, above = skewed_ends(means, confidence)
    return Answer(mean, mean - below * error, mean + above * error, confidence, METHOD, n)


def independent_batches(series: NDArray[np.float64], least_length: float) -> NDArray[np.float64] | None:
    """Means of the shortest batches that von Neumann's test finds independent; None below 20 batches.

    Values at the beginning that fill no batch are left out of the means.
    """
    length = max(1, math.ceil(least_length))
    while (count := series.size // length) >= _LEAST_BATCHES:
        means: NDArray[np.float64] = series[series.size - count * length :].reshape(count, length).mean(axis=1)
        if von_neumann_z(means) < _ALIKE_Z:
            return means
        length *= 2
    return None


def variance_of_mean(means: NDArray[np.float64]) -> float:
    """The variance of the mean of batch means, with what correlation is left between neighbours allowed for."""
    centred = means - means.mean()
    total = float(centred @ centred)
    if total <= 0:
        return 0.0
    left = max(0.0, float(centred[1:] @ centred[:-1]) / total)
    return total / (means.size - 1) / means.size * (1 + left) / (1 - left)

"""Whether values drift with the order in which they were measured.

Invariants:

- Values are compared only within their own configuration; what configurations share is added up. So it does not matter
  that one is faster than another.
- Only the order of values counts, not their distances: one outlier is no drift.
- The probability is exact for untied values of up to a hundred repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import Reason
from raidlab.stats.special import normal_cdf

# Beyond, the sum of signs is normal to more digits than anyone reads.
_EXACT_REPEATS = 100
_PERMUTED_REPEATS = 30
_PERMUTATIONS = 9999


@dataclass(frozen=True)
class Drift:
    """What the order of measurement did to the values."""

    p: float | None
    """The probability of so much drift, up or down, where there is none; None where a reason is given."""
    percent_a_step: float | None
    """The median change from one repeat to the next, in percent of each configuration's mean."""
    agreement: float | None
    """-1 to 1: the share of pairs that rise less the share that fall (Kendall's tau)."""
    n: int
    """How many values there are."""
    reason: Reason | None = None
    """`TOO_FEW_SAMPLES` where even the most extreme order would be likely."""


def drift(configurations: Sequence[Sequence[float]], *, seed: int = 1, least_p: float = 0.05) -> Drift:
    """Test whether repeats of the same configurations rise or fall with their order.

    Parameters
    ----------
    configurations : sequence of sequence of float
        For each configuration its values, any unit, in the order in which they were measured.
    seed : int
        Used where equal values call for a test by permutation.
    least_p : float
        Where no order at all could be less probable than this, there are too few values.

    References
    ----------
    H. B. Mann, Nonparametric tests against trend, Econometrica 13 (1945) 245-259; M. G. Kendall, Rank Correlation
    Methods (1948); R. M. Hirsch and J. R. Slack, A nonparametric trend test for seasonal data, Water Resources
    Research 20 (1984) 727-732 (several groups); P. K. Sen, Journal of the American Statistical Association 63 (1968)
    1379-1389 (the slope).

    Examples
    --------
    >>> found = drift([[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]])
    >>> round(found.p, 4), found.agreement
    (0.0028, 1.0)
    >>> drift([[1.0, 2.0]]).reason
    <Reason.TOO_FEW_SAMPLES: 'too_few_samples'>
    """
    groups = [np.asarray(group, dtype=np.float64) for group in configurations if len(group) > 1]
    n = sum(len(group) for group in configurations)
    # Even if all rose, both directions count.
    likeliest = math.prod(1 / math.factorial(min(group.size, 20)) for group in groups)
    if 2 * likeliest > least_p:
        return Drift(None, None, None, n, Reason.TOO_FEW_SAMPLES)
    score = sum(_score(group) for group in groups)
    pairs = sum(group.size * (group.size - 1) // 2 for group in groups)
    return Drift(_p(groups, abs(score), seed), _percent_a_step(groups), score / pairs, n)


def _score(group: NDArray[np.float64]) -> int:
    """Pairs that rise less pairs that fall."""
    return int(sum(np.sign(group[i + 1 :] - group[i]).sum() for i in range(group.size - 1)))


def _p(groups: list[NDArray[np.float64]], score: int, seed: int) -> float:
    largest = max(group.size for group in groups)
    tied = any(np.unique(group).size < group.size for group in groups)
    if not tied and largest <= _EXACT_REPEATS:
        return _exact_p([group.size for group in groups], score)
    if largest <= _PERMUTED_REPEATS:
        return _permuted_p(groups, score, seed)
    variance = sum(_variance(group) for group in groups)
    return min(1.0, 2 * (1 - normal_cdf((score - 1) / math.sqrt(variance)))) if score > 0 and variance > 0 else 1.0


def _exact_p(sizes: list[int], score: int) -> float:
    """From how many permutations have how many inversions: the products of 1 + x + ... + x^(i - 1)."""
    ways = np.ones(1)
    for size in sizes:
        for i in range(2, size + 1):
            ways = np.convolve(ways, np.full(i, 1 / i))
    # k inversions give the score pairs - 2 k.
    pairs = ways.size - 1
    return min(1.0, float(ways[np.abs(pairs - 2 * np.arange(ways.size)) >= score].sum()))


def _permuted_p(groups: list[NDArray[np.float64]], score: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    scores = np.zeros(_PERMUTATIONS)
    for group in groups:
        shuffled = rng.permuted(np.tile(group, (_PERMUTATIONS, 1)), axis=1)
        for i in range(group.size - 1):
            scores += np.sign(shuffled[:, i + 1 :] - shuffled[:, i : i + 1]).sum(axis=1)
    return (1 + int((np.abs(scores) >= score).sum())) / (1 + _PERMUTATIONS)


def _variance(group: NDArray[np.float64]) -> float:
    """Of the score of one group without drift, equal values allowed for."""
    ties = np.unique(group, return_counts=True)[1]
    n = group.size
    return float(n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18


def _percent_a_step(groups: list[NDArray[np.float64]]) -> float | None:
    slopes = [
        (group[i + 1 :] - group[i]) / np.arange(1, group.size - i) / group.mean()
        for group in groups
        if group.mean() != 0
        for i in range(group.size - 1)
    ]
    return 100 * float(np.median(np.concatenate(slopes))) if slopes else None

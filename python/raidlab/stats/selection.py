"""Which of several is best, or within a margin of it: selection that asks only as often as it must.

Invariants:

- With the confidence promised, what is left is within the margin of the best, whatever the differences are, as long as
  means of pairs are normal. Values of one repeat may depend on one another (common random numbers): that only helps.
- A candidate is dropped for good, and only by a pair that shows it.

References: S.-H. Kim and B. L. Nelson, *A Fully Sequential Procedure for Indifference-Zone Selection in Simulation*,
ACM Transactions on Modeling and Computer Simulation 11(3), 2001; for the goal S. Andradottir and S.-H. Kim, *Fully
Sequential Procedures for Comparing Constrained Systems via Simulation*, Naval Research Logistics 57, 2010.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeVar

Name = TypeVar("Name", bound=Hashable)
Standing = Literal["met", "missed", "not decided"]
FIRST_REPEATS = 6


def h_squared(error: float, first_repeats: int) -> float:
    """How many variances of a difference must be outweighed, for a pair's own chance of error."""
    return (first_repeats - 1) * (math.pow(2 * error, -2 / (first_repeats - 1)) - 1)


def remaining(values: Mapping[Name, Sequence[float]], margin: float, error: float, first_repeats: int) -> list[Name]:
    """Those that no other shows to be behind, in the order given; more is better.

    Parameters
    ----------
    values : mapping
        Equally many values of each, at least ``first_repeats``; those at one place are of the same repeat.
    margin : float
        What makes no difference, in the unit of the values.
    error : float
        The chance that the one left is not within the margin of the best, 0 to 1.
    first_repeats : int
        From so many the variances of differences are taken.

    Examples
    --------
    >>> remaining({"a": [3.0, 3.1, 2.9], "b": [1.0, 1.1, 0.9]}, margin=0.1, error=0.05, first_repeats=3)
    ['a']
    """
    if len(values) < 2:
        return list(values)
    own = error / (len(values) - 1)
    h2 = h_squared(own, first_repeats)
    means = {name: math.fsum(found) / len(found) for name, found in values.items()}
    repeats = len(next(iter(values.values())))
    kept = []
    for name, mean in means.items():
        is_behind = False
        for other, better in means.items():
            if better <= mean or other == name:
                continue
            spread = _variance([a - b for a, b in zip(values[name], values[other], strict=True)][:first_repeats])
            width = max(0.0, margin / (2 * repeats) * (h2 * spread / margin**2 - repeats))
            if mean < better - width:
                is_behind = True
                break
        if not is_behind:
            kept.append(name)
    return kept


def standing(
    values: Sequence[float], indifference: float, error: float, first_repeats: int = FIRST_REPEATS
) -> Standing:
    """Whether a mean is above 0, decided as soon as the values show it.

    A mean within ``indifference`` of 0 may be called either; ``error`` is the chance of a wrong word outside it.

    Examples
    --------
    >>> standing([0.1, 0.11, 0.09, 0.1, 0.1, 0.1], indifference=0.005, error=0.05)
    'met'
    """
    if len(values) < first_repeats:
        return "not decided"
    spread = _variance(values[:first_repeats])
    n = len(values)
    bound = max(0.0, h_squared(error, first_repeats) * spread / (2 * indifference) - indifference * n / 2)
    total = math.fsum(values)
    if abs(total) < bound:
        return "not decided"
    # A mean of just 0 whose values are all alike is as good as the goal itself.
    return "met" if total >= 0 else "missed"


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)

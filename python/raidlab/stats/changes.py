"""Whether a series changed: stepped, climbed or fell, or was another for a while, by more than its values do by chance.

Values of neighbouring seconds are alike in most measurements, and such a series wanders without anything having
changed. So each change is fitted first; what is left tells how alike neighbours are; and the change is judged between
values from which that likeness has been taken.

Invariants:

- The answer is a probability; how large a change matters is for others to say.
- Of a series in which each value is 0.7 of the one before plus chance, at most 4 in 100 seem changed at 0.01, from 10
  values on (`tests/python/test_steadiness.py`); of independent values at most 1.

Reference: D. Cochrane and G. H. Orcutt, Journal of the American Statistical Association 44 (1949) 32-61;
F. H. C. Marriott and J. A. Pope, Biometrika 41 (1954) 390-402 (the bias of the likeness).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.special import beta_cdf

# A step has so many values on either side: one slow value at the end is none.
LEAST_SIDE = 3
LEAST_VALUES = 10
# A longer series is averaged down to so many values.
_TRIED_VALUES = 300
_LARGEST = 0.97
# What is added to the likeness that was found, in its own standard errors: too small a one sees changes that are none.
_MARGIN = 2.0

Series = NDArray[np.float64]


def change_p(values: Series) -> float | None:
    """The probability of a change as large where nothing changes but by chance.

    Three kinds are tried, each at all its places, and the best is believed only as far as one of so many trials may be:
    a step, a straight line, and another level for a while.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), in the order of their occurrence.

    Returns
    -------
    float or None
        None for fewer than ten values.

    Examples
    --------
    >>> noise = np.random.default_rng(1).standard_normal(40)
    >>> change_p(noise) > 0.01, change_p(noise + 9 * (np.arange(40) > 20)) < 1e-6
    (True, True)
    """
    if values.size < LEAST_VALUES:
        return None
    # Of a long series the waves that could be taken for a change are long.
    group = -(-values.size // _TRIED_VALUES)
    series = values[values.size % group :].reshape(-1, group).mean(axis=1)
    centred = series - series.mean()
    if not centred.any():
        return 1.0
    n, ones = centred.size, np.ones(centred.size)
    time, (begin, end) = np.arange(n), while_at(series)
    places = n - 2 * LEAST_SIDE + 1
    shapes = [
        (places, time >= step_at(series)),
        (places * (places + 1) // 2, (time >= begin) & (time < end)),
        (1, np.linspace(-1, 1, n)),
    ]
    found = [trials * _fit_p(centred, np.stack([ones, shape], axis=1)) for trials, shape in shapes]
    return float(min(1.0, len(found) * min(found)))


def step_at(values: Series) -> int:
    """Where a series is best cut in two: the index of the first value after the step.

    The cut with most of the variance between its sides, which one sum over prefixes finds.
    """
    n = values.size
    places = np.arange(LEAST_SIDE, n - LEAST_SIDE + 1)
    before = np.cumsum(values - values.mean())[places - 1]
    between = before**2 / places + before**2 / (n - places)
    return int(places[np.argmax(between)])


def while_at(values: Series) -> tuple[int, int]:
    """The stretch that is most unlike the rest: the index of its first value, and of the first after it."""
    n = values.size
    sums = np.concatenate([[0.0], np.cumsum(values - values.mean())])
    begin, end = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    length = end - begin
    fit = (length >= LEAST_SIDE) & (n - length >= LEAST_SIDE)
    inside = np.where(fit, length, 1)
    between = np.where(fit, (sums[end] - sums[begin]) ** 2 * (1 / inside + 1 / (n - np.where(fit, length, 0))), -1.0)
    at = np.unravel_index(int(np.argmax(between)), between.shape)
    return int(at[0]), int(at[1])


def _fit_p(centred: Series, shape: Series) -> float:
    """The probability that a shape explains so much of a series, beyond its mean, by chance."""
    n, free = shape.shape
    left = centred - shape @ np.linalg.lstsq(shape, centred, rcond=None)[0]
    alike = _likeness(left, free)
    values, columns, level = (_freed(part, alike) for part in (centred, shape, np.ones((n, 1))))
    without, with_it = _left_over(values, level), _left_over(values, columns)
    if without <= 0:
        return 1.0
    # F's distribution in terms of the share of the variance that the shape leaves.
    return beta_cdf(min(1.0, with_it / without), (n - free - 1) / 2, (free - 1) / 2)


def _likeness(left: Series, free: int) -> float:
    """How much of each value stands in the next, rather too much than too little; ``free``: what was fitted before."""
    n, total = left.size, float(left @ left)
    if total <= 0:
        return 0.0
    found = float(left[1:] @ left[:-1]) / total
    # What was fitted has taken some of it away.
    found = min(found + free * (1 + 3 * max(found, 0.0)) / n, _LARGEST)
    return float(np.clip(found + _MARGIN * math.sqrt(max(1 - found * found, 0.05) / n), 0.0, _LARGEST))


def _freed(values: Series, alike: float) -> Series:
    """What is new in each value."""
    new = values.copy()
    new[1:] -= alike * values[:-1]
    new[0] *= math.sqrt(1 - alike * alike)
    return new


def _left_over(values: Series, shape: Series) -> float:
    """The sum of squares that a fit leaves."""
    left = values - shape @ np.linalg.lstsq(shape, values, rcond=None)[0]
    return float(left @ left)

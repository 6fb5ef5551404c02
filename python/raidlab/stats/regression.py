"""A straight line through points, with intervals of its slope and its intercept.

Points of one repeat share that repeat's luck: where there are repeats, each gets a line of its own.

Invariant: a line through two points has no interval, and points at one place have no line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.series import as_array
from raidlab.stats.special import t_quantile

METHOD = "least squares"


@dataclass(frozen=True)
class Line:
    """A straight line."""

    slope: Answer
    """In units of y a unit of x."""
    intercept: Answer
    """In units of y: where the line stands at x = 0."""
    residual: float | None
    """The standard deviation of the points around the line, in units of y; None for fewer than three points."""
    explained: float | None
    """The share of the variance of y that the line explains, 0 to 1 (R squared)."""


def line(x: Sequence[float], y: Sequence[float], confidence: float = CONFIDENCE) -> Line:
    """Fit a line to independent points.

    Parameters
    ----------
    x, y : sequence of float
        Shape (n,), each in a unit of its own; errors are in y, independent, and of one size.
    confidence : float
        Of each interval on its own, 0 to 1.

    Returns
    -------
    Line
        Its answers are refused with `TOO_FEW_SAMPLES` for fewer than three points or fewer than two places x.

    Raises
    ------
    ValueError
        When there are not as many x as y.

    References
    ----------
    N. R. Draper and H. Smith, Applied Regression Analysis, 3rd edition (1998), chapter 1; R. Jain, The Art of Computer
    Systems Performance Analysis (1991), chapter 14.

    Examples
    --------
    >>> found = line([1.0, 2.0, 3.0, 4.0], [3.1, 4.9, 7.1, 8.9])
    >>> round(found.slope.value, 2), round(found.slope.low, 2), round(found.slope.high, 2)
    (1.96, 1.72, 2.2)
    """
    at, values = as_array(x), as_array(y)
    if at.size != values.size:
        raise ValueError(f"a line needs as many x as y; there are {at.size} and {values.size}")
    n = at.size
    places = np.unique(at).size
    if places < 2:
        sentence = f"{n} points at {places} places x have no line."
        return Line(_none(sentence, n, confidence), _none(sentence, n, confidence), None, None)
    slope, intercept = _fit(at, values)
    if n < 3:
        sentence = f"The line through {n} points is exact, and says nothing of its error."
        return Line(_none(sentence, n, confidence, slope), _none(sentence, n, confidence, intercept), None, None)
    rest = values - intercept - slope * at
    residual = math.sqrt(float(rest @ rest) / (n - 2))
    centred = at - at.mean()
    spread = float(centred @ centred)
    quantile = t_quantile((1 + confidence) / 2, n - 2)
    slope_half = quantile * residual / math.sqrt(spread)
    intercept_half = quantile * residual * math.sqrt(1 / n + float(at.mean()) ** 2 / spread)
    total = float(((values - values.mean()) ** 2).sum())
    return Line(
        Answer(slope, slope - slope_half, slope + slope_half, confidence, METHOD, n),
        Answer(intercept, intercept - intercept_half, intercept + intercept_half, confidence, METHOD, n),
        residual,
        1 - float(rest @ rest) / total if total > 0 else None,
    )


def _fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean())) / float(centred @ centred)
    return slope, float(y.mean()) - slope * float(x.mean())


def _none(sentence: str, n: int, confidence: float, value: float | None = None) -> Answer:
    return Answer.refused(Reason.TOO_FEW_SAMPLES, sentence, method=METHOD, n=n, value=value, confidence=confidence)

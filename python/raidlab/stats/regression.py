"""A straight line through points, with intervals of its slope and its intercept.

Invariants:

- Points of one repeat share that repeat's luck. Where there are repeats, each gets its own line, and the intervals are
  those of the lines.
- A line through two points has no interval, and points at one place have no line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.interval import student
from raidlab.stats.series import as_array
from raidlab.stats.special import t_quantile

METHOD = "least squares"
METHOD_REPEATS = "least squares, a line a repeat"


@dataclass(frozen=True)
class Line:
    """A straight line.

    Attributes
    ----------
    slope : Answer
        In units of y a unit of x.
    intercept : Answer
        In units of y: where the line stands at x = 0.
    residual : float or None
        The standard deviation of the points around the line, in units of y; None for fewer than three points.
    explained : float or None
        The share of the variance of y that the line explains, 0 to 1 (R squared).
    """

    slope: Answer
    intercept: Answer
    residual: float | None
    explained: float | None


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


def line_through_repeats(
    x: Sequence[float], repeats: Sequence[Sequence[float]], confidence: float = CONFIDENCE
) -> Line:
    """Fit a line to each repeat, and take the mean of the lines.

    Parameters
    ----------
    x : sequence of float
        Shape (n,): the places, the same in every repeat.
    repeats : sequence of sequence of float
        Shape (r, n): y at these places, one row a repeat; points of a row may share that repeat's luck.
    confidence : float
        Of each interval on its own, 0 to 1.

    Returns
    -------
    Line
        Its answers are refused with `TOO_FEW_SAMPLES` for fewer than two repeats or two places x; ``n`` counts repeats.

    Raises
    ------
    ValueError
        When a repeat has not as many y as there are x.

    Examples
    --------
    >>> found = line_through_repeats([1.0, 2.0, 3.0], [[2.0, 4.0, 6.0], [2.5, 4.6, 6.7], [1.5, 3.4, 5.3]])
    >>> round(found.slope.value, 3), round(found.slope.low, 2), round(found.slope.high, 2)
    (2.0, 1.75, 2.25)
    """
    lines = [line(x, repeat, confidence) for repeat in repeats]
    slopes = [found.slope.value for found in lines if found.slope.value is not None]
    intercepts = [found.intercept.value for found in lines if found.intercept.value is not None]
    if not slopes:
        sentence = f"{len(lines)} repeats at {len(set(x))} places x have no line."
        return Line(_none(sentence, len(lines), confidence), _none(sentence, len(lines), confidence), None, None)
    residuals = [found.residual for found in lines if found.residual is not None]
    explained = [found.explained for found in lines if found.explained is not None]
    return Line(
        replace(student(slopes, confidence), method=METHOD_REPEATS),
        replace(student(intercepts, confidence), method=METHOD_REPEATS),
        math.sqrt(math.fsum(one**2 for one in residuals) / len(residuals)) if residuals else None,
        math.fsum(explained) / len(explained) if explained else None,
    )


def _fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean())) / float(centred @ centred)
    return slope, float(y.mean()) - slope * float(x.mean())


def _none(sentence: str, n: int, confidence: float, value: float | None = None) -> Answer:
    return Answer.refused(Reason.TOO_FEW_SAMPLES, sentence, method=METHOD, n=n, value=value, confidence=confidence)

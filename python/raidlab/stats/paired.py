"""Paired comparison of two things measured in the same repeats.

Invariants:

- Pairing is by repeat: what the machine did to both in one repeat cancels.
- The interval is that of the mean log ratio, so that "twice" and "half" are equally far from "the same".
- What is said of comparisons made together, verdict and interval, is corrected for their number in the same way.
- "No difference shown" is an answer. It is not "the same": what could have been found is said by `power`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.holm import holm, holm_levels
from raidlab.stats.interval import ratio_of, student
from raidlab.stats.power import PROMISED, detectable_by_error
from raidlab.stats.special import t_cdf, t_quantile

METHOD = "student, paired log ratios"
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Difference:
    """How one thing compares with another."""

    ratio: Answer
    """Of the first to the second, with its own interval (not corrected for other comparisons)."""
    p: float | None
    """The probability of such a ratio where there is no difference, corrected for the comparisons made together; None
    for fewer than two pairs."""
    comparisons: int = 1
    """How many were made together."""
    error: float | None = None
    degrees: float | None = None
    """The standard error of the mean log ratio and its degrees of freedom: what the power follows from."""
    level: float | None = None
    """The level at which it was judged among the comparisons made together; None for one made alone."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ratio's interval at the level it was judged at, which leaves out 1 just where a difference is shown.

        Examples
        --------
        >>> alone = compare([1.2, 1.3, 1.4], [1.0, 1.0, 1.0])
        >>> among = corrected({"it": alone, "another": compare([1.0, 1.1, 0.9], [1.0, 1.0, 1.0])})["it"]
        >>> [round(end, 2) for end in alone.interval], [round(end, 2) for end in among.interval]
        ([1.07, 1.57], [0.98, 1.71])
        """
        ratio = self.ratio
        if self.level is None or ratio.value is None or self.error is None or self.degrees is None:
            return ratio.interval
        half = t_quantile(1 - self.level / 2, self.degrees) * self.error
        return ratio.value * ratio_of(-half), ratio.value * ratio_of(half)

    @property
    def shown(self) -> bool | None:
        """Whether a difference is shown; None where nothing can be said."""
        return None if self.p is None else self.p < 1 - self.ratio.confidence

    def found_percent(self, promised: float = PROMISED) -> float | None:
        """The smallest true difference, in percent, that so many repeats, spread as they are, find so surely.

        Taken from the very repeats that are compared, it is as uncertain as their spread; None where nothing could be
        said.

        Examples
        --------
        >>> round(compare([1.0, 1.1, 0.9, 1.05, 0.95], [1.0, 1.0, 1.0, 1.0, 1.0]).found_percent(), 1)
        16.9
        """
        if self.error is None or self.degrees is None:
            return None
        confidence = self.ratio.confidence
        return detectable_by_error(100 * self.error, self.degrees, promised, confidence, comparisons=self.comparisons)

    def __str__(self) -> str:
        """The answer in words.

        Examples
        --------
        >>> print(compare([2.0, 2.2, 1.8], [1.0, 1.0, 1.0]))
        99 % more (55 to 156 % more)
        >>> print(compare([1.0, 1.1, 0.9], [1.0, 1.0, 1.0]))
        no difference shown (-22 to 28 %)
        """
        ratio = self.ratio
        if self.interval is None or ratio.value is None:
            return str(ratio)
        value, low, high = (100 * (number - 1) for number in (ratio.value, *self.interval))
        if not self.shown:
            return f"no difference shown ({low:z.0f} to {high:z.0f} %)"
        if value < 0:
            return f"{-value:.0f} % less ({-high:.0f} to {-low:.0f} % less)"
        return f"{value:.0f} % more ({low:.0f} to {high:.0f} % more)"


def compare(
    own: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE, *, independent: bool = False
) -> Difference:
    """Compare one thing with another, by the ratio of their values in the same repeats.

    Parameters
    ----------
    own, other : sequence of float
        One value a repeat, any unit, in the same order; pairs of which one is not above 0 are left out.
    confidence : float
        0 to 1.
    independent : bool
        True of repeats of which that is known, as for `student`.

    Returns
    -------
    Difference
        Its ratio is refused with `TOO_FEW_SAMPLES` for fewer than two pairs, with `NOT_INDEPENDENT` where ten or more
        follow one another too closely.

    References
    ----------
    R. Jain, The Art of Computer Systems Performance Analysis (1991), 13.4.1.
    """
    logs = [math.log(a / b) for a, b in zip(own, other, strict=False) if a > 0 and b > 0]
    answer = student(logs, confidence, symmetric=True, independent=independent)
    value = None if answer.value is None else math.exp(answer.value)
    if answer.low is None or answer.high is None or answer.value is None:
        return Difference(replace(answer, value=value, method=METHOD), None)
    ratio = replace(answer, value=value, low=ratio_of(answer.low), high=ratio_of(answer.high), method=METHOD)
    error = standard_error(logs)
    return Difference(ratio, p_of(answer.value, error, len(logs) - 1), error=error, degrees=len(logs) - 1)


def corrected(differences: Mapping[str, Difference]) -> dict[str, Difference]:
    """Comparisons made one by one, of one confidence, as made together: Holm's correction for their number."""
    found = dict(differences)
    known = [(name, difference.p) for name, difference in found.items() if difference.p is not None]
    if not known:
        return found
    singly = [p for _, p in known]
    levels = holm_levels(singly, 1 - found[known[0][0]].ratio.confidence)
    for (name, _), p, level in zip(known, holm(singly), levels, strict=True):
        found[name] = replace(found[name], p=p, comparisons=len(known), level=level)
    return found


def standard_error(logs: Sequence[float]) -> float:
    """The standard error of the mean of at least two values; exactly 0 where they are alike to rounding."""
    n = len(logs)
    mean = math.fsum(logs) / n
    error = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (n - 1) / n)
    return 0.0 if error <= _ROUNDING * max(1.0, abs(mean)) else error


def p_of(mean: float, error: float, degrees: float) -> float:
    """The probability of so large a mean log ratio where there is no difference."""
    # Ratios that are all alike to rounding: whatever difference there is, is certain.
    if error == 0:
        return 1.0 if abs(mean) <= _ROUNDING else 0.0
    return 2 * t_cdf(-abs(mean) / error, degrees)


def ratio_interval(own: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of ``own / other`` over paired repeats; None for fewer than two pairs.

    Examples
    --------
    >>> low, high = ratio_interval([2.0, 2.2, 1.8], [1.0, 1.0, 1.0])
    >>> round(low, 2), round(high, 2)
    (1.55, 2.56)
    """
    return compare(own, other).ratio.interval


def differs(own: Sequence[float], other: Sequence[float]) -> bool | None:
    """Whether the interval of the ratio leaves out 1; None for fewer than two pairs.

    Pairs that follow one another too closely for an interval show no difference.
    """
    ratio = compare(own, other).ratio
    if ratio.interval is None:
        return None if ratio.reason is Reason.TOO_FEW_SAMPLES else False
    return not ratio.interval[0] <= 1 <= ratio.interval[1]

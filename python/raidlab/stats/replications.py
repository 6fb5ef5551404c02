"""Independent repeats until the interval of their mean is narrower than asked.

Whoever looks after every repeat and stops as soon as the interval looks narrow stops too soon when the first repeats
happen to be alike. So an interval counts as wider than it is while repeats are few, by 1 + 1.5 / n, and that wider one
is given. With it the coverage of a nominal 95 % interval is at least 94 % for normal repeats, however wide their
spread (`tests/python/test_stats_sequential.py`).

Invariants:

- A pure state machine: values go in, a decision comes out; it knows no run and no clock.
- It decides after each value, and never goes back on a decision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.interval import student

METHOD = "student, until narrow"
LEAST_REPEATS = 5
# Below, the quantile alone is 12.7: no interval of use.
LEAST_VALUES = 3
_ALLOWANCE_REPEATS = 1.5


def mean_so_far(values: Sequence[float], confidence: float = CONFIDENCE) -> Answer:
    """The mean of repeats whose number was not fixed beforehand, with its interval.

    Parameters
    ----------
    values : sequence of float
        One a repeat, any unit.
    confidence : float
        0 to 1.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below three repeats.
    """
    n = len(values)
    plain = student(values, confidence)
    if plain.low is None or plain.high is None or plain.value is None or n < LEAST_VALUES:
        sentence = f"{n} repeats do not show how repeats differ; at least {LEAST_VALUES} are needed."
        return Answer.refused(
            Reason.TOO_FEW_SAMPLES, sentence, method=METHOD, n=n, value=plain.value, confidence=confidence
        )
    half = (plain.high - plain.low) / 2 * (1 + _ALLOWANCE_REPEATS / n)
    return Answer(plain.value, plain.value - half, plain.value + half, confidence, METHOD, n)


def half_width_percent(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % interval of `mean_so_far`, in percent of the mean; None below three values.

    Examples
    --------
    >>> round(half_width_percent([99.0, 100.0, 101.0]), 2)
    3.73
    """
    return mean_so_far(values).half_width_percent


class Decision(StrEnum):
    """What to do after a repeat."""

    CONTINUE = "continue"
    NARROW = "narrow"
    LIMIT = "limit"


@dataclass
class Replications:
    """Repeats of one thing, and whether more are needed.

    Parameters
    ----------
    half_width_percent : float
        The half width asked for, in percent of the mean; above 0.
    most : int
        The number of repeats after which it ends in any case, at least ``least``.
    least : int
        The number of repeats before which it does not end, at least 3.
    confidence : float
        0 to 1.

    References
    ----------
    Y. S. Chow and H. Robbins, On the asymptotic theory of fixed-width sequential confidence intervals for the mean,
    Annals of Mathematical Statistics 36 (1965) 457-462; A. M. Law, Simulation Modeling and Analysis, 5th edition
    (2015), 9.4.1 (relative precision, and that coverage suffers with few repeats).

    Examples
    --------
    >>> repeats = Replications(half_width_percent=2.5, most=30)
    >>> [str(repeats.feed(value)) for value in (100.0, 101.0, 99.5, 100.5, 99.0)]
    ['continue', 'continue', 'continue', 'continue', 'narrow']
    >>> round(repeats.answer.half_width_percent, 2)
    1.28
    """

    half_width_percent: float
    most: int
    least: int = LEAST_REPEATS
    confidence: float = CONFIDENCE
    _values: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not (self.half_width_percent > 0 and LEAST_VALUES <= self.least <= self.most):
            raise ValueError(
                f"half_width_percent must be above 0 and {LEAST_VALUES} <= least <= most; they are "
                f"{self.half_width_percent:g}, {self.least} and {self.most}"
            )

    def feed(self, value: float) -> Decision:
        """Take the value of one more repeat.

        Raises
        ------
        ValueError
            When it has already decided to stop.
        """
        if self.decision != Decision.CONTINUE:
            raise ValueError(f"the repeats have ended ({self.decision}) after {len(self._values)}")
        self._values.append(value)
        return self.decision

    @property
    def decision(self) -> Decision:
        """What to do now."""
        count = len(self._values)
        if count < self.least:
            return Decision.CONTINUE
        width = self.answer.half_width_percent
        if width is not None and width <= self.half_width_percent:
            return Decision.NARROW
        return Decision.LIMIT if count >= self.most else Decision.CONTINUE

    @property
    def answer(self) -> Answer:
        """The mean so far, with the interval that is compared with the one asked for."""
        return mean_so_far(self._values, self.confidence)

    @property
    def expected_more(self) -> int:
        """How many more repeats it will take if they go on to differ as they did; at most those that are left."""
        count = len(self._values)
        left = self.most - count
        width = self.answer.half_width_percent
        if self.decision != Decision.CONTINUE:
            return 0
        if width is None:
            return max(1, self.least - count)
        needed = math.ceil(count * (width / self.half_width_percent) ** 2)
        return max(1, min(left, max(needed, self.least) - count))

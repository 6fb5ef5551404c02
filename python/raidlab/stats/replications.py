"""How many repeats it takes until the interval of their mean is as narrow as asked.

Whoever looks after every repeat and stops as soon as the interval looks narrow stops too soon when the first repeats
happen to be alike, or when none of them met with what slows one in ten down: of five repeats, more than half do not.
So none is believed before there are 30 (one in ten slowed down is then seen 96 times of 100), and from there on the
interval follows the skewness that rare slow repeats give it (`student`). The coverage grid holds the rule to that
(`benches/coverage`).

Invariants:

- Pure functions of numbers; nothing here knows a run or a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.interval import MANY, METHOD, student

LEAST_REPEATS = MANY
# More repeats than this show that no number will do.
MOST_REPEATS = 60


def mean_so_far(values: Sequence[float], confidence: float = CONFIDENCE) -> Answer:
    """The mean of repeats whose number was not fixed beforehand, with its interval.

    Parameters
    ----------
    values : sequence of float
        One a repeat, any unit, in the order in which they were run.
    confidence : float
        0 to 1.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below 30 repeats; other reasons as for `student`.

    References
    ----------
    Y. S. Chow and H. Robbins, On the asymptotic theory of fixed-width sequential confidence intervals for the mean,
    Annals of Mathematical Statistics 36 (1965) 457-462; A. M. Law, Simulation Modeling and Analysis, 5th edition
    (2015), 9.4.1 (relative precision, and that coverage suffers with few repeats).
    """
    n = len(values)
    if n >= LEAST_REPEATS:
        return student(values, confidence)
    value = sum(values) / n if n else None
    sentence = f"{n} repeats may have missed what slows one in ten of them; at least {LEAST_REPEATS} are needed."
    return Answer.refused(Reason.TOO_FEW_SAMPLES, sentence, method=METHOD, n=n, value=value, confidence=confidence)


def wants_more(values: Sequence[float], half_width_percent: float) -> bool:
    """Whether one more repeat is needed for an interval that is at most so wide to either side, in percent of the mean.

    Examples
    --------
    >>> wants_more([100.0, 100.1, 99.9, 100.0], 2.5), wants_more([99.9, 100.1, 100.0] * 10, 2.5)
    (True, False)
    """
    width = mean_so_far(values).half_width_percent
    return len(values) < MOST_REPEATS and (width is None or width > half_width_percent)

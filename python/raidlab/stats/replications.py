"""How many repeats it takes until the interval of their mean is as narrow as asked.

Whoever looks after every repeat and stops as soon as the interval looks narrow stops too soon when the first repeats
happen to be alike, or when none of them met with what slows one in ten down: of five repeats, more than half do not.
So none is believed before there are 30 (one in ten slowed down is then seen 96 times of 100), and from there on the
interval follows the skewness that rare slow repeats give it (`student`). A lucky moment is not believed either: the
interval must have been narrow after each of the last five repeats. Of skewed repeats the lucky moments are those at
which both spread and mean are too low. The coverage grid holds the rule to that (`benches/coverage`).

Invariants:

- Pure functions of numbers; nothing here knows a run or a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.interval import MANY, METHOD, student

LEAST_REPEATS = MANY
# So many looks in a row must find the interval narrow. Five cost about 4 repeats; of 8,000 sequences that scatter
# exponentially they raise the coverage from 93.2 to 93.9 % at worst, where one in ten is slow from 93.6 to 95.3.
NARROW_LOOKS = 5
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

    No more are needed once it has been so narrow after each of the last five repeats, or there are 60 of them.

    Examples
    --------
    >>> wants_more([99.9, 100.1, 100.0] * 11, 2.5), wants_more([99.9, 100.1, 100.0] * 12, 2.5)
    (True, False)
    """
    n = len(values)
    if n >= MOST_REPEATS:
        return False
    looks = (mean_so_far(values[:count]).half_width_percent for count in range(n, n - NARROW_LOOKS, -1))
    return n < LEAST_REPEATS + NARROW_LOOKS - 1 or any(width is None or width > half_width_percent for width in looks)

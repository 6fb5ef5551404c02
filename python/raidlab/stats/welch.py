"""Comparison of two things that were not measured in pairs: other seeds, or another number of repeats.

Invariants:

- As in `paired`, on logarithms: the interval is that of the ratio of geometric means.
- The two may vary by different amounts; neither is taken for the other's.
- Where pairs can be made, `paired` finds smaller differences: what the repeats share cancels there, and here it does
  not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.interval import order_sentence, ratio_of
from raidlab.stats.paired import Difference, p_of, standard_error
from raidlab.stats.special import t_quantile

METHOD = "welch, log values"


def compare_unpaired(
    own: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE, *, independent: bool = False
) -> Difference:
    """Compare two things, each measured several times on its own.

    Parameters
    ----------
    own, other : sequence of float
        One value a repeat, any unit, as many as there are, in the order in which they were run; values that are not
        above 0 are left out.
    confidence : float
        0 to 1.
    independent : bool
        True of repeats of which that is known, as for `student`.

    Returns
    -------
    Difference
        Its ratio is refused with `TOO_FEW_SAMPLES` where either has fewer than two, with `NOT_INDEPENDENT` where ten or
        more of either follow one another too closely.

    References
    ----------
    B. L. Welch, The generalization of "Student's" problem when several different population variances are involved,
    Biometrika 34 (1947) 28-35; R. Jain, The Art of Computer Systems Performance Analysis (1991), 13.4.2.

    Examples
    --------
    >>> print(compare_unpaired([2.0, 2.2, 1.8, 2.1], [1.0, 1.05, 0.95]))
    102 % more (77 to 131 % more)
    """
    logs = [[math.log(value) for value in values if value > 0] for values in (own, other)]
    n = len(logs[0]) + len(logs[1])
    value = math.exp(_mean(logs[0]) - _mean(logs[1])) if all(logs) else None

    def no(reason: Reason, sentence: str) -> Difference:
        return Difference(
            Answer.refused(reason, sentence, method=METHOD, n=n, value=value, confidence=confidence), None
        )

    if min(len(part) for part in logs) < 2:
        sentence = f"{len(logs[0])} and {len(logs[1])} repeats do not show how repeats differ; at least 2 are needed."
        return no(Reason.TOO_FEW_SAMPLES, sentence)
    alike = None if independent else order_sentence(logs[0], beside=1) or order_sentence(logs[1], beside=1)
    if alike is not None:
        return no(Reason.NOT_INDEPENDENT, alike)
    difference = _mean(logs[0]) - _mean(logs[1])
    errors = [standard_error(part) for part in logs]
    error = math.hypot(*errors)
    degrees = _degrees(errors, [len(part) for part in logs])
    half = t_quantile((1 + confidence) / 2, degrees) * error
    ends = ratio_of(difference - half), ratio_of(difference + half)
    ratio = Answer(math.exp(difference), *ends, confidence, METHOD, n)
    return Difference(ratio, p_of(difference, error, degrees), error=error, degrees=degrees)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _degrees(errors: Sequence[float], counts: Sequence[int]) -> float:
    """Satterthwaite's degrees of freedom of the difference of two means."""
    total = sum(error**2 for error in errors) ** 2
    parts = sum(error**4 / (count - 1) for error, count in zip(errors, counts, strict=True))
    return total / parts if parts > 0 else float(sum(counts) - 2)

"""How often chance alone would reverse first and second: a new run, as long, with seeds of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from raidlab.stats.paired import standard_error
from raidlab.stats.special import t_cdf


def reversed_percent(logs: Sequence[float]) -> float | None:
    """The probability, in percent, that as many new repeats have the second ahead; None for fewer than two.

    ``logs`` are the paired log ratios of first to second. The difference of two means of n repeats has the variance of
    2/n of theirs, which is known from n - 1 degrees of freedom: a prediction, not a test.

    Examples
    --------
    >>> round(reversed_percent([0.10, 0.02, -0.03]), 1)
    30.3
    """
    if len(logs) < 2:
        return None
    mean, error = math.fsum(logs) / len(logs), standard_error(logs) * math.sqrt(2)
    if error == 0:
        return 0.0 if mean > 0 else 100.0 if mean < 0 else 50.0
    return 100 * t_cdf(-mean / error, len(logs) - 1)

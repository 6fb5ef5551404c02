"""Where the warm-up of a series ends.

Invariants:

- The cut is chosen by the values alone, before anything is estimated from what is kept.
- A cut beyond the half is no cut: the series was still settling when it ended, and needs to be longer.
- Nor is one after which the values still rise or fall: among noise a slow beginning has no end that the rule sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import Reason
from raidlab.stats.drift import drift
from raidlab.stats.series import as_array

_BATCH = 5
_LEAST_BATCHES = 10
# The rule looks at no cut that leaves fewer batches: a handful is often alike by chance.
_LEAST_KEPT = 5
# What is kept is asked for a trend in so many parts: long enough that neighbours among them are hardly alike.
_PARTS = 20
_TREND_P = 0.02


@dataclass(frozen=True)
class WarmUp:
    """The end of a warm-up, or the reason why there is none."""

    cut: int | None
    """How many values from the beginning belong to the warm-up; None where a reason is given."""
    n: int
    """How many values there are."""
    reason: Reason | None = None
    """`NOT_STEADY` where the rule would cut more than half, `WARM_UP_NOT_ENDED` where what it keeps still rises or
    falls (as independent values do once in a hundred times), `TOO_FEW_SAMPLES` below ten batches."""
    sentence: str = ""
    """What stands behind a reason, with figures; empty otherwise."""


def mser5(values: Sequence[float] | NDArray[np.float64], batch: int = _BATCH) -> WarmUp:
    """Cut the warm-up where the standard error of the mean of what is left is least.

    Parameters
    ----------
    values : sequence of float
        Shape (n,), any unit, in the order of their occurrence.
    batch : int
        The rule is applied to means of so many values: 5 in MSER-5. 1 suits values that are rates of a second.

    Returns
    -------
    WarmUp
        With ``cut`` a multiple of ``batch``.

    References
    ----------
    K. P. White, An effective truncation heuristic for bias reduction in simulation output, Simulation 69 (1997)
    323-334; K. P. White, M. J. Cobb and S. C. Spratt, A comparison of five steady-state truncation heuristics for
    simulation, Winter Simulation Conference 2000, 755-760 (batches of five; no cut beyond the half); H. B. Mann,
    Nonparametric tests against trend, Econometrica 13 (1945) 245-259.

    Examples
    --------
    >>> mser5([9.0] * 20 + [5.0, 5.1, 4.9, 5.0, 5.0] * 20).cut
    20
    >>> mser5([float(value) for value in range(200)]).reason
    <Reason.NOT_STEADY: 'not_steady'>
    """
    series = as_array(values)
    n = series.size
    count = n // batch
    if count < _LEAST_BATCHES:
        return WarmUp(None, n, Reason.TOO_FEW_SAMPLES, f"{n} values make {count} batches; {_LEAST_BATCHES} are needed.")
    means = series[: count * batch].reshape(count, batch).mean(axis=1)
    centre = means.mean()
    means = means - centre
    cut = _cut_of(means)
    if cut > count / 2:
        return WarmUp(
            None,
            n,
            Reason.NOT_STEADY,
            f"The rule would cut {cut * batch} of {n} values, more than half: they were still settling at the end.",
        )
    parts = [float(part.mean() + centre) for part in np.array_split(means[cut:], min(count - cut, _PARTS))]
    trend = drift([parts])
    if trend.p is not None and trend.p < _TREND_P:
        more = "rise" if (trend.agreement or 0.0) > 0 else "fall"
        return WarmUp(
            None,
            n,
            Reason.WARM_UP_NOT_ENDED,
            f"After the {cut * batch} of {n} values that the rule cuts, the rest still {more} from part to part "
            f"(p = {trend.p:.2g}).",
        )
    return WarmUp(cut * batch, n)


def _cut_of(means: NDArray[np.float64]) -> int:
    """After how many batches the standard error of the mean of the rest is least."""
    kept = np.arange(means.size, 0, -1)
    # Sums of what is left after each cut, from the end.
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(means[::-1] ** 2)[::-1]
    error = np.maximum(squares - sums**2 / kept, 0.0) / kept.astype(np.float64) ** 2
    return int(error[: means.size - _LEAST_KEPT + 1].argmin())

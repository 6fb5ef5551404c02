"""Whether rounds of a measurement have come to a steady state, by the rule for solid state disks.

Invariants:

- A round is one value: the mean of everything measured in it.
- The rule looks at five rounds in a row. Who stops at the first steady five has let the values choose the end, and
  measures afresh afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import Reason
from raidlab.stats.series import as_array

WINDOW = 5
MOST_ROUNDS = 25
MOST_RANGE_PERCENT = 20.0
MOST_SLOPE_PERCENT = 10.0


@dataclass(frozen=True)
class SteadyState:
    """The first five rounds that are steady; where none are, the last five and the reason."""

    first: int
    """The index of the first of the five rounds looked at, from 0."""
    average: float | None
    """Their mean; None where there are fewer than five rounds."""
    range_percent: float | None
    """How far they range, in percent of their mean."""
    slope_percent: float | None
    """How far the line fitted to them climbs or falls, in percent of their mean."""
    reason: Reason | None = None
    """`NOT_STEADY`, or `TOO_FEW_SAMPLES` below five rounds; None where they are steady."""
    sentence: str = ""
    """What stands behind a reason, with figures; empty otherwise."""

    @property
    def steady(self) -> bool:
        """Whether five rounds in a row are steady."""
        return self.reason is None


def steady_state(rounds: Sequence[float] | NDArray[np.float64]) -> SteadyState:
    """Find the first five rounds that are steady.

    Parameters
    ----------
    rounds : sequence of float
        Shape (n,), one mean a round, above 0, in their order.

    Returns
    -------
    SteadyState
        Steady where the largest and the smallest of five lie at most 20 % of their mean apart, and the ends of the
        straight line fitted to them at most 10 %.

    References
    ----------
    SNIA, Solid State Storage Performance Test Specification, version 2.0.2 (2020), definition of steady state.

    Examples
    --------
    >>> steady_state([900.0, 400.0, 210.0, 205.0, 200.0, 200.0, 195.0]).first
    2
    >>> steady_state([500.0, 450.0, 400.0, 350.0, 300.0]).reason
    <Reason.NOT_STEADY: 'not_steady'>
    """
    series = as_array(rounds)
    if series.size < WINDOW:
        sentence = f"{series.size} rounds; at least {WINDOW} are needed."
        return SteadyState(0, None, None, None, Reason.TOO_FEW_SAMPLES, sentence)
    if (series <= 0).any():
        raise ValueError(f"the mean of a round must be above 0; the smallest is {series.min():g}")
    windows = np.lib.stride_tricks.sliding_window_view(series, WINDOW)
    average = windows.mean(axis=1)
    ranges = 100 * (windows.max(axis=1) - windows.min(axis=1)) / average
    place = np.arange(WINDOW) - (WINDOW - 1) / 2
    slopes = 100 * np.abs(windows @ place / (place @ place) * (WINDOW - 1)) / average
    steady = (ranges <= MOST_RANGE_PERCENT) & (slopes <= MOST_SLOPE_PERCENT)
    at = int(steady.argmax()) if steady.any() else average.size - 1
    found = (at, float(average[at]), float(ranges[at]), float(slopes[at]))
    if steady.any():
        return SteadyState(*found)
    return SteadyState(
        *found,
        Reason.NOT_STEADY,
        f"No {WINDOW} of {series.size} rounds are steady; the last {WINDOW} range over {found[2]:.1f} % of their mean "
        f"(at most {MOST_RANGE_PERCENT:g}) and their line climbs or falls by {found[3]:.1f} % (at most "
        f"{MOST_SLOPE_PERCENT:g}).",
    )

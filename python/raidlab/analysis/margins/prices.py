"""How far a price may move before another is first: found by working everything out again, not by a formula.

Invariant: the factor is the nearest to 1 at which the leader changes, to one part in a million of its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from raidlab.stats.bisection import bisected

# A price is looked at up to so many times higher and lower.
FARTHEST = 10.0
_STEPS = 40
# Of the factor's logarithm.
_CLOSE = 1e-7


def turn_of(leader: Callable[[float], str | None], first: str, farthest: float) -> tuple[float, str] | None:
    """The factor nearest to 1 at which another is first; None up to the farthest, which may lie below 1."""
    before = 1.0
    for step in range(1, _STEPS + 1):
        factor = farthest ** (step / _STEPS)
        if leader(factor) in (first, None):
            before = factor
            continue
        ends = bisected(
            math.log(before),
            math.log(factor),
            lambda scaled: leader(math.exp(scaled)) == first,
            lambda low, high: abs(high - low) <= _CLOSE,
        )
        assert ends is not None, "there always is a leader, or none"
        turn = math.exp(ends[1])
        return turn, leader(turn) or ""
    return None

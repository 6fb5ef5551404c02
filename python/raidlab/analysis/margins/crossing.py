"""Where two curves cross, found in every repeat by itself.

Invariants:

- Curves are log ratios of first to second at a few places; between neighbours they are straight. The place is looked
  for on a scale of its own (a share as it is, all else by its logarithm).
- There is a crossing only where the second is shown to be ahead beyond it, and every repeat crosses before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from raidlab.stats import NOTHING_SHOWN_PERCENT, mean_interval, student

Curve = Sequence[tuple[float, Sequence[float]]]
"""Places in ascending order; at each the log ratio of first to second in every repeat."""
Place = tuple[float, float | None, float | None]
"""Where the curves cross, and the interval of that over repeats."""


def as_is(value: float) -> float:
    """The scale of what has a least and a most, such as a share."""
    return value


def crossings(curve: Curve, now: float, scale: Callable[[float], float] = math.log) -> list[Place]:
    """The crossing nearest to ``now`` on either side, if there is one."""
    repeats = {len(logs) for _, logs in curve}
    if len(repeats) != 1 or 0 in repeats:
        return []
    below = [point for point in reversed(curve) if point[0] <= now]
    above = [point for point in curve if point[0] >= now]
    return [found for side in (below, above) if (found := _first_crossing(side, scale)) is not None]


def _first_crossing(side: Curve, scale: Callable[[float], float]) -> Place | None:
    """The crossing on the way from where it is now outwards."""
    beyond = next((index for index, (_, logs) in enumerate(side) if is_behind(logs)), None)
    if not beyond:
        return None
    places = [scale(place) for place, _ in side[: beyond + 1]]
    found = []
    for repeat in zip(*(logs for _, logs in side[: beyond + 1]), strict=True):
        crossing = _last_sign_change(places, repeat)
        if crossing is None:
            return None
        found.append(crossing)
    return place_of(found, scale)


def place_of(found: Sequence[float], scale: Callable[[float], float]) -> Place:
    """The mean of where each repeat crosses, with its interval, off the scale."""
    back = math.exp if scale is math.log else as_is
    interval = mean_interval(found)
    ends = (None, None) if interval is None else (back(interval[0]), back(interval[1]))
    return back(math.fsum(found) / len(found)), *ends


def _last_sign_change(places: Sequence[float], logs: Sequence[float]) -> float | None:
    """Where a repeat's curve last turns from ahead to behind; None where it is never ahead, or ends ahead."""
    if logs[-1] > 0:
        return None
    for index in range(len(logs) - 2, -1, -1):
        if logs[index] > 0:
            share = logs[index] / (logs[index] - logs[index + 1])
            return places[index] + share * (places[index + 1] - places[index])
    return None


def is_behind(logs: Sequence[float]) -> bool:
    """Whether the first is shown to be behind: beyond the noise of repeats, or by enough where there are none."""
    answer = student(list(logs), symmetric=True)
    if answer.high is not None:
        return answer.high < 0
    return len(logs) == 1 and logs[0] < math.log1p(-NOTHING_SHOWN_PERCENT / 100)

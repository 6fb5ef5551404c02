"""Where something that can be simulated at any place of an axis turns: looked for outwards, bisected, with an interval.

Invariants:

- A value a repeat is above 0 while nothing has turned. It has turned where repeats show their mean to be below 0.
- The place is known to `TOLERANCE` of its axis, and its interval follows from where each repeat by itself would cross.
- Where nothing turns within the range, the answer is None, not its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from raidlab.stats.bisection import bisected
from raidlab.stats.interval import mean_interval, student

TOLERANCE = 0.02
# Around a crossing, in widths of the tolerance, curves are taken for straight.
_WINDOW = 2
Values = Callable[[float], list[float] | None]
"""At a place a value a repeat; None where there is none, and nothing beyond is looked at."""


@dataclass(frozen=True)
class Turning:
    """Where it turns, and the 95 % interval of that place."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Range:
    """A range to look in; places are worked with on a scale of their own."""

    now: float
    low: float
    high: float
    is_share: bool
    """Whether places are shares, and no lengths of which only ratios tell."""
    whole: int = 0
    """What places are multiples of; 0 where they are anything."""

    def scaled(self, place: float) -> float:
        """A place on the scale."""
        return place if self.is_share else math.log(place)

    def place(self, scaled: float) -> float:
        """The place of a point of the scale."""
        place = scaled if self.is_share else math.exp(scaled)
        return float(max(self.whole, self.whole * round(place / self.whole))) if self.whole else place

    @property
    def tolerance(self) -> float:
        """How near two points are that are close."""
        return TOLERANCE if self.is_share else math.log1p(TOLERANCE)

    def are_close(self, first: float, second: float) -> bool:
        """Whether two points are as near as they need to be, or have no place between them."""
        middle = self.place((first + second) / 2)
        return abs(first - second) <= self.tolerance or middle in (self.place(first), self.place(second))

    def outwards(self, *, upwards: bool) -> list[float]:
        """Points from now to an end of the range, ever farther apart."""
        start, last = self.scaled(self.now), self.scaled(self.high if upwards else self.low)
        step, found = 4 * self.tolerance if self.is_share else math.log(1.5), []
        distance = step
        while distance < abs(last - start):
            found.append(start + math.copysign(distance, last - start))
            distance += step
            step *= 1.5
        return [*found, last] if last != start else []

    def cut(self, turned: Turning, *, upwards: bool) -> Range:
        """The range as far as one side has not turned for sure."""
        if upwards:
            return replace(self, high=turned.at if turned.high is None else turned.high)
        return replace(self, low=turned.at if turned.low is None else turned.low)

    def within(self, place: float) -> float:
        """A place, or the nearest end."""
        return min(max(place, self.low), self.high)


def turning(range_: Range, values: Values, *, upwards: bool) -> Turning | None:
    """The nearest place on one side from which on it has turned; None where there is none, or it has already."""
    before, now = range_.scaled(range_.now), values(range_.now)
    if now is None or sum(now) <= 0:
        return None
    for scaled in range_.outwards(upwards=upwards):
        found = values(range_.place(scaled))
        if found is None:
            return None
        if _is_below(found):
            return _between(range_, values, before, scaled)
        before = scaled if sum(found) > 0 else before
    return None


def _between(range_: Range, values: Values, ahead: float, behind: float) -> Turning | None:
    def is_before(scaled: float) -> bool | None:
        found = values(range_.place(scaled))
        return None if found is None else sum(found) > 0

    ends = bisected(ahead, behind, is_before, range_.are_close)
    if ends is None:
        return None
    found = _by_repeat(range_, values, *ends)
    low, high = mean_interval(found) or (None, None)
    back = (lambda value: value) if range_.is_share else math.exp
    low, high = (None if end is None else range_.within(back(end)) for end in (low, high))
    return Turning(range_.within(back(math.fsum(found) / len(found))), low, high)


def _by_repeat(range_: Range, values: Values, ahead: float, behind: float) -> list[float]:
    """Where each repeat crosses: its own height above the common slope around the crossing."""
    middle, reach = (ahead + behind) / 2, _WINDOW * range_.tolerance
    least, most = range_.scaled(range_.low), range_.scaled(range_.high)
    ends = [min(max(middle + side * reach, least), most) for side in (-1, 1)]
    points = []
    for scaled in dict.fromkeys(range_.scaled(range_.place(one)) for one in (*ends, ahead, behind, middle)):
        found = values(range_.place(scaled))
        if found is not None:
            points.append((scaled, found))
    mean_x = math.fsum(x for x, _ in points) / len(points)
    means = [(x, math.fsum(found) / len(found)) for x, found in points]
    mean_y = math.fsum(y for _, y in means) / len(means)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in means)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in means) / spread if spread else 0.0
    # A slope that chance has turned round says nothing of where repeats would cross.
    if slope * (behind - ahead) >= 0:
        return [middle]
    heights = [math.fsum(each) / len(points) for each in zip(*(found for _, found in points), strict=True)]
    return [mean_x - height / slope for height in heights]


def _is_below(values: Sequence[float]) -> bool:
    """Whether the mean is shown to be below 0."""
    high = student(list(values), symmetric=True).high
    return high is not None and high < 0

"""What a metric is.

Invariant: a metric is a pure function of a point and of the point it is compared with; its kind names its column, with
the unit at the end and the statistic last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raidlab.analysis.metrics.point import Point


@dataclass(frozen=True)
class Metric:
    """A number worked out for a point.

    Attributes
    ----------
    kind : str
        Its name in tables.
    title, unit : str
        For headings and axes.
    meaning : str
        One sentence.
    compute : callable
        ``compute(point, reference)``; the reference is the same load on the array compared with, or None. Returns None
        where the metric does not apply.
    """

    kind: str
    title: str
    unit: str
    meaning: str
    compute: Callable[[Point, Point | None], float | None]

    def each(self, point: Point) -> list[float | None]:
        """The number for each repeat of a point alone.

        Parameters
        ----------
        point : Point
            An array under a load, with its repeats.
        """
        return [self.compute(repeat, None) for repeat in point.repeats]

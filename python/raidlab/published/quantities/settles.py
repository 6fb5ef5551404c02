"""From which amount on a rate is a sustained one: the least amount moved beyond which no rate is far from the last.

Short runs are those of workloads with a `count`; the rest of their name is the same.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from raidlab.analysis.metrics import Point
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source
from raidlab.published.quantities.metric import chosen, needs_at
from raidlab.study import Study
from raidlab.study.words import Name, Table


class Keys(Table):
    """What a measure of this kind says."""

    array: Name
    """Which array."""
    workloads: Name
    """Which workloads with a ``count``: a pattern, such as ``writes of 1 MB, *``."""
    within_percent: Annotated[float, Field(gt=0)] = 5
    """How near to the rate of the largest amount."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The amount in MB (10^6 bytes); None where the rates of the two largest amounts still differ by more, or are 0."""
    names = _names(keys, source.run.study)
    if not names:
        raise NotThereError(f"no workload with a count is called '{keys.workloads}'")
    found = [point for name in names if (point := chosen(source.points_of(keys.array, name), "heaviest")) is not None]
    points = sorted(found, key=_moved)
    last = points[-1].per_s("all_bytes") if len(points) > 1 else 0.0
    if not last:
        return None
    settled = len(points) - 1
    while settled > 0 and abs(points[settled - 1].per_s("all_bytes") / last - 1) * 100 <= keys.within_percent:
        settled -= 1
    return None if settled == len(points) - 1 else Reading(_moved(points[settled]) / 1e6)


def _moved(point: Point) -> float:
    return point.total("all_bytes") / max(len(point.rows), 1)


def _names(keys: Keys, study: Study) -> list[str]:
    return [one.name for one in study.workload if one.count is not None and fnmatchcase(one.name, keys.workloads)]


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """All short runs that match."""
    return {need for name in _names(keys, study) for need in needs_at({keys.array}, name, "heaviest", study) or ()}


KIND = Kind("settles", "the amount from which a rate is sustained", Keys, read, needs)

"""A metric over the size of requests: its log-log slope, or the size at which it has most of its greatest value.

The knee between two sizes lies on the line between them, over the logarithm of the size; rates seldom have one of their
own, so how much "most" is belongs to the question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from raidlab.analysis.metrics import Metric, Point
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source, metric_named, over_repeats
from raidlab.published.quantities.metric import chosen, needs_at
from raidlab.stats.regression import line
from raidlab.study import Study
from raidlab.study.words import Bytes, Name, Table
from raidlab.study.workload import Workload


class Keys(Table):
    """What a measure of this kind says."""

    of: Literal["slope", "knee"]
    """The exponent of the metric over the size, by least squares; or the size in bytes where it reaches its share."""
    metric: str
    """Which metric."""
    array: Name
    """Which array, at its heaviest load."""
    workloads: Name
    """Which workloads: a pattern, such as ``read *``; those with requests of one size count."""
    up_to: Bytes | None = None
    """The greatest size that counts."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Of the greatest value: where the knee is."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number, over all repeats and for each; None where fewer than two sizes were run."""
    metric = metric_named(keys.metric)
    listed = matching(keys.workloads, source.run.study)
    if not listed:
        raise NotThereError(f"no workload of one size is called '{keys.workloads}'")
    found = [(size, chosen(source.points_of(keys.array, workload.name), "heaviest")) for workload, size in listed]
    known = [(size, point) for size, point in found if point is not None and (keys.up_to is None or size <= keys.up_to)]
    sizes = [size for size, _ in known]
    return over_repeats([point for _, point in known], lambda points: _over(keys, metric, sizes, points))


def matching(pattern: str, study: Study) -> list[tuple[Workload, int]]:
    """The workloads of a pattern that have requests of one size and run as long as their target says, by size."""
    listed = [
        (workload, workload.size.bytes)
        for workload in study.workload
        if workload.size.kind == "fixed" and workload.count is None and fnmatchcase(workload.name, pattern)
    ]
    return sorted(listed, key=lambda pair: pair[1])


def _over(keys: Keys, metric: Metric, sizes: Sequence[int], points: Sequence[Point]) -> float | None:
    heights = [(size, metric.compute(point, None)) for size, point in zip(sizes, points, strict=True)]
    known = [(size, height) for size, height in heights if height]
    if len(known) < 2 or len(known) != len(points):
        return None
    if keys.of == "slope":
        return line([math.log(size) for size, _ in known], [math.log(height) for _, height in known]).slope.value
    wanted = keys.share * max(height for _, height in known)
    if known[0][1] >= wanted:
        return float(known[0][0])
    for (small, low), (large, high) in pairwise(known):
        if low < wanted <= high:
            part = (wanted - low) / (high - low)
            return float(small * (large / small) ** part)
    return None


def needs(keys: Keys, study: Study) -> set[Need] | None:
    """The heaviest load of each size."""
    return {
        need
        for workload, size in matching(keys.workloads, study)
        if keys.up_to is None or size <= keys.up_to
        for need in needs_at({keys.array}, workload.name, "heaviest", study) or ()
    }


KIND = Kind("sizes", "a metric over the size of requests", Keys, read, needs)

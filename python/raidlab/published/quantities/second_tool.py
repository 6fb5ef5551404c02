"""What a second tool measured beside raidlab (`live.second_tool`), and what raidlab did: a figure, or its spread."""

from __future__ import annotations

import statistics
from typing import Literal

from raidlab.published.quantities.kind import Kind, PointKeys, Reading, Source
from raidlab.study.words import Depth


class Keys(PointKeys):
    """What a measure of this kind says: a member of an array, under a workload."""

    tool: Literal["raidlab", "fio"]
    """Whose."""
    depth: Depth = 1
    """With how many jobs."""
    figure: Literal["throughput_mb_s", "iops", "processors_busy"] = "throughput_mb_s"
    """Which figure."""
    of: Literal["median", "spread"] = "median"
    """The middle run, or highest minus lowest in percent of it."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number; of the median also that of each pair of runs."""
    found = source.run.facts.get("second_tool", []) if source.target == "live" else []
    for one in found:
        if (one["array"], one["workload"], one["depth"]) != (keys.array, keys.workload, keys.depth):
            continue
        pairs = [] if "missing" in one else one["pairs"]
        values = [pair[keys.tool][keys.figure] for pair in pairs if keys.figure in pair[keys.tool]]
        if not values:
            return None
        middle = statistics.median(values)
        if keys.of == "spread":
            return Reading(100 * (max(values) - min(values)) / middle) if middle else None
        return Reading(middle, tuple(values))
    return None


KIND = Kind("second_tool", "what a second tool measured", Keys, read)

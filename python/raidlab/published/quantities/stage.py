"""A stage of an answered request: mean time in the host, the controllers, seeking and turning, transferring.

Times are in ms; ``accesses`` is a number.
"""

from __future__ import annotations

from typing import Literal

from raidlab.analysis.metrics import Point
from raidlab.published.quantities.kind import Kind, PointKeys, Reading, Source
from raidlab.published.quantities.metric import At, point_at, read_at


class Keys(PointKeys):
    """What a measure of this kind says."""

    stage: Literal["host_cpu", "accesses", "queue", "overhead", "disconnect", "transfer", "paired", "response"]
    """Which stage; ``response`` is the mean response time, the sum of all for a request of one access."""
    per: Literal["request", "access"] = "request"
    """Added up over all accesses of a request, or the mean of one access."""
    at: At = "idle"
    """As for a metric."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The mean of the stage."""

    def take(point: Point) -> float | None:
        if keys.stage == "response":
            found = point.weighted_mean("all_response_mean_ns")
        else:
            found = point.weighted_mean("stage_accesses" if keys.stage == "accesses" else f"stage_{keys.stage}_ns")
        accesses = point.weighted_mean("stage_accesses") if keys.per == "access" else 1.0
        if found is None or not accesses:
            return None
        return found / accesses / (1.0 if keys.stage == "accesses" else 1e6)

    return read_at(keys.array, keys.workload, keys.at, source, take)


KIND = Kind("stage", "mean time of a stage, in ms", Keys, read, point_at(lambda keys: keys.at), metric_key="stage")

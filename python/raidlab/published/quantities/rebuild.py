"""How a rebuild went that ran beside a load: how long it took, or how fast it was."""

from __future__ import annotations

from typing import Literal

from raidlab.analysis.metrics import Point
from raidlab.published.quantities.kind import Kind, PointKeys, Reading, Source
from raidlab.published.quantities.metric import At, chosen, point_at, reading_of


class Keys(PointKeys):
    """What a measure of this kind says."""

    of: Literal["seconds", "mb_s"] = "seconds"
    """From the moment at which the new member took the place until it was whole; or the bytes of it over that time."""
    at: At = "heaviest"
    """At which load, as of a metric."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The mean over repeats, and each; None where any was not over when its run was."""
    point = chosen(source.points_of(keys.array, keys.workload), keys.at)
    return None if point is None else reading_of(point, lambda one: _mean(keys, one, source))


def _mean(keys: Keys, point: Point, source: Source) -> float | None:
    rows = source.run.rebuilds
    places = rows.filter(rows["cell"].is_in(list(point.cells))).iter_rows(named=True)
    times = [(place, _seconds(place)) for place in places]
    known = [
        seconds if keys.of == "seconds" else place["member_bytes"] / 1e6 / seconds
        for place, seconds in times
        if seconds
    ]
    return sum(known) / len(known) if known and len(known) == len(times) else None


def _seconds(place: dict[str, int | None]) -> float | None:
    begun, whole = place["begun_ns"], place["whole_ns"]
    return None if begun is None or whole is None else (whole - begun) / 1e9


# It goes on whether or not clients ask for anything.
KIND = Kind("rebuild", "how a rebuild went", Keys, read, point_at(lambda keys: keys.at), is_of_requests=False)

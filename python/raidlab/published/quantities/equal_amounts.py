"""The rate of streams that move equal amounts, a volume each: all bytes over the mean of the times that they take.

How a script reports that starts one ``dd`` a device, each with the same count, and turns their times into one rate.
Where all volumes are alike it is the throughput; a slow one among fast ones weighs more in it than in bytes a second,
and less than in the time until the last has ended. Where no station was modelled it is the throughput.
"""

from __future__ import annotations

import re

import polars as pl

from raidlab.analysis.metrics import Point
from raidlab.published.quantities.kind import Kind, NotThereError, PointKeys, Reading, Source
from raidlab.published.quantities.metric import At, chosen, point_at, reading_of
from raidlab.study.words import Name


class Keys(PointKeys):
    """What a measure of this kind says."""

    station: Name
    """A station that each volume has one of; its visits tell the requests of the volumes apart."""
    at: At = "heaviest"
    """Where: as of a metric."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The rate in MB/s (10^6 bytes), over all repeats and for each."""
    point = chosen(source.points_of(keys.array, keys.workload), keys.at)
    return None if point is None else reading_of(point, lambda one: _rate_mb_s(keys, one))


def _rate_mb_s(keys: Keys, point: Point) -> float:
    own = re.compile(rf"{re.escape(keys.station)} \d+")
    stations = point.run.stations.filter(pl.col("cell").is_in(point.cells))
    visits = [int(count) for name, count in stations.select("station", "visits").iter_rows() if own.fullmatch(name)]
    if stations.is_empty():
        # On members of the user's nothing tells the volumes' requests apart.
        return point.per_s("all_bytes") / 1e6
    if not visits or 0 in visits:
        raise NotThereError(f"no station '{keys.station}' of each volume was visited")
    # Each volume's time for its share goes with 1 / its visits.
    mean_time = sum(sum(visits) / count for count in visits) / len(visits) ** 2
    return point.per_s("all_bytes") / mean_time / 1e6


KIND = Kind(
    "equal_amounts", "the rate of equal amounts", Keys, read, point_at(lambda keys: keys.at), metric="throughput_mb_s"
)

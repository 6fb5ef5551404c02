"""The rate of streams of a workload: of each on average, of all together; or how often their tapes stopped.

As the acceptance test of Jefferson Lab reports it (*Evaluating RAID in the Real World*, 1998): what processes that do
the same at once moved until the last of them had ended, the average of a process or the total. Of several repeats all
bytes count over all time, as in figures.
"""

from __future__ import annotations

from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from raidlab.published.quantities.kind import Kind, NotThereError, PointKeys, Reading, Source
from raidlab.published.quantities.metric import AtDepth, chosen, point_at
from raidlab.study.words import Name


class Keys(PointKeys):
    """What a measure of this kind says."""

    of: Literal["mean_mb_s", "total_mb_s", "stops"] = "mean_mb_s"
    """What the streams moved until the last of them ended, by a stream or together, or all stops of tapes."""
    stream: Name | None = None
    """Which of its streams; all when left out."""
    copies: Annotated[int, Field(ge=1)] = 1
    """How many of each run at once."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The figure of all repeats, and of each."""
    point = chosen(source.points_of(keys.array, keys.workload), AtDepth(depth=keys.copies))
    if point is None:
        return None
    each = [_of_cell(keys, source.run.streams.filter(pl.col("cell") == cell)) for cell in point.cells]
    value = sum(one for one, _ in each) / (sum(per for _, per in each) or 1)
    return Reading(value, tuple(one / (per or 1) for one, per in each))


def _of_cell(keys: Keys, streams: pl.DataFrame) -> tuple[float, float]:
    """What a repeat adds to a sum, and to what it is divided by: a time in microseconds, or a repeat."""
    if keys.stream is not None:
        streams = streams.filter(pl.col("stream") == keys.stream)
    if streams.is_empty():
        raise NotThereError(f"workload '{keys.workload}' has no stream '{keys.stream or ''}'")
    if keys.of == "stops":
        return float(sum(map(sum, streams.select("source_stops", "sink_stops").iter_rows()))), 1.0
    shared = streams.height if keys.of == "mean_mb_s" else 1
    return float(streams["bytes"].sum()) / shared, max(int(elapsed) for elapsed in streams["elapsed_ns"]) / 1000


KIND = Kind("stream_rate", "the rate of streams", Keys, read, point_at(lambda keys: AtDepth(depth=keys.copies)))

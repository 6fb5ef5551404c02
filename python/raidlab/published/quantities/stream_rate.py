"""The rate of streams of a workload: of each on average, of all together; or how often their tapes stopped.

As the acceptance test of Jefferson Lab reports it (*Evaluating RAID in the Real World*, 1998): the average of processes
that do the same at once, or the total.
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
    """The mean of the streams' own rates, their bytes until the last of them ended, or all stops of tapes."""
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
    return Reading(sum(each) / len(each), tuple(each))


def _of_cell(keys: Keys, streams: pl.DataFrame) -> float:
    if keys.stream is not None:
        streams = streams.filter(pl.col("stream") == keys.stream)
    if streams.is_empty():
        raise NotThereError(f"workload '{keys.workload}' has no stream '{keys.stream or ''}'")
    if keys.of == "stops":
        return float(sum(source + sink for source, sink in streams.select("source_stops", "sink_stops").iter_rows()))
    rates = [count / elapsed * 1000 for count, elapsed in streams.select("bytes", "elapsed_ns").iter_rows() if elapsed]
    if keys.of == "total_mb_s":
        longest = max(int(elapsed) for elapsed in streams["elapsed_ns"])
        return float(streams["bytes"].sum()) / longest * 1000 if longest else 0.0
    return sum(rates) / len(rates) if rates else 0.0


KIND = Kind("stream_rate", "the rate of streams", Keys, read, point_at(lambda keys: AtDepth(depth=keys.copies)))

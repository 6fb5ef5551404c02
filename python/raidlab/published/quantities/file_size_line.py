"""A straight line through the mean retrieval time of whole files over their size: positioning time and transfer rate.

Its height at size 0 is what positioning takes on average, the inverse of its slope the rate at which data comes: the
linear model of S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck?*, 1996, which zones and striping spoil.
"""

from __future__ import annotations

from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from raidlab.published.quantities.kind import Kind, PointKeys, Reading, Source
from raidlab.published.quantities.metric import AtDepth, chosen, point_at
from raidlab.stats.jackknife import pseudo_values
from raidlab.stats.regression import line


class Keys(PointKeys):
    """What a measure of this kind says; the workload is one of whole files whose sizes are a table."""

    of: Literal["positioning_ms", "rate_mb_s", "r_squared"]
    """Which number of the line; MB = 10^6 bytes."""
    readers: Annotated[int, Field(ge=1)] = 1
    """How many read."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The line through the mean of each size, over all repeats and as each adds to it."""
    point = chosen(source.points_of(keys.array, keys.workload), AtDepth(depth=keys.readers))
    if point is None:
        return None
    value = _line(keys, source.run.file_sizes, point.cells)
    if value is None:
        return None
    sizes, cells = source.run.file_sizes, point.cells
    return Reading.over(value, pseudo_values(len(cells), lambda kept: _line(keys, sizes, [cells[one] for one in kept])))


def _line(keys: Keys, sizes: pl.DataFrame, cells: list[int]) -> float | None:
    of_cells = sizes.filter(pl.col("cell").is_in(cells)).group_by("size_bytes").agg(pl.sum("files", "time_ns"))
    known = of_cells.filter(pl.col("files") > 0).sort("size_bytes")
    if known.height < 2:
        return None
    x = (known["size_bytes"] / 1e6).to_list()
    y = (known["time_ns"] / known["files"] / 1e6).to_list()
    found = line(x, y)
    if keys.of == "positioning_ms":
        return found.intercept.value
    if keys.of == "rate_mb_s":
        slope = found.slope.value
        return 1000 / slope if slope is not None and slope > 0 else None
    return found.explained


KIND = Kind(
    "file_size_line",
    "a line through retrieval time over the size of files",
    Keys,
    read,
    point_at(lambda keys: AtDepth(depth=keys.readers)),
)

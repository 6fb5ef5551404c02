"""What flash drives wrote for each byte that the array gave them."""

from __future__ import annotations

import polars as pl

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

_PROGRAMMED = ("flash_host_bytes", "flash_moved_bytes", "flash_padded_bytes")


def write_amplification(point: Point, reference: Point | None) -> float | None:
    """Bytes programmed over bytes written, all members together; None where no flash drive was written."""
    members = point.rows_of("members")
    # Most members are no flash drives, and to filter takes longer than to count.
    if members["flash_host_bytes"].null_count() == members.height:
        return None
    members = members.filter(pl.col("flash_host_bytes").is_not_null())
    written = float(members["write_bytes"].sum())
    programmed = float(sum(members[column].sum() for column in _PROGRAMMED))
    return programmed / written if written else None


METRIC = Metric(
    kind="write_amplification",
    title="write amplification",
    unit="1",
    meaning="bytes programmed into the flash of modelled drives for each byte written to them, all members together",
    compute=write_amplification,
)

"""Rows of tables, as whoever takes figures from them has them: what `damage.check_rows` has made sure of."""

from __future__ import annotations

from typing import TypedDict


class HoldRow(TypedDict):
    """A response-time target and repeat; no depth and no throughput where even one request at a time misses it."""

    target: str
    array: str
    group: str
    workload: str
    repeat: int
    percentile: float
    target_ns: int
    method: str
    depth: float | None
    throughput_bytes_per_s: float | None
    throughput_low_bytes_per_s: float | None
    throughput_high_bytes_per_s: float | None
    bound: str


# The counts of a row by column; None where they were not made.
Counts = dict[str, int | None]

"""The histograms of a run: found by what they are of, while no more of a long table is in memory than groups of rows.

Invariants:

- A table is gone through once, from its beginning to its end, to learn where each histogram lies.
- What is asked for is read from the same bytes again, and comes out as if the whole table were there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from raidlab.histogram import Histogram

Numbers = NDArray[np.uint64]
# Reads the part of a table that has a number.
ReadPart = Callable[[int], pl.DataFrame]

# Of a part of 262,144 rows that is 4 MiB. In order one would do, but arrays that are compared lie far apart.
_PARTS_AT_HAND = 40
# Who asks for one percentile of a point asks for others.
_MERGED_AT_HAND = 32
# What a histogram is of, besides its cell: "all" and "response" have no bit.
_BITS = (("operation", "read", 1), ("operation", "write", 2), ("time", "service", 4), ("time", "gap", 8))
_CODES = 16
_KEY = pl.col("cell").cast(pl.UInt64) * _CODES + pl.sum_horizontal(
    (pl.col(column) == word).cast(pl.UInt64) * bit for column, word, bit in _BITS
)


class Histograms:
    """The histograms in a table that comes in ``parts``, in their order; ``read`` gives a part again."""

    def __init__(self, parts: Iterable[pl.DataFrame], read: ReadPart) -> None:
        keys, places = [np.zeros(0, dtype=np.uint64)], [np.zeros((0, 3), dtype=np.int64)]
        for number, part in enumerate(parts):
            each = part.select(_KEY).to_series().to_numpy()
            begins = np.flatnonzero(np.diff(each, prepend=~each[:1]))
            ends = np.append(begins[1:], each.size)
            keys.append(each[begins])
            places.append(np.column_stack([np.full(begins.size, number), begins, ends]))
        whole = np.concatenate(keys)
        # The rows of one lie together, unless they go on in the next part, or somebody has put them otherwise.
        order = np.argsort(whole, kind="stable")
        self._keys, self._places = whole[order], np.concatenate(places)[order]
        self._columns = lru_cache(_PARTS_AT_HAND)(lambda number: _columns(read(number)))
        self.merged = lru_cache(_MERGED_AT_HAND)(self._merged)

    def _merged(self, cells: tuple[int, ...], operations: tuple[str, ...], time: str) -> Histogram:
        """The histograms of some cells and operations, added up."""
        codes = [_code(operation, time) for operation in operations]
        wanted = np.array([cell * _CODES + code for cell in cells for code in codes], dtype=np.uint64)
        begins, ends = (np.searchsorted(self._keys, wanted, side) for side in ("left", "right"))
        places = (place for begin, end in zip(begins, ends, strict=True) for place in self._places[begin:end])
        return Histogram.merged(self._at(*map(int, place)) for place in places)

    def _at(self, part: int, begin: int, end: int) -> Histogram:
        values, counts = self._columns(part)
        return Histogram(values[begin:end], counts[begin:end])


def _code(operation: str, time: str) -> int:
    of = {"operation": operation, "time": time}
    return sum(bit for column, word, bit in _BITS if of[column] == word)


def _columns(part: pl.DataFrame) -> tuple[Numbers, Numbers]:
    return part["value_ns"].to_numpy(), part["count"].to_numpy()

"""Histograms of times: merging and percentiles.

Invariants:

- A histogram is two columns of equal length: values in nanoseconds, ascending, and how often each occurred. The engine
  makes them; their resolution is that of its recorder.
- A percentile is taken from merged counts, never from averaged percentiles.
- A percentile is the smallest recorded value that at least that share of the requests did not exceed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

# As the engine gives it; as a file of records holds it.
Column = NDArray[np.uint64] | Sequence[int]


class Times(TypedDict):
    """A histogram: so many times of so many nanoseconds."""

    value_ns: Column
    count: Column


@dataclass(frozen=True)
class Histogram:
    """How often each time occurred.

    Attributes
    ----------
    value_ns, count : numpy.ndarray
        Ascending values and their counts.
    """

    value_ns: NDArray[np.uint64]
    count: NDArray[np.uint64]

    @classmethod
    def of(cls, columns: Times) -> Histogram:
        """Take the engine's columns, or those of a result file.

        Parameters
        ----------
        columns : mapping
            ``value_ns`` and ``count``, one entry a bucket, times ascending.
        """
        return cls(np.asarray(columns["value_ns"], dtype=np.uint64), np.asarray(columns["count"], dtype=np.uint64))

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """Add histograms up.

        Parameters
        ----------
        parts : iterable of Histogram
            Histograms of any buckets.
        """
        found = [part for part in parts if part.value_ns.size]
        if not found:
            return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64))
        values, inverse = np.unique(np.concatenate([part.value_ns for part in found]), return_inverse=True)
        counts = np.zeros(values.size, dtype=np.uint64)
        np.add.at(counts, inverse, np.concatenate([part.count for part in found]))
        return cls(values, counts)

    @property
    def total(self) -> int:
        """How many times were recorded."""
        return int(self.count.sum())

    def percentile_ns(self, percentile: float) -> int | None:
        """The time that ``percentile`` % of the requests did not exceed; None when nothing was recorded.

        Parameters
        ----------
        percentile : float
            From 0 to 100.

        Examples
        --------
        >>> Histogram.of({"value_ns": [10, 20], "count": [9, 1]}).percentile_ns(90)
        10
        """
        if self.total == 0:
            return None
        rank = max(1, math.ceil(self.total * percentile / 100 - 1e-9))
        return int(self.value_ns[int(np.searchsorted(np.cumsum(self.count), rank))])

    def rest_ns(self, percentile: float, span_ns: float) -> float:
        """What is left at a random moment of the time it falls into, if these times lie within a span; 0 outside.

        Parameters
        ----------
        percentile : float
            So many per cent of all moments have at most this left.
        span_ns : float
            At least the sum of all times.

        Examples
        --------
        >>> Histogram.of({"value_ns": [300], "count": [2]}).rest_ns(99, 3000)
        285.0
        """
        values, counts = self.value_ns.astype(np.float64), self.count.astype(np.float64)
        beyond = (1 - percentile / 100) * span_ns
        # With a time and all longer ones: how many there are, and how long they are together.
        many, long = np.cumsum(counts[::-1])[::-1], np.cumsum((values * counts)[::-1])[::-1]
        left = long - np.concatenate([[0.0], values[:-1]]) * many
        at = int(np.searchsorted(-left, -beyond, side="right")) - 1
        return max(0.0, float((long[at] - beyond) / many[at])) if at >= 0 and many[at] else 0.0

    @property
    def deviation_ns(self) -> float | None:
        """The standard deviation of all times, to the histogram's resolution; None of fewer than two.

        Examples
        --------
        >>> round(Histogram.of({"value_ns": [10, 20], "count": [2, 2]}).deviation_ns, 3)
        5.774
        """
        if self.total < 2:
            return None
        values, counts = self.value_ns.astype(np.float64), self.count.astype(np.float64)
        mean = float(values @ counts) / self.total
        return math.sqrt(float(((values - mean) ** 2) @ counts) / (self.total - 1))

    def share_within(self, limit_ns: int) -> float | None:
        """The share of requests that took at most ``limit_ns``; None when nothing was recorded.

        Parameters
        ----------
        limit_ns : int
            A response time in nanoseconds.
        """
        if self.total == 0:
            return None
        return float(self.count[self.value_ns <= limit_ns].sum()) / self.total

"""Histograms: merging adds up, percentiles are nearest rank, as NumPy's on the raw values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raidlab.histogram import Histogram

VALUES = st.lists(st.integers(1, 10**6), min_size=1, max_size=200)


def _of(values: list[int]) -> Histogram:
    found, counts = np.unique(np.array(values, dtype=np.uint64), return_counts=True)
    return Histogram.of({"value_ns": found, "count": counts})


@given(VALUES, st.sampled_from([1, 10, 50, 90, 99, 99.9, 100]))
def test_a_percentile_is_the_nearest_rank_of_the_raw_values(values: list[int], percentile: float) -> None:
    expected = np.percentile(values, percentile, method="inverted_cdf")
    assert _of(values).percentile_ns(percentile) == expected


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_merged_histograms_are_that_of_all_values(parts: list[list[int]]) -> None:
    merged, whole = Histogram.merged(_of(part) for part in parts), _of([value for part in parts for value in part])
    assert merged.value_ns.tolist() == whole.value_ns.tolist()
    assert merged.count.tolist() == whole.count.tolist()


def test_nothing_recorded_has_no_percentile() -> None:
    empty = Histogram.merged([])
    assert empty.percentile_ns(90) is None
    assert empty.share_within(10) is None


def test_the_share_within_a_limit_counts_the_limit() -> None:
    assert _of([10, 20, 30, 40]).share_within(20) == 0.5

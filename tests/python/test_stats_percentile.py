"""Percentiles: exact ranks of independent values and histograms, ranks of series."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.histogram import Histogram
from raidlab.stats import Reason
from raidlab.stats.percentile import (
    least_values,
    nearest_rank,
    percentile_of_histogram,
    percentile_of_values,
    rank_interval,
)
from raidlab.stats.series_percentile import percentile_of_series

PERCENTILES = st.sampled_from([10.0, 50.0, 90.0, 95.0, 99.0])


def at_most(n: int, share: float, k: int) -> float:
    """P(X <= k) of a binomial X, term by term."""
    return math.fsum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize(
    ("n", "percentile", "ranks"),
    # Le Boudec, Performance Evaluation of Computer and Communication Systems, table A.1 (the median); Conover's way
    # gives 8.5 % less at n = 5, where there are none.
    [(6, 50, (1, 6)), (10, 50, (2, 9)), (20, 50, (6, 15)), (50, 50, (18, 33)), (70, 50, (27, 44)), (100, 50, (40, 61))],
)
def test_the_ranks_of_published_tables(n: int, percentile: float, ranks: tuple[int, int]) -> None:
    assert rank_interval(n, percentile) == ranks


@pytest.mark.parametrize(("percentile", "least"), [(50, 6), (90, 36), (95, 72), (99, 368), (99.9, 3688)])
def test_the_least_number_of_values(percentile: float, least: int) -> None:
    # The first n with share^n <= 0.025.
    assert least_values(percentile) == least_values(100 - percentile) == least
    assert rank_interval(least - 1, percentile) is None
    assert rank_interval(least, percentile) is not None


@given(st.integers(1, 600), PERCENTILES, st.sampled_from([0.9, 0.95, 0.99]))
def test_ranks_hold_what_they_claim_and_no_rank_less_would(n: int, percentile: float, confidence: float) -> None:
    found, share, miss = rank_interval(n, percentile, confidence), percentile / 100, (1 - confidence) / 2
    if found is None:
        assert at_most(n, share, 0) > miss or at_most(n, share, n - 1) < 1 - miss
        return
    low, high = found
    assert at_most(n, share, low - 1) <= miss + 1e-12
    assert at_most(n, share, low) > miss - 1e-12
    assert at_most(n, share, high - 1) >= 1 - miss - 1e-12
    assert high == 1 or at_most(n, share, high - 2) < 1 - miss + 1e-12


@given(st.lists(st.integers(1, 500), min_size=1, max_size=99), PERCENTILES)
def test_values_and_their_histogram_agree(values: list[int], percentile: float) -> None:
    found, counts = np.unique(np.array(values, dtype=np.uint64), return_counts=True)
    histogram = Histogram.of({"value_ns": found, "count": counts})
    raw, binned = percentile_of_values(values, percentile), percentile_of_histogram(histogram, percentile)
    assert (raw.value, raw.interval, raw.reason) == (binned.value, binned.interval, binned.reason)
    assert raw.value == np.percentile(values, percentile, method="inverted_cdf")


@given(st.integers(100, 5000), st.integers(2, 20), PERCENTILES)
def test_values_that_come_in_groups_have_the_interval_of_the_groups(groups: int, size: int, percentile: float) -> None:
    once = Histogram.of({"value_ns": np.arange(1, groups + 1), "count": np.ones(groups)})
    many = Histogram.of({"value_ns": np.arange(1, groups + 1), "count": np.full(groups, size)})
    expected = percentile_of_histogram(once, percentile)
    found = percentile_of_histogram(many, percentile, effective_n=groups)
    assert found.interval == expected.interval
    assert found.reason == expected.reason


def test_a_histogram_of_a_billion_times() -> None:
    histogram = Histogram.of({"value_ns": np.arange(1000, 2000), "count": np.full(1000, 10**6)})
    answer = percentile_of_histogram(histogram, 99)
    assert answer.interval == (1989.0, 1990.0)
    assert percentile_of_histogram(Histogram.merged([]), 99).reason is Reason.TOO_FEW_SAMPLES


def test_correlated_values_are_not_taken_for_independent() -> None:
    waves = np.cumsum(np.random.default_rng(1).standard_normal(500))
    answer = percentile_of_values(waves, 50)
    assert answer.reason is Reason.NOT_INDEPENDENT and answer.interval is None


def test_the_series_of_independent_values_has_about_the_ranks_of_its_values() -> None:
    values = np.random.default_rng(2).standard_exponential(20_000)
    for percentile in (50.0, 90.0, 99.0):
        exact, series = percentile_of_values(values, percentile), percentile_of_series(values, percentile)
        assert series.value == exact.value
        assert 0.9 < (series.high - series.low) / (exact.high - exact.low) < 1.3


def test_a_series_does_not_mind_how_its_values_are_distributed() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(5000)
    values[1:] += 0.8 * values[:-1]
    plain, stretched = percentile_of_series(values, 90), percentile_of_series(np.exp(3 * values), 90)
    # Only the interpolation between two ranks differs.
    assert math.log(stretched.low) / 3 == pytest.approx(plain.low, abs=0.01)
    assert math.log(stretched.high) / 3 == pytest.approx(plain.high, abs=0.01)


def test_what_a_series_is_too_short_for() -> None:
    values = np.random.default_rng(4).standard_normal(900)
    assert percentile_of_series(values[:400], 50).reason is Reason.TOO_FEW_SAMPLES
    assert percentile_of_series(values, 50).reason is None
    refused = percentile_of_series(values, 99)
    assert refused.reason is Reason.TOO_FEW_SAMPLES and "1000 are needed" in refused.sentence
    assert percentile_of_series([], 50).value is None


def test_nearest_ranks() -> None:
    assert [nearest_rank(100, percentile) for percentile in (0.5, 50, 99, 99.5)] == [1, 50, 99, 100]

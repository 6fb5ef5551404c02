"""Distribution functions against published tables and against SciPy 1.17 (values copied, so that it is not needed)."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.stats.correlation import mid_ranks
from raidlab.stats.special import (
    beta_cdf,
    binomial_cdf,
    noncentral_t_cdf,
    normal_cdf,
    t_cdf,
    t_quantile,
)


@pytest.mark.parametrize(
    ("probability", "degrees", "quantile"),
    # Abramowitz and Stegun, table 26.10.
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 10, 2.228), (0.995, 5, 4.032), (0.95, 30, 1.697), (0.9, 4, 1.533)],
)
def test_quantiles_of_student(probability: float, degrees: int, quantile: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(quantile, abs=5e-4)
    assert t_quantile(1 - probability, degrees) == pytest.approx(-quantile, abs=5e-4)


def test_student_tends_to_the_normal_distribution() -> None:
    assert t_quantile(0.975, 1e7) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-6)
    assert normal_cdf(1.0) == pytest.approx(0.8413447460685429, rel=1e-14)


@given(st.floats(0.001, 0.999), st.integers(1, 500))
def test_the_quantile_inverts_the_distribution(probability: float, degrees: int) -> None:
    assert t_cdf(t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "a", "b", "expected"),
    [
        (0.2, 0.5, 0.5, 0.2951672353008665),
        (0.9, 20.0, 3.0, 0.6200409384119034),
        (0.01, 2.0, 300.0, 0.8038364237148571),
        (0.5, 1000.0, 1000.0, 0.5),
    ],
)
def test_the_incomplete_beta_function(value: float, a: float, b: float, expected: float) -> None:
    assert beta_cdf(value, a, b) == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.01, 0.99), st.floats(0.1, 50.0), st.floats(0.1, 50.0))
def test_the_incomplete_beta_function_mirrors(value: float, a: float, b: float) -> None:
    assert beta_cdf(value, a, b) + beta_cdf(1 - value, b, a) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "degrees", "shift", "expected"),
    [
        (2.0, 10, 1.0, 0.8076115625303352),
        (0.0, 3, 2.0, 0.022750131948179216),
        (4.0, 1, 3.0, 0.46677835877261187),
        (-1.0, 29, -2.0, 0.8413622673074893),
    ],
)
def test_the_noncentral_distribution(value: float, degrees: int, shift: float, expected: float) -> None:
    assert noncentral_t_cdf(value, degrees, shift) == pytest.approx(expected, abs=1e-8)


@given(st.integers(1, 400), st.floats(0.01, 0.99))
def test_the_binomial_distribution_is_the_sum_of_its_terms(n: int, probability: float) -> None:
    first, cdf = binomial_cdf(n, probability)
    terms = [math.comb(n, k) * probability**k * (1 - probability) ** (n - k) for k in range(n + 1)]
    expected = np.cumsum(terms)[first : first + cdf.size]
    assert np.abs(cdf - expected).max() < 1e-12


def test_the_binomial_distribution_of_a_hundred_million_trials() -> None:
    first, cdf = binomial_cdf(10**8, 0.99)
    # Its median is within one of its mean.
    assert abs(first + int(np.searchsorted(cdf, 0.5)) - 99_000_000) <= 1


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40))
def test_mid_ranks_are_means_over_equal_values(values: list[int]) -> None:
    ranks = mid_ranks(np.array(values, dtype=np.float64))
    expected = [sum(other < value for other in values) + (1 + values.count(value)) / 2 for value in values]
    assert ranks.tolist() == expected

"""Series: warm-up, steady state, correlation, tails, means and percentiles of values that depend on one another.

Seeded tests say how often a right method would fail them with another seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from raidlab.stats import Reason
from raidlab.stats.batch_means import batch_means
from raidlab.stats.block_bootstrap import block_length, bootstrap, bootstrap_mean
from raidlab.stats.correlation import alike_p, correlation_time, von_neumann_z
from raidlab.stats.skewness import skewed_ends, skewness
from raidlab.stats.special import t_quantile
from raidlab.stats.steady_state import steady_state
from raidlab.stats.tail import tail_index
from raidlab.stats.warm_up import mser5


def autoregressive(phi: float, n: int, seed: int) -> NDArray[np.float64]:
    """Standard normal values of which each is phi times the last, and noise."""
    values = np.random.default_rng(seed).standard_normal(n)
    values[1:] *= math.sqrt(1 - phi * phi)
    for i in range(1, n):
        values[i] += phi * values[i - 1]
    return values


# Warm-up


def by_definition(values: list[float]) -> int:
    """MSER-5 as White writes it down, cut by cut."""
    means = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) - 4, 5)]
    errors = []
    for cut in range(len(means) - 4):
        kept = means[cut:]
        centre = sum(kept) / len(kept)
        errors.append(sum((mean - centre) ** 2 for mean in kept) / len(kept) ** 2)
    return 5 * errors.index(min(errors))


@given(st.integers(0, 2**32), st.integers(10, 40), st.floats(0.0, 20.0))
def test_mser5_is_its_definition(seed: int, batches: int, transient: float) -> None:
    rng = np.random.default_rng(seed)
    values = (10 + rng.standard_normal(5 * batches) + transient * np.exp(-np.arange(5 * batches) / 20)).tolist()
    found, expected = mser5(values), by_definition(values)
    if expected > 5 * batches / 2:
        assert found.reason is Reason.NOT_STEADY
    else:
        assert found.cut == expected


def test_mser5_cuts_a_transient_and_what_is_left_covers_the_mean() -> None:
    # 200 series that begin 10 above their mean of 20 and settle within a few hundred values. Uncut nearly none covers;
    # cut, 190 are expected and fewer than 180 come once in 500 seeds.
    cut = uncut = 0
    for seed in range(200):
        series = 20 + autoregressive(0.5, 4000, seed) + 10 * np.exp(-np.arange(4000) / 100)
        warm = mser5(series)
        assert warm.cut is not None and 150 <= warm.cut <= 2000
        answer = batch_means(series[warm.cut :])
        cut += answer.low is not None and answer.low <= 20 <= answer.high
        whole = batch_means(series)
        uncut += whole.low is not None and whole.low <= 20 <= whole.high
    assert cut >= 180
    assert uncut < 100


def test_mser5_refuses_what_still_settles_and_what_is_short() -> None:
    assert mser5(np.exp(-np.arange(300) / 400)).reason is Reason.NOT_STEADY
    assert mser5([1.0] * 49).reason is Reason.TOO_FEW_SAMPLES
    assert mser5([3.0] * 50).cut == 0
    assert mser5([1.0] * 10, batch=1).cut == 0


# Steady state


def test_the_steady_state_by_hand() -> None:
    # Mean 100, range 20 of 20, slope (-2 x 90 - 95 + 105 + 2 x 110) / 10 = 5 a round, so 20 over the window: too steep.
    assert steady_state([90.0, 95.0, 100.0, 105.0, 110.0]).slope_percent == pytest.approx(20.0)
    # The same values in another order have a slope of 1 a round, 4 over the window.
    found = steady_state([100.0, 90.0, 110.0, 95.0, 105.0])
    assert found.steady and found.first == 0 and found.average == 100.0
    assert found.range_percent == pytest.approx(20.0)
    assert found.slope_percent == pytest.approx(100 * 4 * (-2 * 100 - 90 + 95 + 2 * 105) / 10 / 100)
    assert not steady_state([100.0, 89.0, 110.0, 95.0, 105.0]).steady


@given(st.lists(st.floats(1.0, 1e6), min_size=5, max_size=25), st.floats(0.01, 100.0))
def test_the_steady_state_has_no_unit(rounds: list[float], factor: float) -> None:
    plain = steady_state(rounds)
    if min(abs(plain.range_percent - 20), abs(plain.slope_percent - 10)) > 1e-6:
        scaled = steady_state([factor * value for value in rounds])
        assert (scaled.steady, scaled.first) == (plain.steady, plain.first)


def test_too_few_rounds_and_impossible_ones() -> None:
    assert steady_state([1.0] * 4).reason is Reason.TOO_FEW_SAMPLES
    with pytest.raises(ValueError, match="above 0"):
        steady_state([1.0, 1.0, 0.0, 1.0, 1.0])
    # A solid state disk that falls off its first, fast state is steady when it has arrived.
    assert steady_state([900.0, 880.0, 860.0, 400.0, 300.0, 250.0, 240.0, 238.0, 241.0, 239.0]).first == 5


# Correlation


@pytest.mark.parametrize(("phi", "n"), [(0.0, 20_000), (0.5, 20_000), (0.9, 50_000), (0.99, 200_000), (-0.5, 20_000)])
def test_the_correlation_time_of_an_autoregressive_series(phi: float, n: int) -> None:
    times = [correlation_time(autoregressive(phi, n, seed)) for seed in range(5)]
    assert np.median(times) == pytest.approx((1 + phi) / (1 - phi), rel=0.12)


def test_von_neumanns_ratio_by_hand() -> None:
    # 1 2 3 4 5 6: squared differences 5, squared deviations 17.5; (1 - 5 / 35) / sqrt(4 / 35).
    assert von_neumann_z(np.arange(1.0, 7.0)) == pytest.approx((1 - 5 / 35) / math.sqrt(4 / 35))
    assert von_neumann_z(np.ones(6)) == 0.0


def test_tests_of_correlation_keep_their_level() -> None:
    # 2,000 independent heavy-tailed series at 5 %: beyond 66 to 138 once in 4,000 seeds.
    rng = np.random.default_rng(21)
    alike = sum(alike_p(values) < 0.05 for values in rng.pareto(1.5, (2000, 200)))
    assert 66 <= alike <= 138
    means = rng.standard_normal((2000, 30))
    assert 66 <= sum(von_neumann_z(values) > 1.645 for values in means) <= 138


def test_equal_values_are_not_taken_for_alike_neighbours() -> None:
    # Times rounded to a clock's tick: 1,000 series of a few values; at 1 % more than 25 once in 30,000 seeds.
    rng = np.random.default_rng(22)
    assert sum(alike_p(values.astype(np.float64)) < 0.01 for values in rng.integers(0, 3, (1000, 300))) <= 25
    assert alike_p(np.ones(50)) == 1.0


# Tails


@pytest.mark.parametrize("index", [-0.3, 0.0, 0.2, 0.4])
def test_the_tail_index_of_generalised_pareto_values(index: float) -> None:
    share = 1 - (np.arange(1_000_000) + 0.5) / 1_000_000
    values = -np.log(share) if index == 0 else (share**-index - 1) / index
    assert tail_index(values).index == pytest.approx(index, abs=0.03)


def test_the_heavier_tail_counts_and_units_do_not() -> None:
    values = np.random.default_rng(23).pareto(1.5, 5000)
    assert tail_index(-values) == tail_index(values)
    assert tail_index(7 + 3 * values).index == pytest.approx(tail_index(values).index)
    assert tail_index(np.ones(100)).index == -math.inf


@pytest.mark.parametrize("n", [500, 3000, 30_000])
def test_a_pareto_tail_of_index_1_5_is_called_not_finite(n: int) -> None:
    rng = np.random.default_rng(24)
    answers = [batch_means(1 + rng.pareto(1.5, n)) for _ in range(100)]
    assert all(answer.reason is not None for answer in answers)
    assert sum(answer.reason is Reason.VARIANCE_NOT_FINITE for answer in answers) > 50
    assert batch_means(1 + rng.pareto(4.5, 100_000)).reason is None


# Means


def test_skewness_and_its_ends() -> None:
    symmetric = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    quantile = t_quantile(0.975, 4)
    assert skewness(symmetric) == pytest.approx(0.0, abs=1e-12)
    assert skewed_ends(symmetric, 0.95) == pytest.approx((quantile, quantile))
    long_above = np.array([1.0, 1.1, 1.2, 1.3, 9.0])
    below, above = skewed_ends(long_above, 0.95)
    assert below < quantile < above
    assert skewed_ends(-long_above, 0.95) == pytest.approx((above, below))


def test_successive_values_that_hardly_differ_are_too_few() -> None:
    # AR(0.99), a thousand values: worth five independent ones.
    for seed in range(50):
        series = autoregressive(0.99, 1000, seed)
        for answer in (batch_means(series), bootstrap_mean(series, seed), bootstrap(series, medians, seed)):
            assert answer.reason is Reason.TOO_FEW_SAMPLES
            assert answer.value is not None


def medians(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.median(rows, axis=1))


def test_intervals_of_the_mean_shift_and_scale_with_it() -> None:
    series = autoregressive(0.5, 3000, 3)
    for method in (batch_means, lambda values: bootstrap_mean(values, 1, resamples=199)):
        plain, moved = method(series), method(50 + 4 * series)
        assert moved.interval == pytest.approx((50 + 4 * plain.low, 50 + 4 * plain.high))
    assert batch_means(series, 0.99).low < batch_means(series, 0.95).low


def test_values_that_are_all_alike_have_an_interval_without_width() -> None:
    alike = [7.0] * 1000
    assert batch_means(alike).interval == (7.0, 7.0)
    assert bootstrap_mean(alike, 1).interval == (7.0, 7.0)
    with pytest.raises(ValueError, match="finite"):
        batch_means([math.nan] * 1000)


def test_rates_of_seconds_need_no_tail() -> None:
    rates = 100 + np.random.default_rng(4).standard_normal(200)
    assert batch_means(rates).reason is Reason.TOO_FEW_SAMPLES
    answer = batch_means(rates, judge_tail=False)
    assert answer.low is not None and answer.low < 100 < answer.high


def test_independent_values_are_known_about_as_well_as_student_would() -> None:
    values = np.random.default_rng(5).normal(10.0, 1.0, 10_000)
    plain = 2 * 1.96 * values.std() / 100
    answer = batch_means(values)
    assert plain < answer.high - answer.low < 1.15 * plain


# Bootstrap


def test_the_length_of_blocks_is_that_of_theory() -> None:
    # For AR(phi) the best length is (6 phi^2 / (1 - phi^2)^2)^(1/3) n^(1/3): 64.4 here.
    lengths = [block_length(autoregressive(0.5, 100_000, seed)) for seed in range(9)]
    assert np.median(lengths) == pytest.approx((6 * 0.25 / 0.75**2) ** (1 / 3) * 100_000 ** (1 / 3), rel=0.1)
    assert block_length(np.ones(100)) == 1.0


def test_the_bootstrap_repeats_by_seed() -> None:
    series = autoregressive(0.5, 2000, 6)
    assert bootstrap_mean(series, 1) == bootstrap_mean(series, 1)
    assert bootstrap_mean(series, 1).interval != bootstrap_mean(series, 2).interval
    first, again = (bootstrap(series, medians, 1, resamples=79) for _ in range(2))
    assert first == again and first.low < first.value < first.high


def test_the_bootstrap_of_a_mean_agrees_with_batch_means() -> None:
    series = autoregressive(0.8, 20_000, 7)
    by_batches, by_blocks = batch_means(series), bootstrap_mean(series, 7)
    ratio = (by_blocks.high - by_blocks.low) / (by_batches.high - by_batches.low)
    assert 0.7 < ratio < 1.4
    assert bootstrap([1.0, 2.0], medians, 1).reason is Reason.TOO_FEW_SAMPLES

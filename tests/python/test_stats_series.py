"""Series: warm-up, steady state, correlation, tails, skewness.

Seeded tests say how often a right method would fail them with another seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from raidlab.histogram import Histogram
from raidlab.stats import Reason, student
from raidlab.stats.correlation import alike_p
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
    elif found.reason is not Reason.WARM_UP_NOT_ENDED:
        assert found.cut == expected


def test_mser5_cuts_a_transient_and_what_is_left_has_none() -> None:
    # 200 series that begin 10 above their mean of 20 and settle within a few hundred values.
    kept = []
    for seed in range(200):
        series = 20 + autoregressive(0.5, 4000, seed) + 10 * np.exp(-np.arange(4000) / 100)
        warm = mser5(series)
        if warm.cut is None:
            assert warm.reason is Reason.WARM_UP_NOT_ENDED
            continue
        assert 150 <= warm.cut <= 2000
        kept.append(series[warm.cut :].mean())
    assert len(kept) > 185
    # Each has a standard error of 0.03; uncut they lie 0.25 above.
    assert np.mean(kept) == pytest.approx(20.0, abs=0.02)


def test_a_slow_beginning_hidden_in_noise_is_seen_by_its_trend() -> None:
    # It falls by a third of the noise within half the series, so that the mean of all lies ten standard errors off.
    rng = np.random.default_rng(9)
    slow = [mser5(rng.standard_normal(5000) + 0.33 * np.exp(-np.arange(5000) / 2500)) for _ in range(100)]
    assert sum(warm.reason is Reason.WARM_UP_NOT_ENDED for warm in slow) >= 95
    assert "still fall from part to part" in slow[0].sentence
    # Without one, 1 in 100 is expected; more than 7 of 200 once in 1,000 seeds.
    assert sum(mser5(rng.standard_normal(1000)).reason is not None for _ in range(200)) <= 9


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


def test_tests_of_correlation_keep_their_level() -> None:
    # 2,000 independent heavy-tailed series at 5 %: beyond 66 to 138 once in 4,000 seeds.
    rng = np.random.default_rng(21)
    alike = sum(alike_p(values) < 0.05 for values in rng.pareto(1.5, (2000, 200)))
    assert 66 <= alike <= 138


def test_equal_values_are_not_taken_for_alike_neighbours() -> None:
    # Times rounded to a clock's tick: 1,000 series of a few values; at 1 % more than 25 once in 30,000 seeds.
    rng = np.random.default_rng(22)
    assert sum(alike_p(values.astype(np.float64)) < 0.01 for values in rng.integers(0, 3, (1000, 300))) <= 25
    assert alike_p(np.ones(50)) == 1.0


# Tails


def times_of(values: NDArray[np.float64]) -> Histogram:
    found, counts = np.unique(np.round(1e6 * values), return_counts=True)
    return Histogram.of({"value_ns": found, "count": counts})


@pytest.mark.parametrize("index", [-0.3, 0.0, 0.2, 0.4])
def test_the_tail_index_of_generalised_pareto_values(index: float) -> None:
    share = 1 - (np.arange(1_000_000) + 0.5) / 1_000_000
    values = -np.log(share) if index == 0 else (share**-index - 1) / index
    assert tail_index(times_of(values)).index == pytest.approx(index, abs=0.03)


def test_the_tail_has_no_unit() -> None:
    values = 1 + np.random.default_rng(23).pareto(1.5, 5000)
    assert tail_index(times_of(7 + 3 * values)).index == pytest.approx(tail_index(times_of(values)).index, rel=1e-4)
    assert tail_index(times_of(np.ones(100))).index == -math.inf


@pytest.mark.parametrize("n", [500, 3000, 30_000])
def test_means_of_a_pareto_tail_of_exponent_1_5_have_no_interval(n: int) -> None:
    rng = np.random.default_rng(24)
    reasons = []
    for _ in range(100):
        rows = 1 + rng.pareto(1.5, (5, n // 5))
        reasons.append(student(rows.mean(axis=1).tolist(), tail=tail_index(times_of(rows))).reason)
    assert sum(reason is Reason.VARIANCE_NOT_FINITE for reason in reasons) > 80
    light = 1 + rng.pareto(4.5, 100_000)
    assert student([1.2, 1.3, 1.25], tail=tail_index(times_of(light))).reason is None


def test_a_few_slow_bursts_above_many_quick_requests_are_no_tail_without_end() -> None:
    # Means of repeats with bursts have a variance; that of the slow requests shows once the quick are left out.
    rng = np.random.default_rng(26)
    for slow in (200, 400):
        times = np.concatenate([rng.standard_exponential(30_000), 20 * rng.standard_exponential(slow)])
        assert tail_index(times_of(times)).has_variance
        endless = np.concatenate([rng.standard_exponential(30_000), 20 * (1 + rng.pareto(1.2, slow))])
        assert not tail_index(times_of(endless)).has_variance


def test_one_slow_request_among_thousands_alike_shows_no_variance() -> None:
    assert not tail_index(Histogram.of({"value_ns": [100, 5000], "count": [30_000, 1]})).has_variance


# Skewness


def test_skewness_and_its_ends() -> None:
    symmetric = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    quantile = t_quantile(0.975, 4)
    assert skewness(symmetric) == pytest.approx(0.0, abs=1e-12)
    assert skewed_ends(symmetric, 0.95) == pytest.approx((quantile, quantile))
    long_above = np.array([1.0, 1.1, 1.2, 1.3, 9.0])
    below, above = skewed_ends(long_above, 0.95)
    assert below < quantile < above
    assert skewed_ends(-long_above, 0.95) == pytest.approx((above, below))

"""What is decided while measuring: the order of runs, drift along it, and when repeats are enough."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.stats import Reason
from raidlab.stats.drift import drift
from raidlab.stats.order import interleaved
from raidlab.stats.replications import Decision, Replications

# Order


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 4)), max_size=40), st.integers(0, 2**31))
def test_an_order_keeps_every_item_and_finishes_each_repeat(items: list[tuple[str, int]], seed: int) -> None:
    order = interleaved(items, lambda item: item[1], lambda repeat: seed + repeat)
    assert sorted(order) == sorted(items)
    assert [repeat for _, repeat in order] == sorted(repeat for _, repeat in items)


def test_nobody_always_follows_the_same_other_one() -> None:
    items = [(name, repeat) for repeat in range(300) for name in "ABC"]
    order = interleaved(items, lambda item: item[1], lambda repeat: repeat)
    firsts = [order[i][0] for i in range(0, len(order), 3)]
    # 100 expected each; beyond 70 to 130 once in 2,000 seeds.
    assert all(70 <= firsts.count(name) <= 130 for name in "ABC")


# Drift


@pytest.mark.parametrize(
    ("values", "p"),
    # Hollander and Wolfe, Nonparametric Statistical Methods, table A.30: one-sided 0.042 for 4 values and a score of 6,
    # 0.0083 for 5 and 10, 0.0417 for 5 and 8, 0.136 for 6 and 7.
    [
        ([1, 2, 3, 4], 2 / 24),
        ([1, 2, 3, 4, 5], 2 / 120),
        ([1, 2, 3, 5, 4], 10 / 120),
        ([1, 5, 2, 4, 3, 6], 0.272),
    ],
)
def test_the_probabilities_of_published_tables(values: list[float], p: float) -> None:
    assert drift([values], least_p=1.0).p == pytest.approx(p, abs=5e-4)


def test_groups_are_added_up_exactly() -> None:
    # Two groups of three: all 36 orders.
    groups = [[1.0, 2.0, 3.0], [30.0, 10.0, 20.0]]

    def score(*orders: tuple[float, ...]) -> int:
        return sum((b > a) - (b < a) for order in orders for a, b in itertools.combinations(order, 2))

    scores = [score(a, b) for a in itertools.permutations(groups[0]) for b in itertools.permutations(groups[1])]
    found = drift(groups, least_p=1.0)
    seen = abs(score(tuple(groups[0]), tuple(groups[1])))
    assert found.p == pytest.approx(sum(abs(one) >= seen for one in scores) / 36)
    assert found.agreement == pytest.approx(seen / 6)


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=2, max_size=12, unique=True), min_size=1, max_size=6))
def test_units_and_levels_do_not_matter_to_drift(groups: list[list[int]]) -> None:
    other = [[3.0 * value + 7 * i for value in group] for i, group in enumerate(groups)]
    assert drift(groups, least_p=1.0).p == drift(other, least_p=1.0).p
    backwards = drift([group[::-1] for group in groups], least_p=1.0)
    assert backwards.p == pytest.approx(drift(groups, least_p=1.0).p)
    assert backwards.agreement == pytest.approx(-drift(groups, least_p=1.0).agreement)


@pytest.mark.parametrize(("tied", "repeats"), [(False, 5), (True, 5), (False, 150)])
def test_no_drift_is_seldom_found(tied: bool, repeats: int) -> None:
    # 100 runs of 4 configurations at 5 %: 5 expected, more than 14 once in 8,000 seeds.
    values = np.random.default_rng(31).normal(100.0, 5.0, (100, 4, repeats))
    values = values.round() if tied else values
    assert sum(drift(run.tolist()).p < 0.05 for run in values) <= 14


@pytest.mark.parametrize("repeats", [5, 120])
def test_a_drift_of_four_deviations_is_found(repeats: int) -> None:
    rng = np.random.default_rng(32)
    slope = 4 * np.arange(repeats) / (repeats - 1) * np.array([[1.0], [50.0]])
    found = [
        drift((slope + np.array([[100.0], [5000.0]]) + rng.normal(0, [[1.0], [50.0]], (2, repeats))).tolist())
        for _ in range(50)
    ]
    assert sum(one.p < 0.05 for one in found) >= 30
    assert np.median([one.percent_a_step for one in found]) == pytest.approx(4 / (repeats - 1), rel=0.3)


def test_too_few_repeats_to_see_a_drift() -> None:
    assert drift([[1.0, 2.0, 3.0]]).reason is Reason.TOO_FEW_SAMPLES
    assert drift([]).reason is Reason.TOO_FEW_SAMPLES
    assert drift([[1.0, 2.0, 3.0]] * 2).reason is Reason.TOO_FEW_SAMPLES
    assert drift([[1.0, 2.0, 3.0]] * 3).p == pytest.approx(2 / 216)
    assert drift([[1.0, 1.0, 1.0, 1.0, 1.0]]).p == 1.0


# Repeats until narrow


def until_narrow(values: np.ndarray, percent: float, least: int = 5) -> Replications:
    repeats = Replications(half_width_percent=percent, most=len(values), least=least)
    for value in values:
        if repeats.feed(float(value)) != Decision.CONTINUE:
            break
    return repeats


@pytest.mark.parametrize("least", [3, 5])
@pytest.mark.parametrize("spread_percent", [1.0, 2.5, 5.0, 10.0])
def test_repeating_until_narrow_keeps_its_coverage(spread_percent: float, least: int) -> None:
    # 600 sequences of normal repeats; 94 % or more expected, below 545 once in 500 seeds.
    rng = np.random.default_rng(33)
    hits = narrow = 0
    for _ in range(600):
        repeats = until_narrow(rng.normal(100.0, spread_percent, 150), 2.5, least)
        hits += repeats.answer.low <= 100.0 <= repeats.answer.high
        narrow += repeats.decision == Decision.NARROW
        if repeats.decision == Decision.NARROW:
            assert repeats.answer.half_width_percent <= 2.5
    assert hits >= 545
    assert narrow > 590


def test_repeats_end_at_their_limit_and_say_so() -> None:
    repeats = Replications(half_width_percent=0.001, most=6)
    decisions = [repeats.feed(value) for value in (1.0, 2.0, 3.0, 2.0, 1.0, 3.0)]
    assert decisions == [Decision.CONTINUE] * 5 + [Decision.LIMIT]
    assert repeats.answer.n == 6 and repeats.answer.interval is not None
    assert repeats.expected_more == 0
    with pytest.raises(ValueError, match="have ended"):
        repeats.feed(1.0)


def test_repeats_that_are_all_alike_are_narrow_at_once() -> None:
    repeats = Replications(half_width_percent=1.0, most=10, least=3)
    assert [repeats.feed(5.0) for _ in range(3)][-1] is Decision.NARROW


def test_how_many_more_are_expected() -> None:
    repeats = Replications(half_width_percent=1.0, most=1000)
    assert repeats.expected_more == 5
    for value in (95.0, 105.0, 100.0, 98.0, 102.0):
        repeats.feed(value)
    # Deviation 3.8: about (1.96 x 3.8)^2 = 56 in all; the quantile of few repeats expects more.
    assert 50 < repeats.expected_more < 300


@pytest.mark.parametrize(("percent", "least", "most"), [(0.0, 5, 9), (1.0, 2, 9), (1.0, 5, 4)])
def test_impossible_rules(percent: float, least: int, most: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        Replications(half_width_percent=percent, most=most, least=least)

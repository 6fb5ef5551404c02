"""What is decided while measuring: the order of runs, drift along it, and when repeats are enough."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.stats import LEAST_REPEATS, MOST_REPEATS, Answer, Reason, mean_so_far, wants_more
from raidlab.stats.drift import drift
from raidlab.stats.order import interleaved

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


def until_narrow(values: np.ndarray, percent: float) -> Answer:
    count = next(n for n in range(1, len(values) + 1) if not wants_more(values[:n].tolist(), percent))
    return mean_so_far(values[:count].tolist())


@pytest.mark.parametrize("spread_percent", [1.0, 5.0])
def test_repeating_until_narrow_keeps_its_coverage(spread_percent: float) -> None:
    # 300 sequences of normal repeats; 285 expected, below 269 once in 10,000 seeds.
    rng = np.random.default_rng(33)
    answers = [until_narrow(rng.normal(100.0, spread_percent, MOST_REPEATS), 2.5) for _ in range(300)]
    given = [answer for answer in answers if answer.interval is not None]
    assert len(given) > 270
    assert sum(answer.low <= 100.0 <= answer.high for answer in given) >= 0.9 * len(given)
    assert all(answer.half_width_percent <= 2.5 for answer in given if answer.n < MOST_REPEATS)


def test_repeats_of_which_one_in_ten_is_slow_are_not_narrow_before_one_was_seen() -> None:
    # Five repeats miss what slows one in ten by 30 % six times of ten, and would be narrow around 100 instead of 97.
    rng = np.random.default_rng(34)
    answers = [
        until_narrow(rng.normal(100.0, 0.5, MOST_REPEATS) * np.where(rng.random(MOST_REPEATS) < 0.1, 0.7, 1.0), 2.5)
        for _ in range(300)
    ]
    given = [answer for answer in answers if answer.interval is not None]
    assert len(given) > 225
    assert sum(answer.low <= 97.0 <= answer.high for answer in given) >= 0.88 * len(given)


def test_repeats_that_follow_one_another_are_refused() -> None:
    rng = np.random.default_rng(35)
    refused = 0
    for _ in range(200):
        values = rng.standard_normal(MOST_REPEATS)
        for i in range(1, MOST_REPEATS):
            values[i] = 0.7 * values[i - 1] + 0.71 * values[i]
        refused += until_narrow(100 + 2 * values, 2.5).reason is Reason.NOT_INDEPENDENT
    assert refused > 180


def test_repeats_end_at_their_limit_and_are_not_believed_before_the_least() -> None:
    values = [1.0, 2.0, 3.0] * 20
    assert wants_more(values[: MOST_REPEATS - 1], 0.001) and not wants_more(values[:MOST_REPEATS], 0.001)
    alike = [5.0] * LEAST_REPEATS
    assert mean_so_far(alike).interval is not None
    assert mean_so_far(alike[:-1]).reason is Reason.TOO_FEW_SAMPLES and mean_so_far([]).value is None


def test_repeats_go_on_until_the_interval_was_narrow_five_times_in_a_row() -> None:
    values = [4.99, 5.0, 5.01] * 11 + [5.0]
    assert wants_more(values[:33], 1.0) and not wants_more(values, 1.0)
    # One that is wide between them begins the count again.
    wide_once = [4.99, 5.0, 5.01] * 10 + [6.5, 5.0, 5.0, 5.0]
    widths = [mean_so_far(wide_once[:n]).half_width_percent or 0.0 for n in range(30, 35)]
    assert wants_more(wide_once, (widths[1] + widths[2]) / 2) and not wants_more(wide_once, widths[1])

"""Expressions of quantities: what they may say, and what they refuse."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.study.expression import about, read

NUMBERS = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_arithmetic_is_that_of_python(a: float, b: float, c: float) -> None:
    value = read("a + b * c - a / 8 + max(a, b) ** 2").value({"a": a, "b": b, "c": c})
    assert math.isclose(value, a + b * c - a / 8 + max(a, b) ** 2, rel_tol=1e-12, abs_tol=1e-6)
    assert read("a < b or not (b >= c)").value({"a": a, "b": b, "c": c}) == (a < b or not b >= c)


def test_names_are_those_it_needs_and_only_the_taken_branch_is_asked() -> None:
    expression = read("first if kind == 'x' else second")
    assert expression.names == {"first", "second", "kind"}
    assert expression.value({"kind": "x", "first": 1.0}) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.b",
        "a[0]",
        "[1]",
        "lambda: 1",
        "f(a)",
        "max(a, key=b)",
        "a if b",
        "",
        "1 +",
        "True",
        "a := 1",
    ],
)
def test_what_is_no_expression_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression|understood"):
        read(text)


def test_a_value_is_a_finite_number() -> None:
    for text in ("1 / 0", "log(0)", "'text'", "2.0 ** 5000"):
        with pytest.raises(ValueError, match="no value"):
            read(text).value({})


def test_what_stands_for_several_is_the_furthest() -> None:
    assert read("furthest(2, 1.9, 2.3, 1.8)").value({}) == 2.3


def test_about_counts_against_the_larger() -> None:
    assert about(95, 100) and about(100, 95) and not about(94, 100)
    assert about(80, 100, 20) and not about(79, 100, 20)

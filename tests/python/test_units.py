"""Sizes and times: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.study.units import format_bytes, format_time_ns, parse_bytes, parse_time_ns


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("64KiB", 65536),
        ("64k", 65536),
        ("1.5MiB", 1572864),
        ("2MB", 2_000_000),
        (512, 512),
        ("4_096", 4096),
        ("1 GiB", 1 << 30),
    ],
)
def test_sizes_are_read(text: object, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["-8KiB", "0", 0, -1, "KiB", "8 parsecs", "0.3B", True, 1.5, None, "", "1e3"])
def test_what_is_no_size_is_refused_with_a_sentence(text: object) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "ns"), [("200ms", 200_000_000), ("1.5s", 1_500_000_000), ("250us", 250_000), ("2min", 120 * 10**9)]
)
def test_times_are_read(text: str, ns: int) -> None:
    assert parse_time_ns(text) == ns


@pytest.mark.parametrize("text", [200, "200", "-1ms", "0s", "0.1ns", "3 weeks", None])
def test_what_is_no_time_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_time_ns(text)


@given(st.integers(1, 1 << 20), st.sampled_from(["B", "KiB", "MiB", "GiB", "kB", "MB", "GB"]))
def test_whole_numbers_of_a_unit_are_exact(number: int, unit: str) -> None:
    scale = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "MB": 10**6, "GB": 10**9}[unit]
    assert parse_bytes(f"{number}{unit}") == number * scale


@given(st.integers(1, 1 << 40).map(lambda count: count * 1024))
def test_a_written_size_is_true_within_its_rounding(count: int) -> None:
    number, unit = format_bytes(count).split()
    assert float(number) * parse_bytes(f"1{unit}") == pytest.approx(count, rel=0.001)


def test_times_are_written_with_a_fitting_unit() -> None:
    assert [format_time_ns(ns) for ns in (200_000_000, 1234, 17, 2.5e9)] == ["200 ms", "1.23 us", "17 ns", "2.5 s"]

"""Sizes and times as people write them in study files: ``"64KiB"``, ``"1.5MB"``, ``"200ms"``.

Invariants:

- Inside raidlab a size is a whole number of bytes and a time a whole number of nanoseconds; text stays at the edges.
- KiB to PiB (and K to P) are powers of 1024; kB to PB are powers of 1000. A bare number of bytes is allowed, but not
  where whole disks are meant; a bare time is not: nobody can see whether 200 means milliseconds.
- No size is above 1 EiB and no time above a year: sums of them stay within 64 bits.
- A size that is not a whole number of bytes, or a time that is not a whole number of nanoseconds, is refused rather
  than rounded.
"""

from __future__ import annotations

import re
from fractions import Fraction

_BYTE_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    # A lone letter is binary, as fio and mdadm read it.
    _BYTE_UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}
_TIME_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?\d+(?:[_\d]*\d)?(?:\.\d+)?)\s*([A-Za-zµ]*)\s*")

MOST_BYTES = 1024**6
MOST_TIME_NS = 366 * 24 * 3600 * 10**9
_LONGEST_TEXT = 40

BYTES_ACCEPTED = "a size above 0 such as 4096, '8KiB', '1.5MiB' or '2MB'"
DISK_SIZE_ACCEPTED = "a size above 0 with its unit, such as '500GB' or '60TB'"
RATE_ACCEPTED = "a rate above 0 such as '300/s' or '18000/min'"
TIME_ACCEPTED = "a time above 0 with its unit, such as '250us', '200ms' or '1.5s'"
MOMENT_ACCEPTED = "a time with its unit, such as '0s', '200ms' or '1.5s'"


def parse_bytes(value: object) -> int:
    """Read a size, such as ``"64KiB"``, ``"1.5MB"`` or ``4096``: bytes, above zero; a `ValueError` says what is wrong.

    Examples
    --------
    >>> parse_bytes("64KiB"), parse_bytes("1.5MB")
    (65536, 1500000)
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("is not a size")
    exact = Fraction(value) if isinstance(value, int) else _scaled(value, _BYTE_UNITS, "size")
    if exact <= 0:
        raise ValueError("a size must be above 0")
    if exact > MOST_BYTES:
        raise ValueError("a size must be at most 1 EiB")
    if exact.denominator != 1:
        raise ValueError("is not a whole number of bytes")
    return int(exact)


def parse_disk_size(value: object) -> int:
    """Read the size of a disk or an array: as `parse_bytes`, but with a unit, as nobody counts disks in bytes.

    Examples
    --------
    >>> parse_disk_size("60TB")
    60000000000000
    """
    is_bare = isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"\s*[\d_.]+\s*", value))
    if is_bare and not isinstance(value, bool):
        raise ValueError("is a size without a unit")
    return parse_bytes(value)


def parse_time_ns(value: object) -> int:
    """Read a time, a number and its unit: nanoseconds, above zero; a `ValueError` says what is wrong.

    Examples
    --------
    >>> parse_time_ns("200ms"), parse_time_ns("1.5s")
    (200000000, 1500000000)
    """
    found = parse_moment_ns(value)
    if not found:
        raise ValueError("a time must be above 0")
    return found


def parse_moment_ns(value: object) -> int:
    """Read how long after something else something is: as `parse_time_ns`, and it may be at once.

    Examples
    --------
    >>> parse_moment_ns("0s"), parse_moment_ns("1.5s")
    (0, 1500000000)
    """
    if not isinstance(value, str):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        raise ValueError("is a time without a unit" if is_number else "is not a time")
    exact = _scaled(value, _TIME_UNITS, "time")
    if exact < 0:
        raise ValueError("a time must not be below 0")
    if exact > MOST_TIME_NS:
        raise ValueError("a time must be at most a year")
    if exact.denominator != 1:
        raise ValueError("is not a whole number of nanoseconds")
    return int(exact)


def parse_rate_per_s(value: object) -> float:
    """Read a rate, such as ``"300/s"``: so many a second, above zero; a `ValueError` says what is wrong.

    Examples
    --------
    >>> parse_rate_per_s("300/s"), parse_rate_per_s("18000/min")
    (300.0, 300.0)
    """
    if not isinstance(value, str):
        raise ValueError("is a rate without '/s'" if isinstance(value, int | float) else "is not a rate")
    number, slash, unit = value.partition("/")
    if not slash or unit.strip().lower() not in ("s", "min", "h"):
        raise ValueError("is a rate without '/s'" if not slash else "is not a rate")
    count = _scaled(number, {"": 1, "k": 1000}, "rate")
    if count <= 0:
        raise ValueError("a rate must be above 0")
    return float(count * 10**9 / _TIME_UNITS[unit.strip().lower()])


def _scaled(text: str, units: dict[str, int], what: str) -> Fraction:
    # Thousands of digits would be refused by Python itself, in its own words.
    match = _NUMBER_AND_UNIT.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise ValueError(f"is not a {what}")
    number, unit = match.groups()
    scale = units.get(unit.lower())
    if scale is None:
        raise ValueError(f"is a {what} without a unit" if not unit else f"'{unit}' is not a unit of {what}")
    return Fraction(number.replace("_", "")) * scale


def format_bytes(count: int) -> str:
    """Write a size in a binary unit, with four significant digits.

    Examples
    --------
    >>> format_bytes(65536), format_bytes(1500)
    ('64 KiB', '1500 B')
    """
    if count < 10 * 1024 and count % 512:
        return f"{count} B"
    for unit, scale in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"


def format_time_ns(ns: float) -> str:
    """Write a time with three significant digits and a fitting unit.

    Examples
    --------
    >>> format_time_ns(200_000_000), format_time_ns(1234)
    ('200 ms', '1.23 us')
    """
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= scale:
            return f"{format_number(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


def format_number(value: float) -> str:
    """Write a figure with three significant digits, and all that stand before its point.

    Examples
    --------
    >>> format_number(0.01234), format_number(12.34), format_number(999.7), format_number(2612.3)
    ('0.0123', '12.3', '1,000', '2,612')
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"

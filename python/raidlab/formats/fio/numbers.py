"""Numbers as fio writes them: sizes, times, percentages, switches.

Invariants:

- Sizes follow fio's ``kb_base``: at 1024 (its default) ``4k`` is 4096 and ``4kib`` is 4000; at 1000 it is the other way
  round.
- What fio would read by dropping something is refused: fio takes ``1.5m`` for ``1m``, ``4kx`` for ``4k`` and ``10sec``
  for ten microseconds, and nobody who writes that means it.

Reference: fio's HOWTO, "Parameter types". Where the HOWTO and fio 3.33 itself differ (``4ki``), fio is followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KB_BASES = (1024, 1000)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)\s*([a-zA-Z]*)")
_TIME_UNITS_NS = {
    "us": 10**3,
    "usec": 10**3,
    "ms": 10**6,
    "msec": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
# Beyond this fio's own 64 bits run over.
_GREATEST = 2**63 - 1

SIZE_ACCEPTED = "a whole number of bytes such as 4096, 4k, 1m or 2g"
TIME_ACCEPTED = "a whole number of seconds, or with a unit: us, ms, s, m, h, d"
COUNT_ACCEPTED = "a whole number"
SWITCH_ACCEPTED = "0 or 1"


@dataclass(frozen=True)
class Extent:
    """A length or a place: so many bytes, or a percentage of the file."""

    bytes: int | None = None
    percent: int | None = None

    def of(self, whole_bytes: int) -> int:
        """In bytes, for a file of ``whole_bytes``."""
        return whole_bytes * self.percent // 100 if self.percent is not None else self.bytes or 0


def size(text: str, kb_base: int = 1024) -> int:
    """Read a size in bytes.

    Examples
    --------
    >>> size("4k"), size("4KiB"), size("4kib", 1000), size("0x10")
    (4096, 4000, 4096, 16)
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError("is not a size as fio reads one")
    digits, unit = found[1], found[2].lower()
    other_base = KB_BASES[0] + KB_BASES[1] - kb_base
    # Only the whole of "kib" is the other base; fio takes "ki" for "k".
    base = other_base if len(unit) == 3 and unit.endswith("ib") else kb_base
    prefix = unit.removesuffix("b").removesuffix("i")
    if prefix not in _POWERS or (unit not in ("", "b") and not prefix):
        raise ValueError(f"'{found[2]}' is not a unit of size")
    return _within(_whole(digits) * base ** _POWERS[prefix])


def extent(text: str, kb_base: int = 1024) -> Extent:
    """Read a size that may be a percentage of the file.

    Examples
    --------
    >>> extent("20%").of(1000)
    200
    """
    stripped = text.strip()
    if not stripped.endswith("%"):
        return Extent(bytes=size(text, kb_base))
    percent = count(stripped[:-1])
    if percent > 100:
        raise ValueError("is more than 100 %")
    return Extent(percent=percent)


def time_ns(text: str, unit: str = "s") -> int:
    """Read a time in nanoseconds; ``unit`` holds where none is written.

    Examples
    --------
    >>> time_ns("10"), time_ns("5ms")
    (10000000000, 5000000)
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError("is not a time as fio reads one")
    scale = _TIME_UNITS_NS.get(found[2].lower() or unit)
    if scale is None:
        raise ValueError(f"'{found[2]}' is not a unit of time")
    return _within(_whole(found[1]) * scale)


def count(text: str) -> int:
    """Read a whole number."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2]:
        raise ValueError("is not a whole number")
    return _within(_whole(found[1]))


def number(text: str) -> float:
    """Read a number with or without a fraction."""
    if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text.strip()) is None:
        raise ValueError("is not a number")
    return float(text)


def switch(text: str | None) -> bool:
    """Read a switch; a bare name turns it on."""
    value = 1 if text is None else count(text)
    if value > 1:
        raise ValueError("is neither on nor off")
    return value == 1


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("is too large")
    return int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)


def _within(value: int) -> int:
    if value > _GREATEST:
        raise ValueError("is too large")
    return value

"""The values of fio's options: sizes, times, switches, patterns, sizes by direction, splits, names of files.

Invariants:

- A reader here takes the text of one value and the line's base of units, and gives a plain value or raises `ValueError`
  with a sentence; it knows nothing of other options.
- Sizes follow fio's ``kb_base``: at 1024 (its default) ``4k`` is 4096 and ``4kib`` is 4000; at 1000 it is the other way
  round.
- What fio would read by dropping something is refused: fio takes ``1.5m`` for ``1m``, ``4kx`` for ``4k`` and ``10sec``
  for ten microseconds, and nobody who writes that means it.

Reference: fio's HOWTO, "Parameter types". Where the HOWTO and fio 3.33 itself differ (``4ki``), fio is followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
PATTERNS = ("read", "write", "rw", "readwrite", "randread", "randwrite", "randrw")
PATTERN_ACCEPTED = ", ".join(PATTERNS)
# Engines that wait for each request before the next, whatever iodepth says; the others keep iodepth in flight.
WAITING_ENGINES = ("psync", "sync", "pvsync", "pvsync2", "mmap")
QUEUED_ENGINES = ("io_uring", "libaio", "posixaio")
NULL_ENGINE = "null"
ENGINES = (*QUEUED_ENGINES, *WAITING_ENGINES, NULL_ENGINE)
_MOST_SPLITS = 64
# As of any size in a study.
_MOST_BLOCK_BYTES = 1 << 60
_MOST_PROCESSORS = 8192


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


def block_size(text: str, kb_base: int = 1024) -> int:
    """Read the size of a request, in bytes."""
    found = size(text, kb_base)
    if found > _MOST_BLOCK_BYTES:
        raise ValueError("is too large")
    return found


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


@dataclass(frozen=True)
class Pattern:
    """What ``rw`` says: which way, drawn or in order, and the gap that a suffix leaves between requests."""

    reads: bool
    writes: bool
    random: bool
    gap_bytes: int = 0


@dataclass(frozen=True)
class ByDirection:
    """A value for reads and one for writes; None where it was left out."""

    read: int | None
    write: int | None


Split = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Splits:
    """``bssplit``: (size, per cent) for reads and for writes."""

    read: Split
    write: Split


@dataclass(frozen=True)
class Distribution:
    """``random_distribution``: ``random``, or ``zipf`` with its theta."""

    kind: str = "random"
    theta: float = 0.0


def pattern(text: str, kb_base: int) -> Pattern:
    """Read ``rw``.

    Examples
    --------
    >>> pattern("randrw", 1024)
    Pattern(reads=True, writes=True, random=True, gap_bytes=0)
    """
    word, colon, suffix = text.partition(":")
    if "trim" in word:
        raise ValueError("raidlab trims nothing")
    if word not in PATTERNS:
        raise ValueError("is not a pattern")
    drawn, way = word.startswith("rand"), word.removeprefix("rand")
    gap = 0
    if colon and drawn:
        if suffix != "1":
            raise ValueError("raidlab draws every place anew, and does not go on from a drawn one")
    elif colon:
        if suffix.startswith("-"):
            raise ValueError("raidlab goes forward only")
        gap = size(suffix, kb_base)
    return Pattern(reads=way != "write", writes=way != "read", random=drawn, gap_bytes=gap)


def by_direction(text: str, read_one: Callable[[str], int]) -> ByDirection:
    """Read ``x``, ``read,write`` or ``read,write,trim``; a lone value holds for both, an empty one is left out.

    Examples
    --------
    >>> by_direction(",8k", size)
    ByDirection(read=None, write=8192)
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3:
        raise ValueError("has more than three values (reads, writes, trims)")
    values = [read_one(part) if part else None for part in parts[:2]]
    if all(value is None for value in values):
        raise ValueError("is empty")
    return ByDirection(values[0], values[0] if len(parts) == 1 else values[1])


def splits(text: str, kb_base: int) -> Splits:
    """Read ``bssplit``: ``4k/10:64k/90``, and after a comma the same for writes."""
    parts = text.split(",")
    if len(parts) > 3:
        raise ValueError("has more than three splits (reads, writes, trims)")
    read = _split(parts[0], kb_base)
    return Splits(read, read if len(parts) == 1 else _split(parts[1], kb_base))


def _split(text: str, kb_base: int) -> Split:
    """One direction's sizes; those without a percentage share what is left, as in fio, the last one the remainder."""
    entries: list[tuple[int, int]] = []
    for entry in text.split(":"):
        if not entry.strip():
            raise ValueError("has an empty entry")
        size_text, _, share = entry.partition("/")
        # fio takes a share of nought for one that was left out.
        entries.append((block_size(size_text, kb_base), count(share) if share.strip() else 0))
    if len(entries) > _MOST_SPLITS:
        raise ValueError(f"has more than {_MOST_SPLITS} sizes")
    if any(length == 0 for length, _ in entries):
        raise ValueError("has a size of 0")
    given = sum(share for _, share in entries)
    open_places = [place for place, (_, share) in enumerate(entries) if not share]
    left = 100 - given
    if left < 0 or (left > 0 and not open_places):
        raise ValueError(f"its percentages add up to {given}, not to 100")
    if open_places and left < len(open_places):
        raise ValueError(f"leaves {left} % for {len(open_places)} sizes without a percentage")
    for position, place in enumerate(open_places):
        rest = left % len(open_places) if position == len(open_places) - 1 else 0
        entries[place] = (entries[place][0], left // len(open_places) + rest)
    return tuple(entries)


def single_range(text: str, kb_base: int) -> ByDirection:
    """Read ``bsrange`` where it is no range: ``4k-4k``."""

    def one(part: str) -> int:
        low, _, high = part.replace(":", "-").partition("-")
        sizes = {size(low, kb_base), size(high, kb_base)}
        if len(sizes) > 1:
            raise ValueError("raidlab draws sizes from a list, not from a range")
        return sizes.pop()

    return by_direction(text, one)


def distribution(text: str) -> Distribution:
    """Read ``random_distribution``."""
    kind, colon, parameter = text.partition(":")
    if kind == "random" and not colon:
        return Distribution()
    if kind != "zipf":
        raise ValueError(f"raidlab does not draw from '{kind}'")
    if ":" in parameter:
        raise ValueError("raidlab scatters its hot places and has no centre of them")
    # 1.1 is what fio takes when nothing is said.
    theta = number(parameter) if colon else 1.1
    if theta in (0.0, 1.0):
        raise ValueError("fio takes no zipf theta of 0 or 1")
    return Distribution("zipf", theta)


def one_of(text: str, words: tuple[str, ...], what: str) -> str:
    """Read one of a few words."""
    if text not in words:
        raise ValueError(f"raidlab has no such {what}")
    return text


def processors(text: str) -> tuple[int, ...]:
    """Read a list of processors.

    Examples
    --------
    >>> processors("0,2-4")
    (0, 2, 3, 4)
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = count(first)
        high = count(last) if dash else low
        if high < low or high >= _MOST_PROCESSORS:
            raise ValueError(f"names no processors from 0 to {_MOST_PROCESSORS - 1}")
        found += range(low, high + 1)
    return tuple(dict.fromkeys(found))


def paths(text: str) -> tuple[str, ...]:
    r"""Split names at colons; ``\:`` stands for a colon within one.

    Examples
    --------
    >>> paths(r"a:b\:c")
    ('a', 'b:c')
    """
    found = tuple(name.replace("\\:", ":") for name in re.split(r"(?<!\\):", text) if name)
    if not found:
        raise ValueError("names no file")
    if "-" in found:
        raise ValueError("raidlab reads and writes no standard input or output")
    return found


def escaped(path: str) -> str:
    """A path as one name of ``filename``."""
    return path.replace(":", "\\:")

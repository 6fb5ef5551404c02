"""Figures in words: numbers as people read them, and what a chart shows for whoever does not see it.

Invariant: what is said of a chart holds figures, not only names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raidlab.report.figures.chart import Mark

# What rounds to 0.1 from below is written like it.
_TENTH = 0.09995


def number(value: float | None) -> str:
    """Three significant digits, and no more than the eye needs.

    Examples
    --------
    >>> [number(value) for value in (None, 0.0123, 0.09998, 1.2345, 12.345, 123.45, 12345)]
    ['-', '0.0123', '0.10', '1.23', '12.3', '123', '12,345']
    """
    if value is None:
        return "-"
    if abs(value) < _TENTH:
        return f"{value:.3g}"
    return fixed(value, 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2)


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; a half goes up, as people round and printed figures were.

    Examples
    --------
    >>> [fixed(value, 1) for value in (1.65, 1.6499, -0.25, 1234.56)], f"{1.65:.1f}"
    (['1.7', '1.6', '-0.3', '1,234.6'], '1.6')
    """
    # 1.65 is no float: the nearest lies a little below it.
    return f"{value * (1 + 1e-12):,.{decimals}f}"


def alike(values: Iterable[float]) -> int:
    """With how many decimals numbers side by side are written: three digits of the greatest, two of the least.

    Examples
    --------
    >>> [alike(values) for values in ([41, 36.1], [0.12, 0.116], [1200, 640], [120, 5.7], [0])]
    [1, 3, 0, 1, 0]
    """
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return 0
    decimals = max(0, 2 - math.floor(math.log10(max(sizes))))
    return decimals + 1 if min(sizes) * 10.0**decimals < 10 else decimals


def of_bars(values: Mapping[str, str | float], what: str) -> str:
    """Bars in words: what they are, then each with its figure."""
    shown = (f"{name} {value if isinstance(value, str) else number(value)}" for name, value in values.items())
    return f"{what}: {', '.join(shown)}."


def of_lines(marks: Iterable[Mark], x: str, y: str, *, order: Callable[[Mark], float] = lambda mark: mark.x) -> str:
    """Lines in words: of each where it begins and ends, its points in order; ``x`` and ``y`` are what the axes are."""
    lines: dict[str, list[Mark]] = {}
    for mark in marks:
        lines.setdefault(mark.line, []).append(mark)
    said = []
    for name, points in lines.items():
        first, last = min(points, key=order), max(points, key=order)
        begin = f"{name} {number(first.value)} at {number(first.x)}"
        said.append(begin if len(points) == 1 else f"{begin} to {number(last.value)} at {number(last.x)}")
    return f"{y} over {x}: {'; '.join(said)}."


def interval_words(interval: tuple[float, float] | None) -> str:
    """The interval over repeats, in brackets behind a figure; empty where there is none."""
    return "" if interval is None else f" (95 % interval {number(interval[0])} to {number(interval[1])})"

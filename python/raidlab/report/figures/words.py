"""Figures in words: numbers as people read them, and what a chart shows for whoever does not see it.

Invariant: what is said of a chart holds figures, not only names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= _TENTH else f"{value:.3g}"


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


def lines_in(
    rows: Iterable[Mapping[str, Any]], x: str, y: str, *, line: str = "line", order: str | None = None
) -> dict[str, list[tuple[float, float]]]:
    """The points of each line of a chart's data, in the order of ``order`` (of ``x`` when left out)."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in sorted(rows, key=lambda row: row[order or x]):
        lines.setdefault(row[line], []).append((row[x], row[y]))
    return lines


def of_lines(lines: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str) -> str:
    """Lines in words: of each where it begins and ends.

    Parameters
    ----------
    lines : mapping
        By name, the points (x, y) in their order.
    x, y : str
        What the axes are.
    """
    said = []
    for name, points in lines.items():
        if points:
            (first_x, first_y), (last_x, last_y) = points[0], points[-1]
            begin = f"{name} {number(first_y)} at {number(first_x)}"
            said.append(begin if len(points) == 1 else f"{begin} to {number(last_y)} at {number(last_x)}")
    return f"{y} over {x}: {'; '.join(said)}."

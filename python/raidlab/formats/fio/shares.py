"""Sizes as fio's ``bssplit`` can say them: up to 64 sizes, each with a whole percentage.

Invariants:

- Percentages add up to 100 and none is 0 (fio takes 0 for "left out").
- A distribution becomes classes of equal weight, each with its conditional mean in whole sectors, so the mean request
  is kept to within half a sector a class.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from raidlab.study.workload import Size

# 50 classes of 2 %: as fine as whole percentages and fio's 64 entries allow, with one weight for all.
CLASSES = 50
_POINTS_A_CLASS = 40

Split = list[tuple[int, int]]


def split_of(size: Size, sector_bytes: int) -> tuple[Split, str | None]:
    """The split for a cell's ``workload.size``, a single entry for a fixed size; and what is not exact about it."""
    if size.kind == "fixed":
        return [(size.bytes, 100)], None
    if size.kind == "table":
        return _table(size.bytes, size.weights)
    split = _classes(size.quantile, sector_bytes)
    parameters = ", ".join(f"{key} {value:g}" for key, value in size if key != "kind")
    return split, f"size: {size.kind} ({parameters}) as {CLASSES} classes of {100 // CLASSES} % each"


def _classes(quantile: Callable[[float], float], sector_bytes: int) -> Split:
    found: dict[int, int] = {}
    for place in range(CLASSES):
        points = ((place + (point + 0.5) / _POINTS_A_CLASS) / CLASSES for point in range(_POINTS_A_CLASS))
        mean = math.fsum(max(quantile(share), sector_bytes) for share in points) / _POINTS_A_CLASS
        length = max(round(mean / sector_bytes), 1) * sector_bytes
        found[length] = found.get(length, 0) + 100 // CLASSES
    return sorted(found.items())


def _table(lengths: list[int], weights: list[float]) -> tuple[Split, str | None]:
    """Weights as whole percentages, by the largest remainder."""
    total = math.fsum(weights)
    exact = [100 * weight / total for weight in weights]
    whole = [math.floor(share + 1e-9) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: whole[place] - exact[place])
    for place in by_remainder[: 100 - sum(whole)]:
        whole[place] += 1
    split = [(length, share) for length, share in zip(lengths, whole, strict=True) if share]
    if all(abs(share - asked) < 1e-9 for share, asked in zip(whole, exact, strict=True)):
        return split, None
    asked = ", ".join(f"{share:.3g} %" for share in exact)
    return split, f"size: fio takes whole percentages only; asked for {asked}"

"""The sizes of files that are there, as a table of sizes for a study of whole files.

Invariants:

- Files are only looked at, never opened; links are not followed.
- A class stands for as many files as another, to within one, by its mean: the mean of all files stays what it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from raidlab.errors import InputError

MOST_FILES = 10_000_000


@dataclass(frozen=True)
class SizeTable:
    """A table of sizes."""

    bytes: tuple[int, ...]
    weights: tuple[int, ...]
    """How many files each stands for."""
    empty: int
    """Files of no length, which are left out."""

    @property
    def files(self) -> int:
        """How many files it stands for."""
        return sum(self.weights)

    @property
    def total_bytes(self) -> int:
        """What they hold, by the table."""
        return sum(size * weight for size, weight in zip(self.bytes, self.weights, strict=True))

    def toml(self) -> str:
        """The line of a study."""
        sizes = ", ".join(str(size) for size in self.bytes)
        weights = ", ".join(str(weight) for weight in self.weights)
        return f'size = {{ kind = "table", bytes = [{sizes}], weights = [{weights}] }}'


def scan_sizes(directory: Path, classes: int = 10) -> SizeTable:
    """The sizes of all files below a directory, in so many classes of equal numbers."""
    if not directory.is_dir():
        raise InputError.one("DIR", "is no directory", value=f"'{directory}'", accepted="one with files in it")
    found = sorted(_sizes(directory))
    full = [size for size in found if size]
    if not full:
        raise InputError.one("DIR", "holds no files that are not empty", value=f"'{directory}'", accepted="another")
    bounds = [len(full) * part // classes for part in range(classes + 1)]
    parts = [full[low:high] for low, high in pairwise(bounds) if high > low]
    table: dict[int, int] = {}
    for part in parts:
        mean = max(1, round(sum(part) / len(part)))
        table[mean] = table.get(mean, 0) + len(part)
    return SizeTable(tuple(table), tuple(table.values()), len(found) - len(full))


def _sizes(directory: Path) -> Iterator[int]:
    count = 0
    for folder, _, names in os.walk(directory, followlinks=False):
        for name in names:
            try:
                status = Path(folder, name).lstat()
            except OSError:
                # Gone meanwhile, or nobody's to see.
                continue
            if stat.S_ISREG(status.st_mode):
                count += 1
                if count > MOST_FILES:
                    message = f"holds more than {MOST_FILES:,} files"
                    raise InputError.one("DIR", message, value=f"'{directory}'", accepted="a part of it")
                yield status.st_size

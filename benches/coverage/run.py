"""How often do intervals of 95 % hold the truth, and how often is one given? Exit code 1 where a cell does not hold.

.venv/bin/python benches/coverage/run.py --jobs 2       # 2,000 repetitions a cell; --table response narrows it
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from cases import Case, cases, holds

REPETITIONS = 2000
LOWEST = 0.92
_REFUSED_BELOW = 0.05
_WORDS = {"too_few_samples": "too few", "not_independent": "related", "variance_not_finite": "infinite"}
LEGEND = """\
Coverage in percent of intervals of 95 %, {repetitions:,} repetitions a cell, seed {seed}; in brackets how
many percent of them were given, where it is not all. A cell holds from {lowest:g} on, and where fewer than
{refused:g} % were given: then it says why. One that does not is marked "!".
"""


@dataclass
class Cell:
    """What was answered to one figure of one case."""

    repetitions: int = 0
    answered: int = 0
    covered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def is_refused(self) -> bool:
        """Whether there is hardly ever an interval."""
        return self.answered < _REFUSED_BELOW * self.repetitions

    @property
    def coverage(self) -> float:
        """The share of the intervals given that hold the truth."""
        return self.covered / self.answered if self.answered else 0.0

    @property
    def is_kept(self) -> bool:
        """Whether what is claimed is kept."""
        return self.is_refused or self.coverage >= LOWEST

    @property
    def text(self) -> str:
        """As printed."""
        if self.is_refused:
            word = self.reasons.most_common(1)[0][0]
            return _WORDS.get(word, word.replace("_", " "))
        share = self.answered / self.repetitions
        text = f"{100 * self.coverage:.1f}" + ("" if share > 0.995 else f" ({100 * share:.0f})")
        return text if self.is_kept else text + " !"


def cells_of(case: Case, repetitions: int, seed: int) -> dict[str, Cell]:
    """Ask one case again and again."""
    key = zlib.crc32(f"{case.table} {case.model} {case.size}".encode())
    rng = np.random.default_rng([seed, key])
    found: dict[str, Cell] = {}
    for _ in range(repetitions):
        for figure, interval, truth in case.ask(rng):
            cell = found.setdefault(figure, Cell())
            cell.repetitions += 1
            held = holds(interval, truth)
            if held is None:
                cell.reasons[str(interval)] += 1
            else:
                cell.answered += 1
                cell.covered += held
    return found


def _work(job: tuple[int, int, int]) -> dict[str, Cell]:
    index, repetitions, seed = job
    return cells_of(cases()[index], repetitions, seed)


def main() -> int:
    """Run the grid and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--table", default="", help="only tables whose name begins so, such as pilot")
    given = parser.parse_args()
    started = time.monotonic()
    every = cases()
    todo = [index for index, case in enumerate(every) if case.table.startswith(given.table)]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = list(pool.map(_work, [(index, given.repetitions, given.seed) for index in todo]))
    texts = {
        (figure, every[index].model, every[index].size): cell
        for index, cells in zip(todo, found, strict=True)
        for figure, cell in cells.items()
    }
    print(
        LEGEND.format(repetitions=given.repetitions, seed=given.seed, lowest=100 * LOWEST, refused=100 * _REFUSED_BELOW)
    )
    for figure in dict.fromkeys(figure for figure, _, _ in texts):
        mine = {key[1:]: cell for key, cell in texts.items() if key[0] == figure}
        sizes = sorted({size for _, size in mine}, key=lambda size: float(size.split()[0]))
        print(f"\n| {figure} | " + " | ".join(sizes) + " |\n|---|" + "---|" * len(sizes))
        order = [
            name for name in dict.fromkeys(case.model for case in _in_order()) if any((name, s) in mine for s in sizes)
        ]
        for name in order:
            row = (mine[name, size].text if (name, size) in mine else "" for size in sizes)
            print(f"| {name} | " + " | ".join(row) + " |")
    broken = sum(not cell.is_kept for cell in texts.values())
    print(
        f"\n{len(texts)} cells, {broken} do not hold; {time.monotonic() - started:.0f} s in {given.jobs} process(es)."
    )
    return 1 if broken else 0


def _in_order() -> list[Case]:
    return sorted(cases(), key=lambda case: case.table)


if __name__ == "__main__":
    sys.exit(main())

"""How often do intervals of 95 % hold the truth, and how often is one given? Exit code 1 where a cell does not hold.

.venv/bin/python benches/coverage/run.py --jobs 2       # 2,000 repetitions a cell; --table response narrows it
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from cases import Case, cases
from grid import LOWEST, REFUSED_BELOW, Cell, cells_of

REPETITIONS = 2000
LEGEND = """\
Coverage in percent of intervals of 95 %, {repetitions:,} repetitions a cell, seed {seed}; in brackets how
many percent of them were given, where it is not all. A cell holds from {lowest:g} on, and where fewer than
{refused:g} % were given: then it says why. One that does not is marked "!". Of few repeats raidlab says what it
takes for granted; where that is not so nothing is claimed, and a cell shows what comes of it.
"""


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
        LEGEND.format(repetitions=given.repetitions, seed=given.seed, lowest=100 * LOWEST, refused=100 * REFUSED_BELOW)
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
    claimed = [cell for cell in texts.values() if cell.is_claimed]
    broken = sum(not cell.is_kept for cell in claimed)
    print(
        f"\n{len(claimed)} cells, {broken} do not hold; {len(texts) - len(claimed)} claim nothing; "
        f"{time.monotonic() - started:.0f} s in {given.jobs} process(es)."
    )
    return 1 if broken else 0


def _in_order() -> list[Case]:
    return sorted(cases(), key=lambda case: case.table)


if __name__ == "__main__":
    sys.exit(main())

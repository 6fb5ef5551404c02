"""Print the grid of coverage: `python -m raidlab.stats.coverage`; exit code 1 where a cell does not hold."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from raidlab.stats.coverage.grid import HIGHEST, LOWEST, REPETITIONS, cells_of
from raidlab.stats.coverage.methods import METHODS
from raidlab.stats.coverage.models import MODELS

LEGEND = """\
Coverage in percent of nominal 95 % intervals, {repetitions} repetitions a cell, seed {seed}; in brackets the
percentage of repetitions that were answered where it is not all. A cell holds between {low:g} and {high:g} (exact
ranks: from {low:g} up); one that does not is marked "!". Refusals: "too few" samples, variance "not finite",
"correlated" values where independent ones are needed. "-": not asked.
"""


def _job(job: tuple[int, int, bool, int, int]) -> list[tuple[int, int, int, str, bool]]:
    model, size, repeated, repetitions, seed = job
    cells = cells_of(MODELS[model], size, repeated=repeated, repetitions=repetitions, seed=seed)
    return [(METHODS.index(cell.method), model, size, cell.text, cell.holds) for cell in cells]


def main() -> int:
    """Run the grid and print it."""
    parser = argparse.ArgumentParser(prog="python -m raidlab.stats.coverage", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    started = time.monotonic()
    jobs = sorted(
        {
            (index, size, method.repeated, arguments.repetitions, arguments.seed)
            for method in METHODS
            for index, model in enumerate(MODELS)
            for size in method.sizes
            if method.asks(model, size)
        },
        key=lambda job: -job[1] * (1000 if job[2] else 1),
    )
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = [cell for cells in pool.map(_job, jobs) for cell in cells]
    sys.stdout.write(
        LEGEND.format(repetitions=arguments.repetitions, seed=arguments.seed, low=100 * LOWEST, high=100 * HIGHEST)
    )
    texts = {(method, model, size): text for method, model, size, text, _ in found}
    for index, method in enumerate(METHODS):
        sys.stdout.write(f"\n{method.name}\n{'n =':>22}" + "".join(f"{size:>12,}" for size in method.sizes) + "\n")
        for number, model in enumerate(MODELS):
            row = "".join(f"{texts.get((index, number, size), '-'):>12}" for size in method.sizes)
            sys.stdout.write(f"{model.name:>22}{row}\n")
    broken = sum(not holds for *_, holds in found)
    took = f"{time.monotonic() - started:.0f} s in {arguments.jobs} process(es)"
    sys.stdout.write(f"\n{len(found)} cells, {broken} do not hold; {took}.\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

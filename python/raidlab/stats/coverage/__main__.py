"""Print the grid of coverage: `python -m raidlab.stats.coverage`; exit code 1 where a cell does not hold."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from raidlab.stats.coverage.grid import HIGHEST, LOWEST, REPETITIONS, cells_of
from raidlab.stats.coverage.methods import METHODS, REQUESTS_A_REPEAT, Method
from raidlab.stats.coverage.models import MODELS, Model

LEGEND = """\
Coverage in percent of nominal 95 % intervals, {repetitions} repetitions a cell, seed {seed}; in brackets the
percentage of repetitions that were answered where it is not all. A cell holds between {low:g} and {high:g} (exact
ranks: from {low:g} up); one that does not is marked "!". Refusals: "too few" samples, variance "not finite",
"correlated" values where independent ones are needed. "-": not asked.
"""


@dataclass(frozen=True)
class _Job:
    """One model at one size, for all methods: what one process does at a time."""

    model: int
    size: int
    repeated: bool
    repetitions: int
    seed: int
    sizes: tuple[int, ...]


def _asked(sizes: tuple[int, ...]) -> tuple[tuple[Method, ...], tuple[Model, ...]]:
    """The methods and models, tried at sizes of the user's own where there are any."""
    if not sizes:
        return METHODS, MODELS
    methods = tuple(replace(method, sizes=sizes) for method in METHODS if not method.repeated)
    return methods, tuple(replace(model, largest=max(sizes)) for model in MODELS)


def _work(job: _Job) -> list[tuple[int, int, int, str, bool]]:
    methods, models = _asked(job.sizes)
    cells = cells_of(
        models[job.model],
        job.size,
        repeated=job.repeated,
        repetitions=job.repetitions,
        seed=job.seed,
        methods=methods,
    )
    return [(methods.index(cell.method), job.model, job.size, cell.text, cell.holds) for cell in cells]


def main() -> int:
    """Run the grid and print it."""
    parser = argparse.ArgumentParser(prog="python -m raidlab.stats.coverage", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[], help="other sizes of series than the grid's")
    given = parser.parse_args()
    started = time.monotonic()
    methods, models = _asked(tuple(given.sizes))
    jobs = {
        _Job(index, size, method.repeated, given.repetitions, given.seed, tuple(given.sizes))
        for method in methods
        for index, model in enumerate(models)
        for size in method.sizes
        if method.asks(model, size)
    }
    # The longest first, so that no process ends long after the others.
    order = sorted(jobs, key=lambda job: job.size * (REQUESTS_A_REPEAT if job.repeated else 1), reverse=True)
    with ProcessPoolExecutor(given.jobs) as pool:
        found = [cell for cells in pool.map(_work, order) for cell in cells]
    sys.stdout.write(
        LEGEND.format(repetitions=given.repetitions, seed=given.seed, low=100 * LOWEST, high=100 * HIGHEST)
    )
    texts = {(method, model, size): text for method, model, size, text, _ in found}
    for index, method in enumerate(methods):
        sys.stdout.write(f"\n{method.name}\n{'n =':>22}" + "".join(f"{size:>12,}" for size in method.sizes) + "\n")
        for number, model in enumerate(models):
            row = "".join(f"{texts.get((index, number, size), '-'):>12}" for size in method.sizes)
            sys.stdout.write(f"{model.name:>22}{row}\n")
    broken = sum(not holds for *_, holds in found)
    took = f"{time.monotonic() - started:.0f} s in {given.jobs} process(es)"
    sys.stdout.write(f"\n{len(found)} cells, {broken} do not hold; {took}.\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""How long a decision among 48 arrays takes, and how often it is within the margin of what long runs say is best.

    .venv/bin/python benches/recommend/run.py            # one decision, its time
    .venv/bin/python benches/recommend/run.py --repeats 20   # also how many of 20 seeds are within 2 %
    .venv/bin/python benches/recommend/run.py --repeats 5 --own-seeds   # runs with and without seeds in common

To be reached: 5 s on two quiet processors; 95 of 100 within the margin.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any

from raidlab import api
from raidlab.recommend import need_of
from raidlab.recommend.candidates import enumerate_candidates
from raidlab.recommend.cells import Asked, Cells
from raidlab.recommend.decide import Decider, effort_of
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Silent
from raidlab.study.expand import derive_seed

LONG_REQUESTS = 40_000
NEED: dict[str, Any] = {
    "ask": "fastest",
    "devices": [{"device": "hdd-7200-bare", "at_most": 12}],
    "workload": [{"name": "mix", "read": 0.7, "size": "8KiB", "load": {"depths": [16]}}],
    "need": {"tolerate": 1},
    "search": {
        "levels": ["raid10", "raid5", "raid6"],
        "members": [4, 6, 8, 12],
        "chunks": ["16KiB", "64KiB", "256KiB", "1MiB"],
    },
}


def best_of_long_runs() -> tuple[dict[str, float], float]:
    """By tree the throughput of one long run, and the greatest."""
    loaded = need_of(NEED)
    shapes = [one.shape for one in enumerate_candidates(loaded) if not one.missed]
    with Cells(loaded, Silent(), StopFlag(), LONG_REQUESTS, warm_up=LONG_REQUESTS // 4) as cells:
        asked = {shape.text: Asked(shape, 0, "load", 0) for shape in shapes}
        cells.run(asked.values())
        rates = {text: cells.seen[one].requests_per_s for text, one in asked.items()}
    print(f"{len(rates)} arrays")
    return rates, max(rates.values())


class OwnSeeds(Cells):
    """Runs in which no two arrays are asked the same."""

    def root_seed(self, asked: Asked) -> int:
        """A root for each array."""
        return derive_seed(super().root_seed(asked), asked.shape.text)


def compare_seeds(seeds: Iterable[int]) -> None:
    """Print how many runs a decision takes with seeds in common and without, carried on until it is made."""
    total = {Cells: 0, OwnSeeds: 0}
    for seed in seeds:
        # At the usual most, those without would often end with arrays that are not told apart, and seem as cheap.
        loaded = need_of({**NEED, "seed": seed, "effort": {"most_repeats": 1000}})
        for kind in total:
            with kind(loaded, Silent(), StopFlag(), loaded.need.effort.requests) as cells:
                decision = Decider(loaded, cells, effort_of(loaded, quick=False)).decide()
            count = sum(not one.confirms for one in cells.seen)
            total[kind] += count
            print(f"seed {seed}, {kind.__name__}: {count} runs, {len(decision.tied)} not told apart", flush=True)
    print(f"with common seeds {total[Cells] / total[OwnSeeds]:.2f} of the runs without")


def main() -> None:
    """Print the time of a decision, and how many of several are right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--own-seeds", action="store_true", help="each array has requests of its own, beside common ones"
    )
    parser.add_argument("--first-seed", type=int, default=1, help="to go on with what was cut short")
    asked = parser.parse_args()
    if asked.own_seeds:
        compare_seeds(range(asked.first_seed, asked.first_seed + asked.repeats))
        return
    rates, best = best_of_long_runs()
    right = 0
    for seed in range(asked.first_seed, asked.first_seed + asked.repeats):
        began_s = time.perf_counter()
        answer = api.recommend({**NEED, "seed": seed})
        took_s = time.perf_counter() - began_s
        chosen = next(one for one in answer["arrays"] if one["rank"] == 1)
        share = rates[chosen["tree"]] / best
        right += share >= 0.98
        print(
            f"seed {seed}: {chosen['name']}, {100 * share:.1f} % of the best, {answer['cells']} cells, {took_s:.1f} s",
            flush=True,
        )
    print(f"{right} of {asked.repeats} within 2 % of the best")


if __name__ == "__main__":
    main()

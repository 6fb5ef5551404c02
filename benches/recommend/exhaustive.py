"""Thirteen needs whose answers long runs of every array tell, beside what `raidlab recommend` says of them.

    .venv/bin/python benches/recommend/exhaustive.py              # all
    .venv/bin/python benches/recommend/exhaustive.py --only mail  # one of them

Every array that meets the need by its shape is simulated, none is left out by a rule: `REPEATS` runs of `REQUESTS`
requests with seeds that the recommendation never uses. From these follow which arrays meet the goals (a share of
requests or a rate within what makes no difference may be called either way) and which is the cheapest or the fastest.
An answer is

- *right* where it meets the goals, costs the least that any does, and is within the margin of the fastest of those,
- *not told apart* where it is not, but says that it was not told apart from one that is,
- *wrong* otherwise.

To be reached: no answer is wrong.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
from dataclasses import dataclass
from typing import Any

from raidlab import api
from raidlab.recommend import need_of
from raidlab.recommend.candidates import Contender, enumerate_candidates
from raidlab.recommend.cells import Asked, Cells, log_rate
from raidlab.recommend.decide import SATURATED, Decider, Effort
from raidlab.results.recommendation import RecommendedArray
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Silent

REPEATS = 4
REQUESTS = 4_000
# The write caches of some disks fill for thousands of requests.
WARM_UP = 8_000
# Seeds of the long runs; those of the needs are below.
LONG_SEED = 900_001


def work(name: str, read: float, size: str, **more: Any) -> dict[str, Any]:
    """A workload at 16 requests outstanding, unless more is said."""
    return {"name": name, "read": read, "size": size, "load": {"depths": [16]}, **more}


def flash(like: str) -> dict[str, Any]:
    """A flash drive with smaller tables than its model has: what a drive has behind it is worked out for every run."""
    return {"like": like, "sparse": 512}


def need(device: str | dict[str, Any], at_most: int, works: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A need for arrays of one kind of disk, each of the same price."""
    found = {
        "ask": "fastest",
        "devices": [{"device": device, "name": "disk", "at_most": at_most, "price": 100}],
        "workload": works,
    }
    goals = {"tolerate": 1, **more.pop("need", {})}
    search = {"levels": ["raid10", "raid5", "raid6"], "chunks": ["16KiB", "64KiB", "512KiB"], **more.pop("search", {})}
    return {**found, "need": goals, "search": search, **more}


CHUNKS = ["16KiB", "64KiB", "256KiB", "1MiB"]
MAIL = work("mail", 0.6, "8KiB")
STREAMS = work("backup", 1.0, "256KiB", address={"kind": "sequential", "streams": 4})
NEEDS: dict[str, dict[str, Any]] = {
    "reads": need("hdd-7200-bare", 8, [work("reads", 1.0, "8KiB")]),
    "writes": need("hdd-7200", 6, [work("writes", 0.0, "8KiB")]),
    "mail": need("hdd-sas-10k", 8, [MAIL], ask="cheapest", need={"p90": "30ms"}),
    "two at once": need("hdd-7200-bare", 8, [MAIL, STREAMS], search={"chunks": ["64KiB", "512KiB"]}),
    "arrivals": need(
        "hdd-7200-bare", 8, [work("oltp", 0.7, "8KiB")], ask="cheapest", need={"rate": "250/s", "p90": "40ms"}
    ),
    "large writes": need("hdd-nearline-4tb", 8, [work("video", 0.1, "256KiB")], search={"chunks": ["64KiB", "512KiB"]}),
    "flash": need(flash("ssd-sata"), 6, [work("base", 0.7, "8KiB")], search={"members": [4, 6]}),
    "flash by rate": need(
        flash("ssd-nvme"), 6, [work("base", 0.7, "8KiB")], ask="cheapest", need={"rate": "60000/s", "p99": "2ms"}
    ),
    "cloud": need(
        "cloud-gp3",
        6,
        [work("app", 0.5, "16KiB")],
        search={"levels": ["raid0", "raid10", "raid5"]},
        need={"tolerate": 0},
    ),
    "two disks": {
        **need("hdd-7200-bare", 6, [MAIL], ask="cheapest", need={"p90": "60ms"}),
        "devices": [
            {"device": "hdd-7200-bare", "at_most": 8, "price": 100},
            {"device": "hdd-sas-10k", "at_most": 6, "price": 190},
        ],
    },
    # Sixty arrays each.
    "sixty, reads": need("hdd-7200-bare", 8, [work("reads", 1.0, "16KiB")], search={"chunks": CHUNKS}),
    "sixty, mail": need("hdd-7200-bare", 8, [MAIL], ask="cheapest", need={"p90": "100ms"}, search={"chunks": CHUNKS}),
    "sixty, writes": need("hdd-7200-bare", 8, [work("writes", 0.1, "4KiB")], search={"chunks": CHUNKS}),
}


@dataclass(frozen=True)
class LongRun:
    """What long runs say of an array."""

    candidate: Contender
    log_rate: float
    worst: float
    """The least over goals of what is left beyond the goal, in units of what makes no difference."""

    @property
    def cost(self) -> float:
        """What it costs; nothing where no price decides."""
        return self.candidate.cost or 0.0


def long_runs(document: dict[str, Any]) -> list[LongRun]:
    """Every array that meets the need by its shape, simulated for long."""
    loaded = need_of({**document, "seed": LONG_SEED})
    candidates = [one for one in enumerate_candidates(loaded) if not one.missed]
    with Cells(loaded, Silent(), StopFlag(), REQUESTS, warm_up=WARM_UP) as cells:
        decider = Decider(loaded, cells, Effort(REPEATS, REPEATS, REPEATS))
        kinds = {"load", decider.figure} | ({SATURATED} if decider.is_open else set())
        works, shapes = range(len(loaded.works)), dict.fromkeys(one.shape for one in candidates)
        cells.run(
            Asked(shape, at, kind, repeat)
            for repeat in range(REPEATS)
            for shape in shapes
            for at in works
            for kind in kinds
        )
        found = []
        for one in candidates:
            goals = [math.fsum(values) / len(values) / near for values, near in decider.goal_values(one.shape)]
            runs = [
                [cells.seen[Asked(one.shape, at, decider.figure, repeat)] for at in works] for repeat in range(REPEATS)
            ]
            rate = math.fsum(map(log_rate, runs)) / REPEATS
            found.append(LongRun(one, rate, min(goals, default=math.inf)))
    return found


def is_right(document: dict[str, Any], chosen: LongRun, known: list[LongRun]) -> bool:
    """Whether an array is as good an answer as any."""
    if chosen.worst < -1:
        return False
    # One that may be called either way may be the answer, and need not be.
    clear = [one for one in known if one.worst >= 1] or [one for one in known if one.worst >= -1]
    by_price = document["ask"] == "cheapest"
    least = min(one.cost for one in clear) if by_price else math.inf
    if by_price and chosen.cost > least:
        return False
    rivals = [one for one in clear if not by_price or one.cost == chosen.cost]
    best = max((one.log_rate for one in rivals), default=chosen.log_rate)
    return chosen.log_rate >= best - math.log1p(need_of(document).need.effort.margin_percent / 100)


def verdict(document: dict[str, Any]) -> tuple[str, str]:
    """What the recommendation is worth, and a line about it."""
    answer = api.recommend(copy.deepcopy(document))
    known = long_runs(document)
    by_row = {(one.candidate.name, one.candidate.shape.text): one for one in known}
    assert len(by_row) == len(known), "a name and a tree are one array"

    def run_of(row: RecommendedArray) -> LongRun:
        return by_row[row["name"], row["tree"]]

    first = [row for row in answer["arrays"] if row["rank"] == 1]
    tied = [row for row in answer["arrays"] if row["is_tied"]]
    line = f"{answer['answer']}; {len(known)} arrays, {answer['cells']} cells"
    if not first:
        meets = [one.candidate.name for one in known if one.worst >= 1]
        return ("wrong" if meets else "right"), line
    if is_right(document, run_of(first[0]), known):
        return "right", line
    is_open = any(is_right(document, run_of(row), known) for row in tied)
    undecided = [row for row in answer["arrays"] if row["verdict"] == "not decided"]
    is_open = is_open or any(is_right(document, run_of(row), known) for row in undecided)
    return ("not told apart" if is_open else "wrong"), line


def main() -> int:
    """Print a line a need; status 1 if an answer is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=NEEDS)
    only = parser.parse_args().only
    found = []
    for name in [only] if only else NEEDS:
        word, line = verdict(NEEDS[name])
        found.append(word)
        print(f"{name}: {word}: {line}", flush=True)
    print(", ".join(f"{found.count(word)} {word}" for word in ("right", "not told apart", "wrong")))
    return int("wrong" in found)


if __name__ == "__main__":
    sys.exit(main())

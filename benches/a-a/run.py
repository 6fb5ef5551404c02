"""A thing compared with itself, and with one that is 5 % slower: does `raidlab compare` say what is true?

Purpose: a comparison that calls equal things different, or cannot see a difference that it promised to see, is worth
nothing. Each of so many comparisons is made of real runs, by the command's own code.

- simulator, A against A: two runs of one study with different seeds, so that nothing is shared;
- simulator, A against B: B's disks take 1.05 times as long for everything. How many repeats are run is decided
  beforehand: so many that `stats/power.py` promises to find 5 % nine times of ten, given the spread of the repeats of a
  pilot. Also with one seed, so that repeats are compared in pairs;
- live, A against A: two arrays of one tree in one run over members in memory, cells interleaved, compared in pairs.

Verdict: A and A are called different at most 10 times of 100 at 95 % (a test that does so one time of twenty would in
99 of 100 such series); the power promised is not above the 95 % interval (exact, binomial) of what was found.

    python benches/a-a/run.py [--comparisons 100] [--seed 1] [--only sim|power|live] [--json FILE]

Ends with 0 when all hold, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from raidlab import compare, run_study
from raidlab.analysis.metrics.run_comparison import RunComparison
from raidlab.results import Run
from raidlab.run import execute
from raidlab.run.runner import InlineRunner
from raidlab.stats.power import power_of_error
from raidlab.stats.special import beta_cdf
from raidlab.study import LoadedStudy
from raidlab.study.load import load_study_text

DEVICE = Path(__file__).resolve().parents[2] / "devices" / "hdd-7200-bare.toml"
SLOWER = 1.05
EFFECT_PERCENT = 100 * (SLOWER - 1)
PROMISED = 0.9
PILOT_REPEATS = 200
# Of 100 equal pairs, 11 or more are called different once in 90 series where the test is right.
MOST_DIFFERENT = 0.1
STUDY = """
name = "a-a"
title = "A thing compared with itself"
array = [{{ name = "a", tree = "raid5(5, chunk=64KiB)" }}, {{ name = "b", tree = "raid5(5, chunk=64KiB)" }}]
workload = [{{ name = "work", read = {read}, size = "8KiB"{arrays} }}]
load = {{ depths = [8] }}

[sim]
device = "{device}"
warmup = {{ requests = 100 }}
measure = {{ requests = 500 }}
repeats = {repeats}

[live]
memory_member_size = "4MiB"
warmup = {{ duration = "5ms" }}
measure = {{ duration = "20ms" }}
repeats = {repeats}
"""


def slower_device() -> str:
    """The disk with every time 1.05 times as long."""
    # Where its parameters come from is no longer true of these.
    text = DEVICE.read_text(encoding="utf-8").partition("[provenance]")[0]
    text = re.sub(r"^rpm = .*$", f"rpm = {7200 / SLOWER!r}", text, flags=re.MULTILINE)

    def longer(found: re.Match[str]) -> str:
        return f"{found[1]}{float(found[2]) * SLOWER!r}"

    return re.sub(r"((?:\w+_)?ms = )(\d+\.\d+)", longer, text)


class Bench:
    """Studies, runs of them, and their comparisons."""

    def __init__(self, folder: Path, comparisons: int, seed: int) -> None:
        self.folder, self.comparisons, self.seed = folder, comparisons, seed
        (folder / "a.toml").write_text(DEVICE.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "b.toml").write_text(slower_device(), encoding="utf-8")

    def study(self, device: str, repeats: int, *, both: bool = False, read: float = 0.7) -> LoadedStudy:
        """The study with one of the disks; with one array or with both."""
        arrays = "" if both else ', arrays = ["a"]'
        text = STUDY.format(device=f"./{device}.toml", repeats=repeats, arrays=arrays, read=read)
        return load_study_text(text, self.folder / f"{device}-{repeats}.study.toml")

    def run(self, study: LoadedStudy, seed: int, on: str = "sim") -> Run:
        """One run."""
        return run_study(study, on=[on], out=self.folder / "runs", seed=seed)

    def found(self, pair: Callable[[int], RunComparison], title: str) -> dict[str, Any]:
        """How many of the comparisons show a difference, and how large it is."""
        shown, ratios = 0, []
        for number in range(self.comparisons):
            rows = pair(number).rows
            shown += any(row.difference.shown for row in rows)
            ratios += [row.difference.ratio.value or math.nan for row in rows if row.figure.kind == "throughput_mb_s"]
        low, high = binomial_interval(shown, self.comparisons)
        print(
            f"{title}: different {shown} of {self.comparisons} times ({100 * low:.1f} to {100 * high:.1f} %); "
            f"geometric mean of the ratios of throughput {math.exp(float(np.mean(np.log(ratios)))):.4f}",
            flush=True,
        )
        return {"title": title, "shown": shown, "of": self.comparisons, "low": low, "high": high}


def binomial_interval(count: int, n: int) -> tuple[float, float]:
    """The exact 95 % interval of a share: Clopper and Pearson, Biometrika 26 (1934) 404-413."""

    def solve(wanted: float, a: float, b: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if beta_cdf(middle, a, b) < wanted else (low, middle)
        return (low + high) / 2

    low = solve(0.025, count, n - count + 1) if count else 0.0
    high = solve(0.975, count + 1, n - count) if count < n else 1.0
    return low, high


def of_itself_in_the_simulator(bench: Bench) -> dict[str, Any]:
    """Runs that share nothing but what they are runs of."""
    study = bench.study("a", 5)

    def pair(number: int) -> RunComparison:
        return compare(*(bench.run(study, bench.seed + 2 * number + side) for side in (0, 1)))

    found = bench.found(pair, "simulator, A against A, 5 repeats each, throughput and p90 of reads and of writes")
    return found | {"holds": found["shown"] <= MOST_DIFFERENT * found["of"]}


def of_itself_live(bench: Bench) -> dict[str, Any]:
    """Two arrays of one tree in one run."""
    study = bench.study("a", 6, both=True)

    def pair(number: int) -> RunComparison:
        run = bench.run(study, bench.seed + number, "memory")
        return compare(run, run, arrays=("a", "b"))

    found = bench.found(pair, "live over memory, A against A, 6 pairs, throughput and p90 of reads and of writes")
    return found | {"holds": found["shown"] <= MOST_DIFFERENT * found["of"]}


def of_a_slower_one(bench: Bench) -> list[dict[str, Any]]:
    """A true difference of 5 %, and how surely it is found."""
    pilot = bench.run(bench.study("a", PILOT_REPEATS, read=1.0), bench.seed + 1_000_000)
    cells = pilot.cells
    spread_percent = 100 * float(np.std(np.log((cells["read_bytes"] / cells["elapsed_ns"]).to_numpy()), ddof=1))
    repeats, promised = 2, 0.0
    while promised < PROMISED:
        repeats += 1
        error_percent = spread_percent * math.sqrt(2 / repeats)
        promised = power_of_error(EFFECT_PERCENT, error_percent, 2 * repeats - 2)
    print(
        f"pilot of {PILOT_REPEATS}: a repeat's throughput varies by {spread_percent:.2f} %; {repeats} repeats each "
        f"promise to find {EFFECT_PERCENT:.0f} % with a power of {promised:.3f}",
        flush=True,
    )
    studies = [bench.study(device, repeats, read=1.0) for device in ("a", "b")]

    def pair(number: int, *, apart: int) -> RunComparison:
        seeds = [bench.seed + 2_000_000 + 2 * number, bench.seed + 2_000_000 + 2 * number + apart]
        runs = [bench.run(study, seed) for study, seed in zip(studies, seeds, strict=True)]
        return compare(*runs, metrics=("throughput_mb_s",))

    found = []
    for title, apart in (("seeds of their own", 1), ("the same seeds, in pairs", 0)):
        one = bench.found(lambda number, apart=apart: pair(number, apart=apart), f"simulator, B 5 % slower, {title}")
        found.append(one | {"promised": promised, "repeats": repeats, "holds": one["high"] >= promised})
    return found


def main() -> int:
    """Compare, and judge."""
    words = argparse.ArgumentParser(description="Compare things with themselves, and with slower ones.")
    words.add_argument("--comparisons", type=int, default=100)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", choices=["sim", "power", "live"])
    words.add_argument("--json", type=Path)
    asked = words.parse_args()
    # In this process: to start others would take longer than what they simulate.
    execute.PoolRunner = lambda stop, records, **_: InlineRunner(stop, records=records)  # type: ignore[misc, assignment]
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="raidlab-a-a-") as place:
        bench = Bench(Path(place), asked.comparisons, asked.seed)
        if asked.only in (None, "sim"):
            results.append(of_itself_in_the_simulator(bench))
        if asked.only in (None, "power"):
            results += of_a_slower_one(bench)
        if asked.only in (None, "live"):
            results.append(of_itself_live(bench))
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    wrong = [result["title"] for result in results if not result["holds"]]
    print("all hold" if not wrong else f"does not hold: {'; '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What comparing contents costs: the same cell with `--verify sample` and with `--verify off`, in interleaved pairs.

Purpose: no figure may show that contents are looked at. A pair is a run of both, in random order, a moment apart; cases
are shuffled within each round; the ratio is the median over pairs of the rate with a sample by that without, with an
interval that needs no distribution (order statistics, at least 95 %). Cases and targets are those of
`benches/against-fio`, and memory, where a request costs least.

    python benches/verify-cost/run.py [--pairs 9] [--seconds 1.5] [--only memory,zram,file] [--verify sample] [--cpu 1]

Status 1 if the interval of a case lies below 0.98 as a whole. Devices are made and removed here, which needs root.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

LEAST_RATIO = 0.98
MEMORY_BYTES = 256 << 20


def against_fio() -> Any:
    """The module that has the cases and the targets."""
    spec = importlib.util.spec_from_file_location("against_fio", Path(__file__).parents[1] / "against-fio" / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Measure and print the table; the exit status."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--pairs", type=int, default=9)
    words.add_argument("--seconds", type=float, default=1.5)
    words.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    words.add_argument("--only", default="memory,loop,zram,file")
    words.add_argument("--verify", default="sample", help="what is held against off: sample or full")
    words.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = words.parse_args()
    bench, order, targets = against_fio(), random.Random(1), given.only.split(",")
    cases = bench.cases(targets)
    found: dict[Any, list[float]] = {case: [] for case in cases}
    rates: dict[Any, list[float]] = {case: [] for case in cases}
    devices = [target for target in targets if target != "memory"]
    with bench.places(devices, given.folder) as there:
        there["memory"] = {"kind": "memory", "size_bytes": MEMORY_BYTES}
        for number in range(given.pairs):
            shuffled = order.sample(cases, len(cases))
            for case in shuffled:
                per_s = {}
                for verify in order.sample([given.verify, "off"], 2):
                    measure = {"duration": round(given.seconds * 1e9)}
                    per_s[verify] = bench.raidlab(case, there[case.target], given.cpu, measure, verify).per_s
                found[case].append(per_s[given.verify] / per_s["off"])
                rates[case].append(per_s["off"])
            print(f"round {number + 1} of {given.pairs}", file=sys.stderr)
    slow = 0
    print(f"{'':8}{'':24}{'depth':>6}{'off':>12}{'ratio':>8}  95 % interval")
    for case in cases:
        low, high = bench.median_interval(found[case])
        slow += high < LEAST_RATIO
        rate = bench.rate(case, statistics.median(rates[case]))
        ratio = statistics.median(found[case])
        print(f"{case.target:8}{case.name:24}{case.depth:>6}{rate:>12}{ratio:>8.3f}  {low:.3f} to {high:.3f}")
    print(f"medians of {given.pairs} interleaved pairs; {slow} cases certainly slower than {LEAST_RATIO}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

"""What does handing out cells cost? Processor time of a sweep on a Dask cluster, by who takes it.

Purpose: to hold the command, which hands out cells and takes back answers, to at most 5 % of the processor time on an
idle machine. Scheduler and workers are processes of their own; time is counted from the first cell that is handed out
until the last is back, so start, tables and report are left out.

    python benches/dispatch/run.py [--arrays 15] [--repeats 5] [--workers 2]

Status 1 where the median share of the command is above 5 %. Nothing else should run.

Reference: docs/internals/benchmarks.md, "What handing out costs".
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import patch

from raidlab.api import run_study
from raidlab.formats.toml import toml_text
from raidlab.run.dask import DaskRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))

from machines import cluster_of

WANTED = 0.05
STUDY = Path(__file__).resolve().parents[2] / "studies" / "which-wins" / "study.toml"


def spent_s(pid: int) -> float:
    """Processor time of a process so far, in seconds, by the scheduler's own account (nanoseconds) of its threads."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


class Clock:
    """Processor time of command, main thread, scheduler and workers, from the first cell to the last answer."""

    def __init__(self, others: dict[str, list[int]]) -> None:
        self._others = others
        self._began: dict[str, float] | None = None
        self.took: dict[str, float] = {}

    def _now(self) -> dict[str, float]:
        one = {"command": time.process_time(), "main thread": time.thread_time(), "clock": time.monotonic()}
        return one | {name: sum(map(spent_s, pids)) for name, pids in self._others.items()}

    def begin(self) -> None:
        """At the first cell; later calls change nothing."""
        if self._began is None:
            self._began = self._now()

    def end(self) -> None:
        """When all answers are there."""
        assert self._began is not None
        now = self._now()
        self.took = {name: now[name] - self._began[name] for name in now}


def one_run(arrays: int, workers: int) -> dict[str, float]:
    """Seconds by who took them, of one run of the first ``arrays`` of `which-wins`."""
    document = tomllib.loads(STUDY.read_text(encoding="utf-8"))
    document |= {"array": document["array"][:arrays], "figure": []}
    with tempfile.TemporaryDirectory() as place, cluster_of(Path(place), workers, replaced=False) as (address, living):
        study = Path(place) / "study.toml"
        study.write_text(toml_text(document), encoding="utf-8")
        children = [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]
        mine = [one.pid for one in living]
        clock = Clock({"workers": mine, "scheduler": [pid for pid in children if pid not in mine]})

        class Timed(DaskRunner):
            """The runner, with a clock beside it."""

            def submit(self, key: Any, request: str) -> None:
                clock.begin()
                super().submit(key, request)

            def close(self) -> Any:
                # Once: to look at every answer would cost more than what is measured.
                clock.end()
                return super().close()

        with patch("raidlab.run.execute.DaskRunner", Timed):
            run_study(study, on=["sim"], out=place, cluster=address)
    return clock.took


def main() -> int:
    """Run the sweep some times over and print who took what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arrays", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    words = parser.parse_args()
    shares = []
    for _ in range(words.repeats):
        took = one_run(words.arrays, words.workers)
        whole = took["command"] + took["workers"] + took["scheduler"]
        shares.append(took["command"] / whole)
        print(
            f"command {took['command']:.2f} s ({100 * shares[-1]:.1f} %), its main thread {took['main thread']:.2f} "
            f"({100 * took['main thread'] / whole:.1f} %), workers {took['workers']:.2f}, scheduler "
            f"{took['scheduler']:.2f}; {took['clock']:.1f} s by the clock",
            flush=True,
        )
    median = statistics.median(shares)
    print(f"the command's share: median {100 * median:.1f} % of {words.repeats} (wanted: at most {100 * WANTED:.0f} %)")
    return 0 if median <= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())

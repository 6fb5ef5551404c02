"""The direct engine against fio: the same requests to the same target, in interleaved pairs.

Purpose: a meter should cost next to nothing, and no more than the one everybody uses. Settings are equal on both sides:
io_uring, O_DIRECT, registered files and buffers, one job or worker bound to the same processor, waiting in the kernel,
4 KiB random or 1 MiB sequential, closed loop; times recorded for every request; what is written never repeated
(`refill_buffers`). fio is given the batches it does best with, found in a trial of each case.

Targets: `null` (completes at once: the meter itself), a loop device over tmpfs, a zram device, a file on a file system
of a disk. Devices are made, filled with random bytes and removed here, which needs root.

A pair is a run of both, in random order, a moment apart; cases are shuffled within each round. The ratio is the median
over pairs of raidlab's rate by fio's; its interval needs no distribution (order statistics, at least 95 %).

    python benches/against-fio/run.py [--pairs 9] [--seconds 1.5] [--only null,zram] [--cpu 1]
        [--folder DIR] [--json FILE]

Reference: J. Axboe, fio; Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raidlab import _core

KIB, MIB = 1 << 10, 1 << 20
SMALL, LARGE = 4 * KIB, MIB
DEPTHS = (1, 32, 128)
NULL_BYTES = 64 << 30
DEVICE_BYTES = 512 * MIB
WARMUP_S = 0.2
# Most submitted and taken at once by fio: its default, and what makes it fast.
BATCHES = (1, 16, 32)
TARGETS = ("null", "loop", "zram", "file")


@dataclass(frozen=True)
class Case:
    """What both are asked to do."""

    target: str
    name: str
    size: int
    writes: bool
    depth: int

    @property
    def random(self) -> bool:
        """Whether addresses are random."""
        return self.size == SMALL


@dataclass
class Run:
    """What one of them gave."""

    per_s: float
    user_ns: float
    system_ns: float


@dataclass
class Pairs:
    """All that was measured of a case."""

    batch: int
    ours: list[Run] = field(default_factory=list)
    theirs: list[Run] = field(default_factory=list)


def cases(targets: list[str]) -> list[Case]:
    """All of them; a sequence is one request of 1 MiB after another, so depth 1 and 32 say enough."""
    small = [
        Case(target, f"4 KiB random {'write' if writes else 'read'}", SMALL, writes, depth)
        for target in targets
        for writes in (False, True)
        for depth in DEPTHS
    ]
    large = [
        Case(target, f"1 MiB sequential {'write' if writes else 'read'}", LARGE, writes, depth)
        for target in targets
        if target != "null"
        for writes in (False, True)
        for depth in (1, 32)
    ]
    return small + large


def sh(*words: str) -> str:
    """Run a command; its output, or an end with what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def places(targets: list[str], folder: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """The targets as raidlab names them, filled with random bytes, gone afterwards."""
    made: dict[str, dict[str, Any]] = {"null": {"kind": "null", "size_bytes": NULL_BYTES}}
    with contextlib.ExitStack() as stack:
        if "loop" in targets:
            memory = Path(tempfile.mkdtemp(prefix="raidlab-fio-", dir="/dev/shm"))
            stack.callback(shutil.rmtree, memory)
            sh("truncate", "-s", str(DEVICE_BYTES), str(memory / "image"))
            device = sh("losetup", "-f", "--show", "--direct-io=on", "-b", "4096", str(memory / "image"))
            stack.callback(sh, "losetup", "-d", device)
            made["loop"] = {"kind": "block", "path": device, "destroy": True}
        if "zram" in targets:
            number = sh("cat", "/sys/class/zram-control/hot_add")
            stack.callback(Path("/sys/class/zram-control/hot_remove").write_text, number)
            Path(f"/sys/block/zram{number}/disksize").write_text(str(DEVICE_BYTES))
            made["zram"] = {"kind": "block", "path": f"/dev/zram{number}", "destroy": True}
        if "file" in targets:
            room = Path(tempfile.mkdtemp(prefix="raidlab-fio-", dir=folder))
            stack.callback(shutil.rmtree, room)
            made["file"] = {"kind": "file", "path": str(room / "data"), "size_bytes": DEVICE_BYTES}
        for target in targets:
            if made[target]["kind"] == "block":
                fill = Case(target, "fill", LARGE, True, 8)
                raidlab(fill, made[target], None, {"requests": DEVICE_BYTES // LARGE})
            elif made[target]["kind"] == "file":
                raidlab(Case(target, "fill", SMALL, False, 1), made[target], None, {"requests": 1})
        yield made


def raidlab(case: Case, target: dict[str, Any], cpu: int | None, measure: dict[str, Any], verify: str = "off") -> Run:
    """A run of the direct engine; fio writes to the same places, so contents are not compared beside it."""
    cell = {
        "engine": "direct",
        "seed": random.getrandbits(32),
        "targets": [target],
        "interface": "io_uring",
        "cpus": [] if cpu is None else [cpu],
        "load": {"kind": "closed", "depth": case.depth},
        "workload": {
            "read": 0.0 if case.writes else 1.0,
            "size": {"kind": "fixed", "bytes": case.size},
            "address": {"kind": "uniform" if case.random else "sequential"},
        },
        "warmup": {} if "requests" in measure else {"duration": round(WARMUP_S * 1e9)},
        "measure": measure,
        "verify": verify,
    }
    answer = _core.run_cell(json.dumps(cell), None)
    if answer["stopped_by"]:
        sys.exit(answer["stopped_by"])
    used, count = answer["accounting"], max(answer["requests"], 1)
    return Run(answer["requests"] / answer["elapsed_ns"] * 1e9, used["user_ns"] / count, used["system_ns"] / count)


def fio(case: Case, target: dict[str, Any], cpu: int, seconds: float, batch: int) -> Run:
    """A run of fio with the same settings."""
    pattern = ("rand" if case.random else "") + ("write" if case.writes else "read")
    words = [
        "fio", "--name=against", "--output-format=json", "--thread", "--group_reporting",
        f"--rw={pattern}", f"--bs={case.size}", f"--iodepth={case.depth}", f"--cpus_allowed={cpu}",
        "--time_based", f"--runtime={seconds}s", f"--ramp_time={WARMUP_S}s", "--norandommap", "--randrepeat=0",
        f"--iodepth_batch_submit={batch}", "--iodepth_batch_complete_min=1", f"--iodepth_batch_complete_max={batch}",
    ]  # fmt: skip
    if case.writes:
        words.append("--refill_buffers=1")
    if target["kind"] == "null":
        words += ["--ioengine=null", f"--size={NULL_BYTES}"]
    else:
        words += ["--ioengine=io_uring", "--direct=1", "--registerfiles=1", "--fixedbufs=1", "--allow_file_create=0"]
        words += [f"--filename={target['path']}", f"--size={DEVICE_BYTES}"]
    job = json.loads(sh(*words))["jobs"][0]
    if job["error"]:
        sys.exit(f"fio failed with error {job['error']} on {case}")
    side = job["write" if case.writes else "read"]
    time_ns = job["job_runtime"] * 1e6
    share = time_ns / 100 / max(side["total_ios"], 1)
    return Run(side["iops"], job["usr_cpu"] * share, job["sys_cpu"] * share)


def best_batch(case: Case, target: dict[str, Any], cpu: int, seconds: float) -> int:
    """The batches that fio does best with here."""
    batches = [batch for batch in BATCHES if batch <= case.depth]
    if len(batches) == 1:
        return batches[0]
    return max(batches, key=lambda batch: fio(case, target, cpu, seconds / 3, batch).per_s)


def median_interval(values: list[float]) -> tuple[float, float]:
    """The order statistics between which the median lies with at least 95 %; the whole range of too few."""
    ordered, count = sorted(values), len(values)
    beyond, rank = 0.0, 0
    while beyond + math.comb(count, rank) / 2**count <= 0.025:
        beyond += math.comb(count, rank) / 2**count
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[count - rank]


def measure(given: argparse.Namespace) -> dict[Case, Pairs]:
    """All pairs of all cases."""
    order = random.Random(given.seed)
    targets = given.only.split(",") if given.only else list(TARGETS)
    found: dict[Case, Pairs] = {}
    with places(targets, given.folder) as there:
        wanted = [case for case in cases(targets) if given.match in f"{case.target} {case.name} {case.depth}"]
        for case in wanted:
            found[case] = Pairs(best_batch(case, there[case.target], given.cpu, given.seconds))
        for number in range(given.pairs):
            order.shuffle(wanted)
            for case in wanted:
                target, pairs = there[case.target], found[case]
                both = [
                    lambda c=case, t=target: raidlab(c, t, given.cpu, {"duration": round(given.seconds * 1e9)}),
                    lambda c=case, t=target, b=pairs.batch: fio(c, t, given.cpu, given.seconds, b),
                ]
                ours_first = order.random() < 0.5
                first, second = (run() for run in (both if ours_first else both[::-1]))
                mine, other = (first, second) if ours_first else (second, first)
                pairs.ours.append(mine)
                pairs.theirs.append(other)
            print(f"round {number + 1} of {given.pairs}", file=sys.stderr)
    return dict(sorted(found.items(), key=lambda item: cases(targets).index(item[0])))


def rate(case: Case, per_s: float) -> str:
    """A rate for reading."""
    if case.size == LARGE:
        return f"{per_s * LARGE / 1e6:.0f} MB/s"
    return f"{per_s / 1e6:.2f} M/s" if per_s >= 1e6 else f"{per_s / 1e3:.1f} k/s"


def show(found: dict[Case, Pairs]) -> list[dict[str, Any]]:
    """Print the table; its rows."""
    titles = ["raidlab", "fio", "ratio", "95 % interval", "user CPU", "ours", "fio's"]
    form = "{:5} {:23} {:>5} {:>10} {:>10} {:>6}  {:14} {:>8} {:>8} {:>8}"
    print(form.format("", "", "depth", *titles))
    rows = []
    for case, pairs in found.items():
        ratios = [a.per_s / b.per_s for a, b in zip(pairs.ours, pairs.theirs, strict=True)]
        # Of a pair in which the kernel counted no user time for fio there is no ratio.
        user = [a.user_ns / b.user_ns for a, b in zip(pairs.ours, pairs.theirs, strict=True) if b.user_ns]
        low, high = median_interval(ratios)
        middle = [statistics.median(r.per_s for r in side) for side in (pairs.ours, pairs.theirs)]
        cpu = [statistics.median(r.user_ns for r in side) for side in (pairs.ours, pairs.theirs)]
        words = [rate(case, value) for value in middle]
        ratio = statistics.median(ratios)
        user_ratio = statistics.median(user) if len(user) * 2 > len(ratios) else None
        print(
            form.format(
                case.target,
                case.name,
                case.depth,
                *words,
                f"{ratio:.2f}",
                f"{low:.2f} to {high:.2f}",
                "-" if user_ratio is None else f"{user_ratio:.2f}",
                *(f"{value:.0f} ns" for value in cpu),
            )
        )
        rows.append(
            {
                "target": case.target,
                "case": case.name,
                "depth": case.depth,
                "fio_batch": pairs.batch,
                "ratio": ratio,
                "ratio_low": low,
                "ratio_high": high,
                "user_cpu_ratio": user_ratio,
                "raidlab": [vars(run) for run in pairs.ours],
                "fio": [vars(run) for run in pairs.theirs],
            }
        )
    return rows


def main() -> None:
    """Measure and print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--pairs", type=int, default=9)
    words.add_argument("--seconds", type=float, default=1.5)
    words.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the processor both are bound to")
    words.add_argument("--only", default="", help=f"of {','.join(TARGETS)}")
    words.add_argument("--match", default="", help="only cases whose line holds this")
    words.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the file lies")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    started = time.monotonic()
    rows = show(measure(given))
    print(f"medians of {given.pairs} interleaved pairs; {time.monotonic() - started:.0f} s; {sh('fio', '--version')}")
    if given.json:
        given.json.write_text(json.dumps({"cpu": given.cpu, "seconds": given.seconds, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

"""Half an hour at full load on emulated disks: is memory flat, is no request lost, is none counted twice?

Purpose: what goes wrong only after millions of requests. Two cells run one after the other, both with unreadable
sectors on one member, deep queues and nothing but the array, the load, the engine and the disk models at work:

- a RAID 5 for five sixths of the time: small writes and reads of several sizes; what cannot be read is made again from
  the other members, so operations fail and requests do not;
- a RAID 0 for the rest, one member of which cannot be read at all, so requests fail too.

Verdict, for each cell:

- flat: from the end of the first tenth to the end of the run, the resident memory of the process grows by no more than
  what the record takes (for each second of the run's clock a row, and its histogram: counted in the result) and two
  huge pages beside. What the finished result takes on its way to Python is shown, and no part of the verdict: it comes
  once. The first tenth is when every place for a request has met the largest work there
  is, a degraded read of the largest size, and has got its memory: some 250,000 requests, so a soak of seconds needs
  --allow-mib 64;
- complete: requests and operations that began, counted where they begin, are those that ended well and those that
  failed, counted where they end; none ended without having begun;
- counted once: what the recorder and the members' own counts say fits these numbers, but for what was on its way when
  the measuring window closed. On the RAID 0 a request that goes well is one operation, so these must be equally many.

Lateness is printed and judged as in every run, but no part of the verdict: a busy machine is late, not wrong.

    python benches/soak/run.py [--minutes 30] [--speed 200] [--json FILE]

Ends with 0 when all hold, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

from raidlab import _core

DEVICE = Path(__file__).resolve().parents[2] / "devices" / "hdd-7200-bare.toml"
DEPTH = 64
# Bytes of the record for a second of the run's clock (its row, where its histogram lies, what the allocator adds;
# twice, as a list that is full is moved to one of double the size) and for an occupied bucket of its histogram.
ROW_BYTES = 2 * (32 + 16 + 16)
BUCKET_BYTES = 8
Stage = tuple[str, str, float, dict[str, Any], int]
# name, tree, share of the time, workload, of how many reads of one member one fails
STAGES: list[Stage] = [
    (
        "raid5",
        "raid5(5, chunk=64KiB)",
        5 / 6,
        {
            "read": 0.5,
            "size": {"kind": "table", "bytes": [4096, 16384, 65536, 131072], "weights": [8, 4, 2, 1]},
            "address": {"kind": "uniform"},
            "align": 4096,
        },
        7,
    ),
    (
        "raid0",
        "raid0(4, chunk=64KiB)",
        1 / 6,
        {
            "read": 0.7,
            "size": {"kind": "fixed", "bytes": 8192},
            "address": {"kind": "uniform"},
            "align": 8192,
        },
        1,
    ),
]


class Memory(threading.Thread):
    """Samples of the resident memory of this process, at most a few hundred in so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(daemon=True)
        self.seconds = seconds
        self.samples: list[tuple[float, int]] = []
        self._over = threading.Event()

    def run(self) -> None:
        """Sample until told to stop."""
        started = time.monotonic()
        pause = max(self.seconds / 300, 0.05)
        while not self._over.wait(pause):
            self.samples.append((time.monotonic() - started, resident_bytes()))

    def stop(self) -> None:
        """One last sample."""
        self._over.set()
        self.join()
        self.samples.append((math.inf, resident_bytes()))

    def growth_bytes(self) -> int:
        """From the end of the first tenth to the highest sample after it while the cell ran."""
        running = [resident for at, resident in self.samples if self.seconds / 10 <= at <= self.seconds]
        running = running or [resident for _, resident in self.samples]
        return max(running) - running[0]


def resident_bytes() -> int:
    """Resident memory of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    sys.exit("/proc/self/status has no VmRSS: this needs Linux")


def request(stage: Stage, seconds: float, speed: float, seed: int) -> str:
    """A cell that lasts so long on the system's clock."""
    _, tree, share, workload, every = stage
    device = tomllib.loads(DEVICE.read_text(encoding="utf-8"))
    return json.dumps(
        {
            "engine": "live",
            "seed": seed,
            "sector_bytes": 4096,
            "tree": json.loads(_core.parse_tree(tree)),
            "members": [{"kind": "emulated", "device": device}],
            "speed": speed,
            "faults": [{"leaf": 1, "after_operations": 100, "kind": {"kind": "media", "every": every}}],
            "load": {"kind": "closed", "depth": DEPTH},
            "workload": workload,
            "measure": {"duration": round(seconds * share * speed * 1e9)},
        }
    )


def faults_of(answer: dict[str, Any], *, one_to_one: bool) -> list[str]:
    """What does not add up."""
    found = []
    accounts = answer["facts"]["engine"]["accounts"]
    requests, operations = accounts["requests"], accounts["operations"]
    for name, account in (("requests", requests), ("operations", operations)):
        ended = account["completed"] + account["failed"]
        if account["submitted"] != ended:
            found.append(f"{account['submitted']} {name} began and {ended} ended")
    if accounts["unknown"]:
        found.append(f"{accounts['unknown']} requests ended that had not begun")
    recorded = sum(answer[part]["requests"] + answer[part]["failed"] for part in ("read", "write"))
    ended = requests["completed"] + requests["failed"]
    if not ended - DEPTH <= recorded <= ended:
        found.append(f"{ended} requests ended and {recorded} are in the record")
    counted = sum(member["reads"] + member["writes"] for member in answer["members"])
    if counted > operations["completed"]:
        found.append(f"members count {counted} operations of {operations['completed']} completed")
    if one_to_one and requests["completed"] != operations["completed"]:
        found.append(f"{requests['completed']} requests went well, with {operations['completed']} operations")
    if not operations["failed"] or bool(requests["failed"]) != one_to_one:
        found.append(f"failures did not come as provoked: {operations['failed']} and {requests['failed']}")
    if answer["stopped_by"] or answer["interrupted"]:
        found.append(str(answer["stopped_by"] or "interrupted"))
    return found


def record_bytes(answer: dict[str, Any]) -> int:
    """What the record of a run takes in the engine, at most."""
    snapshots = answer["snapshots"]
    return ROW_BYTES * len(snapshots["time_ns"]) + BUCKET_BYTES * len(snapshots["histograms"]["time_ns"])


def soak(stage: Stage, words: argparse.Namespace) -> dict[str, Any]:
    """Run one cell; the figures and what is wrong with them."""
    name, _, share, _, every = stage
    seconds = words.minutes * 60
    memory = Memory(seconds * share)
    memory.start()
    answer = _core.run_cell(request(stage, seconds, words.speed, words.seed), None)
    memory.stop()
    wrong = faults_of(answer, one_to_one=every == 1)
    allowed = (words.allow_mib << 20) + record_bytes(answer)
    growth = memory.growth_bytes()
    if growth > allowed:
        wrong.append(f"memory grew by {growth / 2**20:.1f} MiB; accepted: {allowed / 2**20:.1f} MiB")
    engine = answer["facts"]["engine"]
    return {
        "stage": name,
        "minutes": seconds * share / 60,
        "requests": engine["accounts"]["requests"],
        "operations": engine["accounts"]["operations"],
        "resident_mib": [round(resident / 2**20, 1) for _, resident in memory.samples],
        "growth_mib": round(growth / 2**20, 2),
        "allowed_mib": round(allowed / 2**20, 2),
        "lateness": engine["lateness"],
        "lateness_verdict": answer["checks"][0]["verdict"] if answer["checks"] else None,
        "wrong": wrong,
    }


def tell(result: dict[str, Any]) -> None:
    """A few lines a cell."""
    requests, operations, late = result["requests"], result["operations"], result["lateness"]
    resident = result["resident_mib"]
    print(f"{result['stage']}, {result['minutes']:.1f} minutes")
    for name, account in (("requests", requests), ("operations", operations)):
        words = f"{account['submitted']:,} begun = {account['completed']:,} completed + {account['failed']:,} failed"
        print(f"  {name}: {words}")
    print(
        f"  memory: {resident[0]} MiB after the first sample, growth after the first tenth {result['growth_mib']} MiB"
        f" of {result['allowed_mib']} MiB allowed; {resident[-1]} MiB with the result in Python"
    )
    print(
        f"  lateness: median {late['p50_ns'] / 1e3:.1f} us, 99th percentile {late['p99_ns'] / 1e3:.1f} us of a mean"
        f" service of {late['mean_service_ns'] / 1e3:.0f} us: {result['lateness_verdict']}"
    )
    for fault in result["wrong"]:
        print(f"  WRONG: {fault}")


def main() -> int:
    """Soak and print the verdict."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--minutes", type=float, default=30.0)
    words.add_argument("--speed", type=float, default=200.0)
    words.add_argument("--allow-mib", type=int, default=4, help="growth of memory beside that of the record")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    results = []
    for stage in STAGES:
        results.append(soak(stage, given))
        tell(results[-1])
        if given.json:
            given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sound = not any(result["wrong"] for result in results)
    print("verdict: memory flat, nothing lost, nothing counted twice" if sound else "verdict: NOT SOUND")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())

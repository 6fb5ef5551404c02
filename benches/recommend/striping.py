"""The chunk that guarantees most, by simulation, beside the rules that were printed for it.

    .venv/bin/python benches/recommend/striping.py

For each number of requests outstanding the chunk is looked for that maximises the least share, over request sizes, of
what the best chunk gives that size; its slope over concurrency, in units of positioning time times rate, is the figure
that Chen and Patterson print for RAID 0 (a quarter). The disk has the mechanics of an IBM 0661.

Claims of the abstracts (the papers themselves, with their workloads, could not be had; sizes are our own):

- P. M. Chen and D. A. Patterson, *Maximizing Performance in a Striped Disk Array*, ISCA 1990: the choice depends on
  concurrency and on positioning time times rate alone, and can be made without knowledge of the workload.
- P. M. Chen and E. K. Lee, *Striping in a RAID Level 5 Disk Array*, SIGMETRICS 1995: reads of RAID 5 want the chunk
  that RAID 0 wants; writes one that is four times smaller.
"""

from __future__ import annotations

import json
import math

from raidlab import _core
from raidlab.analysis.model import rules
from raidlab.run.runner import run_request

REVOLUTION_MS, SECTORS, SECTOR_BYTES = 13.9, 48, 512
SEEK = {"kind": "lee", "min_ms": 2.0, "avg_ms": 12.5, "max_ms": 25.0}
DISK = {
    "kind": "hdd",
    "revolution_ms": REVOLUTION_MS,
    "heads": 14,
    "sector_bytes": SECTOR_BYTES,
    "zones": [{"cylinders": 949, "sectors_per_track": SECTORS}],
    "seek": SEEK,
    "read_overhead_ms": 0.0,
    "write_overhead_ms": 0.0,
}
POSITIONING_MS = 12.5 + REVOLUTION_MS / 2
RATE_MB_S = SECTORS * SECTOR_BYTES / (REVOLUTION_MS * 1e3)
PRODUCT_BYTES = POSITIONING_MS * 1e-3 * RATE_MB_S * 1e6
DEPTHS = (1, 2, 4, 8, 12, 16)
SIZES = (4 << 10, 16 << 10, 400 << 10, 1536 << 10)
# From a sector on, finer than what is looked for.
CHUNKS = tuple(SECTOR_BYTES * max(1, round(2 ** (step / 2))) for step in range(24))
# Angles of the disks to one another are fixed in a run, so several are added up.
SEEDS, REQUESTS, WARM_UP = (1, 2, 3), 1000, 200
# The top is flat: the middle of all chunks that guarantee nearly as much says where it is.
NEARLY = 0.99
CASES = {
    "reads of RAID 0 of 16": ("raid0(16, chunk={})", 1.0),
    "reads of RAID 5 of 17": ("raid5(17, chunk={})", 1.0),
    "writes of RAID 5 of 17": ("raid5(17, chunk={})", 0.0),
}


def rate(tree: str, read: float, size_bytes: int, depth: int) -> float:
    """Requests a second over all seeds."""
    return math.fsum(_rate(tree, read, size_bytes, depth, seed) for seed in SEEDS) / len(SEEDS)


def _rate(tree: str, read: float, size_bytes: int, depth: int, seed: int) -> float:
    cell = {
        "engine": "sim",
        "seed": seed,
        "tree": json.loads(_core.parse_tree(tree)),
        "members": [DISK],
        "load": {"kind": "closed", "depth": depth},
        "workload": {
            "read": read,
            "size": {"kind": "fixed", "bytes": size_bytes},
            "address": {"kind": "uniform"},
            "align": "sector",
        },
        "warmup": {"requests": WARM_UP},
        "measure": {"requests": REQUESTS},
    }
    answer = run_request(json.dumps(cell))
    return float(answer["requests"]) / float(answer["elapsed_ns"]) * 1e9


def guarantees(text: str, read: float, depth: int) -> dict[int, float]:
    """By chunk the least share, over sizes, of what the best chunk gives that size."""
    rates = {size: [rate(text.format(chunk), read, size, depth) for chunk in CHUNKS] for size in SIZES}
    return {chunk: min(found[at] / max(found) for found in rates.values()) for at, chunk in enumerate(CHUNKS)}


def middle_of_best(found: dict[int, float]) -> float:
    """The middle, by logarithm, of the chunks that guarantee nearly the most."""
    near = [math.log(chunk) for chunk, least in found.items() if least >= NEARLY * max(found.values())]
    return math.exp(math.fsum(near) / len(near))


def share_by_rule(found: dict[int, float], depth: int, slope_printed: float) -> float:
    """Of the most that a chunk guarantees, what that of the printed rule for a known concurrency does."""
    chunk = rules.chunk_raid0_bytes(POSITIONING_MS, RATE_MB_S, depth, slope_printed)
    near = min(CHUNKS, key=lambda one: abs(math.log(one / chunk)))
    return found[near] / max(found.values())


def slope(best: dict[int, float]) -> float:
    """Of the best chunk over concurrency less one, through half a kilobyte, in units of the product."""
    pairs = [(depth - 1, chunk - rules.SECTOR_BYTES) for depth, chunk in best.items()]
    return math.fsum(x * y for x, y in pairs) / math.fsum(x * x for x, _ in pairs) / PRODUCT_BYTES


def main() -> None:
    """Print the best chunk at each concurrency, the slope, and what the rules give of it."""
    print(f"positioning {POSITIONING_MS:.2f} ms x {RATE_MB_S:.3f} MB/s = {PRODUCT_BYTES / 1024:.1f} KiB")
    unknown = rules.chunk_raid0_unknown_bytes(POSITIONING_MS, RATE_MB_S)
    unknown_raid5 = rules.chunk_raid5_bytes(POSITIONING_MS, RATE_MB_S)
    for name, (text, read) in CASES.items():
        by_depth = {depth: guarantees(text, read, depth) for depth in DEPTHS}
        best = {depth: middle_of_best(found) for depth, found in by_depth.items()}
        print(f"{name}: slope {slope(best):.3f}")
        for depth, found in by_depth.items():
            share = 100 * share_by_rule(found, depth, 0.25 if read else 0.05)
            most = 100 * max(found.values())
            print(f"  {depth:2} outstanding: {best[depth] / 1024:6.1f} KiB, {most:.0f} %; by rule {share:.0f} %")
        chunk = unknown if "RAID 0" in name else unknown_raid5
        near = min(CHUNKS, key=lambda one: abs(math.log(one / chunk)))
        least = {one: min(found[one] for found in by_depth.values()) for one in CHUNKS}
        share = 100 * least[near] / max(least.values())
        print(f"  load unknown: {near / 1024:.1f} KiB by rule, {share:.0f} % of the best chunk's guarantee", flush=True)


if __name__ == "__main__":
    main()

"""raidlab's own arrays against btrfs with the same profile over the same six loop devices.

Purpose: to know that what raidlab itself costs does not decide what an array of it measures. Both run the same requests
from the same engine: an array of raidlab's over the devices, and one file of a btrfs made over them.

Rounds are interleaved: each makes a raidlab array and a btrfs of every profile in turn, in a shuffled order, and the
ratios are those of the same round. Devices are files in tmpfs behind loop devices, made and removed here (as root).

    python benches/against-btrfs/run.py [--rounds 9] [--seconds 1.0] [--json FILE]

Reference: btrfs(5) profiles; Hoefler and Belli, Scientific Benchmarking of Parallel Computing Systems, SC 2015.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raidlab import _core
from raidlab.stats import ratio_interval

DEVICES = 6
DEVICE_BYTES = 384 << 20
FILE_BYTES = 640 << 20
CHUNK = "64KiB"
TREES = {
    "raid0": f"raid0(6, chunk={CHUNK})",
    "raid10": f"raid10(6, chunk={CHUNK})",
    "raid5": f"raid5(6, chunk={CHUNK})",
    "raid6": f"raid6(6, chunk={CHUNK})",
}
KIB = 1024
# name, bytes, address, read share, outstanding
CASES: list[tuple[str, int, str, float, int]] = [
    ("sequential 1 MiB write", 1024 * KIB, "sequential", 0.0, 4),
    ("sequential 1 MiB read", 1024 * KIB, "sequential", 1.0, 4),
    ("random 4 KiB write", 4 * KIB, "uniform", 0.0, 16),
    ("random 4 KiB read", 4 * KIB, "uniform", 1.0, 16),
    ("random 64 KiB write", 64 * KIB, "uniform", 0.0, 16),
    ("random 64 KiB read", 64 * KIB, "uniform", 1.0, 16),
]


def sh(*words: str) -> str:
    """Run a command; its output, or an end with what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def loop_devices() -> Iterator[list[str]]:
    """Six loop devices over files in tmpfs, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="raidlab-btrfs-", dir="/dev/shm"))
    devices: list[str] = []
    try:
        for index in range(DEVICES):
            file = folder / f"member-{index}"
            with file.open("wb") as handle:
                # Pages that exist and hold something: the first write to a page of tmpfs costs many times the second.
                for _ in range(DEVICE_BYTES >> 20):
                    handle.write(os.urandom(1 << 20))
            devices.append(sh("losetup", "-f", "--show", "--direct-io=on", "-b", "4096", str(file)))
        yield devices
    finally:
        for device in devices:
            subprocess.run(["losetup", "-d", device], check=False)
        shutil.rmtree(folder)


@contextlib.contextmanager
def btrfs(devices: list[str], profile: str) -> Iterator[Path]:
    """A mounted btrfs of this profile for data; its metadata is mirrored, its data neither copied nor checksummed.

    Nothing is discarded: that takes pages from tmpfs, and whoever writes next would pay for new ones.
    """
    sh("mkfs.btrfs", "-q", "-f", "--nodiscard", "-d", profile, "-m", "raid1", *devices)
    folder = Path(tempfile.mkdtemp(prefix="raidlab-btrfs-mount-"))
    sh("mount", "-t", "btrfs", "-o", "nodatacow,noatime,nodiscard", devices[0], str(folder))
    try:
        yield folder
    finally:
        sh("umount", str(folder))
        folder.rmdir()
        sh("wipefs", "-q", "-a", *devices)


def cell(case: tuple[str, int, str, float, int], tree: str, members: list[dict[str, Any]], seconds: float) -> str:
    """The request to raidlab's engine."""
    _, size, address, read_fraction, depth = case
    return json.dumps(
        {
            "engine": "live",
            "seed": 1,
            "tree": json.loads(_core.parse_tree(tree)),
            "members": members,
            "load": {"kind": "closed", "depth": depth},
            "workload": {
                "read": read_fraction,
                "size": {"kind": "fixed", "bytes": size},
                "address": {"kind": address},
                "align": size,
            },
            "warmup": {"duration": round(seconds / 5 * 1e9)},
            "measure": {"duration": round(seconds * 1e9)},
        }
    )


def mb_s(text: str) -> float:
    """Run a cell; MB/s."""
    answer = _core.run_cell(text, None)
    if answer["stopped_by"]:
        sys.exit(answer["stopped_by"])
    return answer["all"]["bytes"] / answer["elapsed_ns"] * 1e3


def round_of(devices: list[str], profile: str, seconds: float, order: random.Random) -> dict[str, tuple[float, float]]:
    """One round of a profile: (raidlab, btrfs) in MB/s for each case."""

    def ours() -> list[float]:
        members = [{"kind": "block", "path": device, "destroy": True} for device in devices]
        return [mb_s(cell(case, TREES[profile], members, seconds)) for case in CASES]

    def theirs() -> list[float]:
        with btrfs(devices, profile) as folder:
            members = [{"kind": "file", "path": str(folder / "data"), "size_bytes": FILE_BYTES}]
            return [mb_s(cell(case, "member", members, seconds)) for case in CASES]

    if order.random() < 0.5:
        mine, other = ours(), theirs()
    else:
        other, mine = theirs(), ours()
    return {case[0]: (a, b) for case, a, b in zip(CASES, mine, other, strict=True)}


def main() -> None:
    """Measure and print the table."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=9)
    words.add_argument("--seconds", type=float, default=1.0)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--profiles", default=",".join(TREES))
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    order = random.Random(given.seed)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    started = time.monotonic()
    with loop_devices() as devices:
        for _ in range(given.rounds):
            profiles = given.profiles.split(",")
            order.shuffle(profiles)
            for profile in profiles:
                for case, pair in round_of(devices, profile, given.seconds, order).items():
                    found.setdefault((profile, case), []).append(pair)
    print(f"{'':8}{'':24}{'raidlab':>9}{'btrfs':>9}{'ratio':>8}  95 % interval")
    rows = []
    for profile in TREES:
        for case in CASES:
            pairs = found.get((profile, case[0]))
            if not pairs:
                continue
            ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
            ratio = statistics.median(a / b for a, b in pairs)
            low, high = ratio_interval(ours, theirs) or (float("nan"), float("nan"))
            mine, other = statistics.median(ours), statistics.median(theirs)
            print(f"{profile:8}{case[0]:24}{mine:9.0f}{other:9.0f}{ratio:8.2f}  {low:.2f} to {high:.2f}")
            rows.append({"profile": profile, "case": case[0], "raidlab_mb_s": ours, "btrfs_mb_s": theirs})
    print(f"MB/s, medians of {given.rounds} interleaved rounds; {time.monotonic() - started:.0f} s")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

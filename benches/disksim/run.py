"""The simulator beside DiskSim 4.0's own results for whole set-ups: queues of a driver, disks on a shared bus, arrays.

Purpose: single disks are held to traces of real ones (`tests/python/test_disksim_disks.py`); what stands above a disk
is held here to the mean response times that DiskSim's `valid/runvalid` prints for the set-ups that come with it.

    python benches/disksim/run.py FOLDER

`FOLDER` is DiskSim's `valid/`, with `synthclosed.parv` and what it names by `source`: the disk and its host's driver
are imported from there, and nothing of it is part of raidlab. The set-ups are in `study.toml`.

A line a set-up: DiskSim's mean response time, ours with the 95 % interval over runs as long as DiskSim's one, the
standard deviation of one such run, ours of reads and of writes (DiskSim prints them together). Below, the arrays of
which a set-up consists. DiskSim's figure is one run of 10,000 requests and is as uncertain as one of ours. Status 1
where ours is further away than the aim and than two of these deviations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from raidlab import run_study
from raidlab.analysis.metrics.point import Point
from raidlab.api import analyse
from raidlab.formats.disksim import import_disk
from raidlab.formats.toml import toml_text

DISK, FILE = "HP_C3323A", "synthclosed.parv"
# What `runvalid` of DiskSim 4.0 says each "should be about", in ms, and the aim, in percent: more for a shared bus.
PRINTED_MS = {"synthclosed": (87.6, 3.0), "syntharrays": (34.3, 5.0)}
SIGMAS = 2.0


def mean_ms(points: Sequence[Point], operation: str) -> float:
    """The mean response time over points that complete as many requests each, in ms."""
    means = [point.weighted_mean(f"{operation}_response_mean_ns", weight=f"{operation}_requests") for point in points]
    return statistics.fmean(mean for mean in means if mean is not None) / 1e6


def line(name: str, points: Sequence[Point]) -> tuple[str, bool]:
    """The line of a set-up, and whether it is near enough."""
    printed_ms, aim_percent = PRINTED_MS[name]
    runs_ms = [mean_ms(alike, "all") for alike in zip(*(point.repeats for point in points), strict=True)]
    ours_ms, one_run_ms = statistics.fmean(runs_ms), statistics.stdev(runs_ms)
    half_ms = 2 * one_run_ms / len(runs_ms) ** 0.5
    error = ours_ms / printed_ms - 1
    reads_ms, writes_ms = mean_ms(points, "read"), mean_ms(points, "write")
    text = (
        f"{name:<14} {printed_ms:>8.2f} {ours_ms:>8.2f} +-{half_ms:<5.2f} {100 * error:>+6.1f} % "
        f"{one_run_ms:>8.2f} {reads_ms:>8.2f} {writes_ms:>8.2f}"
    )
    near_ms = max(aim_percent / 100 * printed_ms, SIGMAS * one_run_ms)
    return text, abs(ours_ms - printed_ms) <= near_ms


def main() -> int:
    """Run the set-ups and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="DiskSim's valid/")
    folder = parser.parse_args().folder.resolve()
    study = Path(__file__).with_name("study.toml").resolve()
    found = import_disk(folder / FILE)
    for note in found.notes:
        print(note, file=sys.stderr)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        Path("devices").mkdir()
        Path("devices", f"{DISK}.toml").write_text(toml_text(found.device), encoding="utf-8")
        points = analyse(run_study(study, out=Path(place, "runs"))).points
    print(f"{'':<14} {'DiskSim':>8} {'here, ms':>8} {'':<7} {'':>8} {'one run':>8} {'reads':>8} {'writes':>8}")
    all_near = True
    for name in PRINTED_MS:
        text, near = line(name, [point for point in points if point.array.split(":")[0] == name])
        all_near &= near
        print(text)
    for point in points:
        if ":" in point.array:
            reads_ms, writes_ms = mean_ms([point], "read"), mean_ms([point], "write")
            print(f"  {point.array:<32} {mean_ms([point], 'all'):>8.2f} {'':>10} {reads_ms:>8.2f} {writes_ms:>8.2f}")
    return 0 if all_near else 1


if __name__ == "__main__":
    sys.exit(main())

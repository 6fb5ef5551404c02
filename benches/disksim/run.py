"""The simulator beside DiskSim 4.0's results for whole set-ups: queues of a driver, a shared bus, arrays, flash.

Purpose: single disks are held to traces of real ones (`tests/python/test_disksim_disks.py`); what stands above a disk
is held here to the mean response times that DiskSim prints for the set-ups that come with it.

    python benches/disksim/run.py [FOLDER]

`FOLDER` is DiskSim's `valid/`, with `synthclosed.parv`, `synthopen.parv` and what they name by `source`: the disks
and their host's driver are imported from there, and nothing of it is part of raidlab. The set-ups are in `study.toml`,
those of its flash drive in `flash.toml`, which needs no file of DiskSim's and is all that is run without a `FOLDER`.

A line a set-up: DiskSim's mean response time, ours with the 95 % interval over runs as long as DiskSim's one, the
standard deviation of one such run; then reads and writes apart, DiskSim's and ours. Below, the arrays of which a set-up
consists. DiskSim's figure is one run and is as uncertain as one of ours. Status 1 where one of ours (all, reads,
writes) is further away than the aim and than two of its deviations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from raidlab import run_study
from raidlab.analysis.metrics.point import Point
from raidlab.api import analyse
from raidlab.formats.disksim import import_disk
from raidlab.formats.toml import toml_text

# Each disk: the set-up it is imported from, and its name there.
DISKS = {
    "HP_C3323A": ("synthclosed.parv", "HP_C3323A"),
    "SEAGATE_ST39102LW": ("synthopen.parv", "SEAGATE_ST39102LW_validate"),
}
# Mean responses in ms (all, reads, writes) and the aim in percent: more for a shared bus and for flash. Of disks those
# in the output of runs as `valid/runvalid` begins them, in public copies; of flash what `ssdmodel/valid/runvalid` says
# each "should be around".
PRINTED = {
    "synthopen": ((10.937, 13.584, 5.610), 3.0),
    "synthclosed": ((87.819, None, None), 3.0),
    "synthmixed": ((22.087, 21.789, 22.657), 3.0),
    "synthraid5": ((35.749, 25.927, 55.092), 3.0),
    "syntharrays": ((34.272, 27.938, 47.089), 5.0),
    "sr250k": ((0.132, 0.132, None), 5.0),
    "rr250k": ((0.136, 0.136, None), 5.0),
    "sw250k": ((0.310, None, 0.310), 5.0),
    "rw250k": ((0.329, None, 0.329), 5.0),
    "sw5m": ((0.334, None, 0.334), 5.0),
    "rw5m": ((0.593, None, 0.593), 5.0),
}
OPERATIONS = ("all", "read", "write")
SIGMAS = 2.0


def mean_ms(points: Sequence[Point], operation: str) -> float:
    """The mean response time over points that complete as many requests each, in ms."""
    means = [point.weighted_mean(f"{operation}_response_mean_ns", weight=f"{operation}_requests") for point in points]
    return statistics.fmean(mean for mean in means if mean is not None) / 1e6


def set_up_of(point: Point) -> str:
    """The set-up that a point belongs to: its array says, or of the flash drive its workload."""
    array = point.array.split(":")[0]
    return array if array in PRINTED else point.workload


def line(name: str, points: Sequence[Point]) -> tuple[str, bool]:
    """The line of a set-up, and whether all of it is near enough."""
    printed, aim_percent = PRINTED[name]
    text, all_near = f"{name:<12}", True
    for operation, printed_ms in zip(OPERATIONS, printed, strict=True):
        if printed_ms is None:
            text += f" | {'':>8} {'':>8} {'':>8}"
            continue
        runs_ms = [mean_ms(alike, operation) for alike in zip(*(point.repeats for point in points), strict=True)]
        ours_ms, one_run_ms = statistics.fmean(runs_ms), statistics.stdev(runs_ms)
        text += f" | {printed_ms:>8.3f} {ours_ms:>8.3f} {100 * (ours_ms / printed_ms - 1):>+6.1f} %"
        if operation == "all":
            text += f" +-{2 * one_run_ms / len(runs_ms) ** 0.5:<6.3f} {one_run_ms:>6.3f}"
        all_near &= abs(ours_ms - printed_ms) <= max(aim_percent / 100 * printed_ms, SIGMAS * one_run_ms)
    return text, all_near


def points_of(study: Path, devices: Mapping[str, str]) -> Sequence[Point]:
    """Run a study beside device files of these texts."""
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        Path("devices").mkdir()
        for name, text in devices.items():
            Path("devices", f"{name}.toml").write_text(text, encoding="utf-8")
        return analyse(run_study(study, out=Path(place, "runs"))).points


def devices_of(folder: Path) -> dict[str, str]:
    """The disks of DiskSim's set-ups as device files, by name."""
    devices = {}
    for name, (file, disk) in DISKS.items():
        found = import_disk(folder / file, disk)
        for note in found.notes:
            print(note, file=sys.stderr)
        devices[name] = toml_text(found.device)
    return devices


def main() -> int:
    """Run the set-ups and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="DiskSim's valid/")
    folder = parser.parse_args().folder
    here = Path(__file__).resolve().parent
    points = list(points_of(here / "study.toml", devices_of(folder.resolve()))) if folder else []
    points += points_of(here / "flash.toml", {})
    head = f"{'DiskSim':>8} {'ours':>8} {'':>8}"
    print(f"{'ms':<12} | {head} {'':<8} {'1 run':>6} | {head} reads | {head} writes")
    all_near = True
    for name in dict.fromkeys(set_up_of(point) for point in points):
        text, near = line(name, [point for point in points if set_up_of(point) == name])
        all_near &= near
        print(text)
    for point in points:
        if ":" in point.array:
            all_ms, reads_ms, writes_ms = (mean_ms([point], operation) for operation in OPERATIONS)
            print(f"  {point.array:<32} {all_ms:>8.2f} {reads_ms:>8.2f} {writes_ms:>8.2f}")
    return 0 if all_near else 1


if __name__ == "__main__":
    sys.exit(main())

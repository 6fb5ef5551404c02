"""What `make bench` measured, in one table: the rate of every benchmark with its interval, and the aim beside it.

Purpose: criterion prints a page for each benchmark and compares it with the last run; whether raidlab is as fast as it
is to be is asked here. Rates are criterion's medians with their 95 % intervals, in what the benchmark counts (requests,
operations, bytes) a second; a benchmark that counts nothing shows the time of a turn.

Aims are absolute and so belong to a machine with nothing else to do: `pass` where all of the interval reaches the aim,
`short` where none of it does, `open` between. The status is 0 in any case.

    python benches/speeds/run.py [--criterion target/criterion] [--since FILE] [--aims-only]

Whoever measures by other means writes `benchmark.json` and `estimates.json` as criterion does, and is shown too.

Reference: B. Heisler, criterion.rs, for the two files; their shapes are those of version 0.7.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# What is to be reached on one core, in units a second: full statistics, zoned disks. One line a benchmark.
AIMS: dict[str, float] = {
    "sim/raid0 read": 5.0e6,
    "sim/raid5 read-modify-write": 1.5e6,
    "sim/raid0 read, four stations an access": 2.5e6,
    # A hundred times the 21,000 requests a second of DiskSim 4.0 on it.
    "sim/raid5 of 9 disks, DiskSim's validation load": 2.1e6,
    "sim/a week of 100 M requests, 36 volumes of RAID 5": 1.0e6,
}


@dataclass(frozen=True)
class Speed:
    """One benchmark: the median time of a turn in ns with its interval, and what a turn counts."""

    name: str
    median_ns: float
    low_ns: float
    high_ns: float
    amount: int | None
    unit: str

    @property
    def aim(self) -> float | None:
        """Units a second to be reached, if there is an aim."""
        return AIMS.get(self.name)

    def rate(self, turn_ns: float) -> float:
        """Units a second where a turn takes so long."""
        return (self.amount or 1) / turn_ns * 1e9

    def verdict(self) -> str:
        """Whether the aim is reached by all, none or a part of the interval."""
        if self.aim is None:
            return ""
        if self.rate(self.high_ns) >= self.aim:
            return "pass"
        return "short" if self.rate(self.low_ns) < self.aim else "open"

    def cells(self) -> tuple[str, str, str, str, str]:
        """The row of the table."""
        if self.amount is None:
            shown = [f"{_engineering(ns / 1e9)}s" for ns in (self.median_ns, self.low_ns, self.high_ns)]
        else:
            shown = [
                f"{_engineering(self.rate(ns))}{self.unit}/s" for ns in (self.median_ns, self.high_ns, self.low_ns)
            ]
        aim = "" if self.aim is None else f"{_engineering(self.aim)}{self.unit}/s"
        return self.name, shown[0], f"{shown[1]} to {shown[2]}", aim, self.verdict()


def _engineering(value: float) -> str:
    """Three digits and a prefix.

    >>> _engineering(2_145_000.0), _engineering(0.00000152), _engineering(999.6)
    ('2.15 M', '1.52 u', '1.00 k')
    """
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (0.0, "n")):
        # What would be rounded up to a thousand belongs to the next prefix.
        if value >= limit * 0.9995:
            shown = value / (limit or 1e-9)
            digits = 2 if shown < 9.995 else 1 if shown < 99.95 else 0
            return f"{shown:.{digits}f} {prefix}"
    return f"{value} "


def speeds(folder: Path, since: float) -> Iterator[Speed]:
    """Every benchmark below a folder of criterion's that was measured after a moment (of the file system's clock)."""
    for file in sorted(folder.rglob("new/estimates.json")):
        if file.stat().st_mtime < since:
            continue
        try:
            about = json.loads(file.with_name("benchmark.json").read_text(encoding="utf-8"))
            median = json.loads(file.read_text(encoding="utf-8"))["median"]
            yield _speed(about, median)
        except (OSError, KeyError, ValueError) as error:
            print(f"{file.parent}: left out: {type(error).__name__}: {error}", file=sys.stderr)


def _speed(about: dict[str, Any], median: dict[str, Any]) -> Speed:
    interval = median["confidence_interval"]
    counted = about.get("throughput") or {}
    unit, amount = next(iter(counted.items()), ("", None))
    return Speed(
        about["full_id"],
        float(median["point_estimate"]),
        float(interval["lower_bound"]),
        float(interval["upper_bound"]),
        amount,
        "B" if unit.startswith("Bytes") else "",
    )


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        name, *figures = row
        shown = "  ".join(figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        print(f"{name.ljust(widths[0])}  {shown}".rstrip())


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What `make bench` measured, and the aims beside it.")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--criterion", type=Path, default=target / "criterion", help="criterion's folder")
    parser.add_argument("--since", type=Path, help="leave out what is older than this file")
    parser.add_argument("--aims-only", action="store_true", help="only benchmarks with an aim")
    arguments = parser.parse_args()
    since = arguments.since.stat().st_mtime if arguments.since else 0.0
    found = list(speeds(arguments.criterion, since))
    if not found:
        print(f"no benchmark in {arguments.criterion}; `make bench` or `cargo bench` makes them", file=sys.stderr)
        return 0
    # Those with an aim first, in the order of the aims.
    found.sort(key=lambda speed: (list(AIMS).index(speed.name) if speed.aim else len(AIMS), speed.name))
    shown = [speed for speed in found if speed.aim or not arguments.aims_only]
    missing = [(name, "not run", "", f"{_engineering(aim)}/s", "") for name, aim in AIMS.items()]
    missing = [row for row in missing if row[0] not in {speed.name for speed in found}]
    _print_table([("benchmark", "median", "95 % interval", "aim", ""), *(speed.cells() for speed in shown), *missing])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

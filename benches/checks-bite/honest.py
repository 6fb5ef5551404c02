"""Honest runs, of which no check should complain: in virtual time, and on this machine.

Honest means: enough requests for a percentile's interval, several repeats, arrays that are what the table calls them,
an offered rate that can be served, a scan that begins all over the disk and that the disk is modelled for, data that do
not compress.

Invariant: what is run is a function of the seed.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rigs import MIB, Checks, UnavailableError, checks, filled_loop, folder

# What a disk of `hdd-7200-bare` serves of small random requests, less some for deep positions of the arm.
_DISK_PER_S = 60.0
_PLAIN = '"hdd-7200-bare"'
_FLASH = "{ kind = 'fixed', capacity_bytes = 1073741824, read_us = 90, write_us = 30 }"
DEVICES = (_PLAIN, _FLASH)
# The parent of the kernel's own threads.
_KTHREADD = 2


def virtual_study(seed: int) -> str:
    """An honest study for the simulator, drawn from a seed."""
    draw = random.Random(seed)
    disks, device = draw.randint(2, 6), draw.choice(DEVICES)
    trees = {"raid0": f"raid0({disks})", "raid5": f"raid5({disks + 1})", "raid10": f"raid10({2 * disks})"}
    trees |= {"raid6": f"raid6({disks + 2})"}
    names = ["raid0", *draw.sample([name for name in trees if name != "raid0"], draw.randint(1, 2))]
    lines = [
        f'name = "honest-{seed}"',
        'title = "Which arrangement?"',
        f"seed = {seed}",
        *(f'\n[[array]]\nname = "{name}"\ntree = "{trees[name]}"' for name in names),
    ]
    for number in range(draw.randint(1, 2)):
        read = draw.choice((1.0, 0.0, 0.5, 0.7))
        size = draw.choice(('"4KiB"', '"8KiB"', '"64KiB"', '{ kind = "exponential", mean = "8KiB" }'))
        address = draw.choice(('"uniform"', '"uniform"', '{ kind = "sequential", streams = 10 }'))
        if device == _PLAIN and size == '"64KiB"' and read in (0, 1):
            # For long scans a disk that neither reads ahead nor caches writes is rightly called too plain.
            address = '"uniform"'
        lines.append(f'\n[[workload]]\nname = "work-{number}"\nread = {read}\nsize = {size}\naddress = {address}')
    if draw.random() < 0.3:
        # A quarter of what the disks would do if every request took the four accesses of a small write to parity.
        rate = _DISK_PER_S * disks / 4 / 4 * (50 if device == _FLASH else 1)
        lines.append(f"\n[load]\nopen = {{ rates_per_s = [{rate:.1f}] }}")
    else:
        depths = sorted(draw.sample((1, 2, 4, 8, 16, 32), 2))
        lines.append(f"\n[load]\ndepths = {depths}")
    lines.append(
        f"\n[sim]\ndevice = {device}\nwarmup = {{ requests = 500 }}\nmeasure = {{ requests = 3000 }}\nrepeats = 2"
    )
    lines.append('\n[[compare]]\ngroup = "all"\ntitle = "Equal"\nreference = "raid0"\nequal = "user_capacity"')
    return "\n".join(lines) + "\n"


EMULATED_STUDY = """
name = "honest-emulated"
title = "Which arrangement?"
on = ["emulated"]
seed = {seed}

[[array]]
name = "raid0"
tree = "raid0({disks})"

[[workload]]
name = "reads"
read = 1.0
size = "8KiB"

[load]
depths = [{depth}]

[emulated]
device = "hdd-7200-bare"
repeats = 3
warmup = {{ duration = "500ms" }}
measure = {{ duration = "3s" }}
"""


@dataclass
class Taken:
    """Shares of all processors' time that were not there for a run: taken by the machine's host, by other programs."""

    stolen: float = 0.0
    others: float = 0.0


@contextlib.contextmanager
def watched() -> Iterator[Taken]:
    """What is taken meanwhile, once it is over."""
    taken = Taken()
    before, programs = _ticks(), _of_others()
    yield taken
    after = _ticks()
    all_ticks = max(after[1] - before[1], 1)
    taken.stolen = (after[0] - before[0]) / all_ticks
    # A program that began or ended meanwhile is counted from its beginning, or not at all: a lower bound.
    grown = (ticks - programs.get(process, 0) for process, ticks in _of_others().items())
    taken.others = sum(grown) / all_ticks


def _ticks() -> tuple[int, int]:
    words = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]
    ticks = [int(word) for word in words]
    return ticks[7], sum(ticks)


def _of_others() -> dict[int, int]:
    """Processor time of all programs but this one and the kernel's own threads, which work for whoever asks."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError, IndexError, ValueError):
                words = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                if int(words[1]) not in (0, _KTHREADD):
                    found[int(process.name)] = int(words[11]) + int(words[12])
    return found


@dataclass
class Live:
    """The honest live runs: how to make each, by kind."""

    memory: str
    disk: str
    makers: dict[str, Callable[[int], Checks]] = field(init=False)

    def __post_init__(self) -> None:
        self.makers = {
            "emulated": self._emulated,
            "null": self._null,
            "loop": self._loop,
            "loop on a disk": self._loop_on_disk,
            "file": self._file,
        }

    def run(self, number: int) -> tuple[str, Checks | None, Taken, str]:
        """Run one: its kind, its findings (None where the rig is not to be had), the time taken, and why not."""
        kind = list(self.makers)[number % len(self.makers)]
        with watched() as taken:
            try:
                found, why = self.makers[kind](number), ""
            except UnavailableError as error:
                found, why = None, str(error)
        return kind, found, taken, why

    def _emulated(self, number: int) -> Checks:
        draw = random.Random(number)
        text = EMULATED_STUDY.format(seed=number, disks=draw.randint(2, 6), depth=draw.choice((2, 4, 8)))
        with folder("/tmp") as place:
            (place / "study.toml").write_text(text, encoding="utf-8")
            return checks("run", place / "study.toml", "--out", place / "runs")

    def _null(self, number: int) -> Checks:
        return checks("measure", "null", *_flags(number))

    def _loop(self, number: int) -> Checks:
        with filled_loop(self.memory) as device:
            return checks("measure", device, *_flags(number, device))

    def _loop_on_disk(self, number: int) -> Checks:
        with filled_loop(self.disk) as device:
            return checks("measure", device, *_flags(number, device))

    def _file(self, number: int) -> Checks:
        with folder(self.disk) as place:
            return checks("measure", place, "--file-size", f"{128 * MIB}B", *_flags(number, place))


def _flags(number: int, target: str | Path = "") -> list[str]:
    """What is asked, drawn from a seed."""
    draw = random.Random(number)
    depth, size = draw.choice((1, 4, 16, 32)), draw.choice(("4KiB", "8KiB", "64KiB"))
    words = ["--seed", str(number), "--depth", str(depth), "--size", size, "--runtime", "1s", "--warmup", "200ms"]
    if target and draw.random() < 0.4:
        words += ["--rw", draw.choice(("randrw", "randwrite", "write"))]
        words += ["--destroy", str(target)] if str(target).startswith("/dev/loop") else []
    return words

"""Every published study on its own hardware and on disks of this machine, timed, with what it found.

Purpose: the studies are raidlab's promise, and each run of one is minutes; here all of them are run the same way, so
that a change that makes one slower, or a conclusion turn, is seen.

    python benches/studies/run.py [--only chen1990,ou2007] [--on original,loop,emulated] [--full] [--out DIR]

`original` runs each study on the model of its hardware, in full and `--quick`, and holds the time to the aims: five
minutes and 40 seconds on two processors with nothing else to do. `loop` runs it on loop devices over files that are
written out (never sparse), or on ext4 file systems on such, as the study wants it; this needs root. `emulated` runs it
on modelled disks on the real clock. Both are `--quick` unless `--full` is given: in full each takes an hour or more.

A line a run: time, how it ended (3: a check says INVALID), claims that hold and fail, median and largest error of what
was not fitted. Status 1 if a run failed, took longer than its aim, or has figures that could not be worked out.

Invariant: what is made is taken away: devices, mounts, files.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches" / "checks-bite"))

from rigs import MIB, UnavailableError, filled_loop, folder, sh  # noqa: E402

STUDIES = ("chen1990", "hauser1996", "uselton2000", "jlab1998", "ou2007")
AIM_S, QUICK_AIM_S = 300.0, 40.0
INVALID = 3
Words = list[str]


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    seconds: float
    code: int
    folder: Path | None
    said: str


def targets(devices: list[str]) -> Words:
    """Devices as members that may be overwritten."""
    return [word for device in devices for word in ("--on", device, "--destroy", device)]


@contextlib.contextmanager
def loops(count: int, size: int, where: str, *, direct: bool = True) -> Iterator[list[str]]:
    """So many loop devices over files of random bytes; past the page cache they have the sectors of the disk below."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(filled_loop(where, size, direct=direct)) for _ in range(count)]


@contextlib.contextmanager
def file_systems(count: int, size: int, where: str) -> Iterator[list[str]]:
    """So many directories, each an ext4 file system on a loop device of its own."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            device = stack.enter_context(filled_loop(where, size))
            place = stack.enter_context(folder(where))
            sh("mkfs.ext4", "-q", device)
            sh("mount", device, str(place))
            stack.callback(subprocess.run, ["umount", str(place)], check=False)
            made.append(f"{place}/")
        yield made


@contextlib.contextmanager
def for_chen(where: str) -> Iterator[Words]:
    """Twenty disks: what its largest level asks for."""
    with loops(20, 64 * MIB, where) as devices:
        yield targets(devices)


@contextlib.contextmanager
def for_hauser(where: str) -> Iterator[Words]:
    """Two directories with file systems, whose files the study writes."""
    with file_systems(2, 768 * MIB, where) as places:
        yield [word for place in places for word in ("--on", place)]


@contextlib.contextmanager
def for_uselton(where: str) -> Iterator[Words]:
    """Two interfaces with an array each, of six disks."""
    groups = ("fc0/box0", "fc1/box1")
    # Its requests begin at any sector of 512 bytes.
    with loops(6 * len(groups), 40 * MIB, where, direct=False) as devices:
        words = []
        for at, group in enumerate(groups):
            words += ["--on", f"{group}={','.join(devices[6 * at : 6 * at + 6])}"]
        yield words + [word for device in devices for word in ("--destroy", device)]


@contextlib.contextmanager
def for_jlab(where: str) -> Iterator[Words]:
    """A directory of the box, and another for copies, of a worker on this machine."""
    with file_systems(1, 4096 * MIB, where) as places, folder(where) as far:
        yield ["--on", places[0], "--cluster", "local:1", "--machine", f"0:{far}"]


@contextlib.contextmanager
def for_ou(where: str) -> Iterator[Words]:
    """Four drives."""
    # The File Server pattern has requests of 512 bytes.
    with loops(4, 256 * MIB, where, direct=False) as devices:
        yield targets(devices)


RIGS: dict[str, Callable[[str], contextlib.AbstractContextManager[Words]]] = {
    "chen1990": for_chen,
    "hauser1996": for_hauser,
    "uselton2000": for_uselton,
    "jlab1998": for_jlab,
    "ou2007": for_ou,
}


def run(study: str, words: Words, out: Path) -> Done:
    """Run a study; its folder is the only one in ``out``."""
    out.mkdir(parents=True)
    began = time.monotonic()
    argv = [sys.executable, "-m", "raidlab", "run", study, *words, "--out", str(out)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    made = sorted(path.parent for path in out.glob("*/run.json"))
    return Done(seconds, done.returncode, made[0] if made else None, done.stderr.strip())


def found(run_folder: Path) -> tuple[str, int]:
    """What a run found beside what was published, in a few words; and how many rows are mistakes."""
    file = run_folder / "comparison.csv"
    if not file.is_file():
        return "nothing to compare", 0
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    verdicts = [row["simulated_or_measured"] for row in rows]
    errors = [
        abs(float(row["error_percent"]))
        for row in rows
        if row["error_percent"] and row["kind"] not in ("fitted", "arithmetic")
    ]
    words = f"{verdicts.count('holds')} hold, {verdicts.count('fails')} fail"
    if undecided := verdicts.count("within the noise"):
        words += f", {undecided} within the noise"
    if errors:
        words += f"; error {statistics.median(errors):.1f} %, at most {max(errors):.0f} % of {len(errors)}"
    return words, verdicts.count("error")


def told(study: str, on: str, done: Done, aim_s: float | None) -> bool:
    """Print a run's line; whether all is as it should be."""
    said = done.said.splitlines() or ["nothing was said"]
    words, mistakes = found(done.folder) if done.folder is not None else (said[-1], 1)
    late = aim_s is not None and done.seconds > aim_s
    good = done.code in (0, INVALID) and not mistakes and not late
    mark = "" if good else "late" if late else "BAD"
    print(f"{study:12} {on:18} {done.seconds:6.0f} s  ends {done.code}  {mark:4} {words}", flush=True)
    return good


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", default=",".join(STUDIES), help="studies, separated by commas")
    parser.add_argument("--on", default="original", help="original, loop, emulated; separated by commas")
    parser.add_argument("--full", action="store_true", help="loop and emulated: not --quick")
    parser.add_argument("--out", type=Path, help="where run folders are kept; removed by default")
    parser.add_argument("--where", default="/var/tmp", help="where the files of loop devices go")
    arguments = parser.parse_args()
    good = True
    with contextlib.ExitStack() as stack:
        out = arguments.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="raidlab-studies-")))
        for study in arguments.only.split(","):
            for on in arguments.on.split(","):
                quick = [] if arguments.full else ["--quick"]
                if on == "original":
                    for name, words, aim_s in (("full", [], AIM_S), ("quick", ["--quick"], QUICK_AIM_S)):
                        done = run(study, ["--on", on, *words], out / f"{study}-{on}-{name}")
                        good &= told(study, f"{on}, {name}", done, aim_s)
                elif on == "emulated":
                    done = run(study, ["--on", on, *quick], out / f"{study}-{on}")
                    good &= told(study, on, done, None)
                else:
                    try:
                        with RIGS[study](arguments.where) as words:
                            done = run(study, [*words, *quick], out / f"{study}-{on}")
                    except UnavailableError as error:
                        print(f"{study:12} {on:18} left out: {error}", flush=True)
                        continue
                    good &= told(study, on, done, None)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""From a device to arrays of it, on this machine: fitted, predicted, measured.

Purpose: what `raidlab device fit` is for. One device of a kind is fitted; RAID 0, 10, 5 and 6 of four such members are
predicted from its file alone, and measured. A cell counts as predicted where the throughput is within the error that
the file states. Wanted are 90 % of the cells of each kind.

Kinds: `loop` (loop devices over files in memory), `zram`, `file` (files on the disk of the working directory),
`limited` (loop devices that a control group limits to 400 reads and 400 writes a second), and `emulated` (spindles of
`devices/hdd-7200-bare.toml` on the real clock, 4 times as fast: much faster, and a completion that is a little late is
too large a part of a revolution). The members of the first three share a disk, or the processors that are all there is
to them, and are predicted as areas of one device; `--apart` predicts them as devices of their own, to show what that
makes of it. When its arrays are measured, the device itself is asked again (`raidlab device validate --on`), and where
it has changed, that is said.

    sudo python benches/fit-end-to-end/run.py [--only loop,zram] [--budget 3min]

Needs root, `losetup`, zram and control groups of version 1; what is not to be had is left out, with the reason. The
machine should have nothing else to do. Status 1 where a kind is below 90 %.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raidlab import _core
from raidlab.api import analyse
from raidlab.formats.toml import toml_text
from raidlab.measure.fit import FitRequest, fit_subject
from raidlab.measure.fit.situations import Slot
from raidlab.measure.fit.subject import load_of_slot, seed_of
from raidlab.measure.fit.timed import TimedTarget
from raidlab.results.answer import CellAnswer
from raidlab.run.interrupt import StopFlag
from raidlab.run.runner import cell_answer, run_request
from raidlab.study.cell import ArrayCell, Limit, text_of
from raidlab.study.units import parse_time_ns

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks-bite"))

from rigs import BLKIO, MIB, UnavailableError, filled_loop, folder, group, raidlab, random_file, zram

MEMBERS, SIZE = 4, 256 * MIB
LEVELS = {"raid0": "stripe(4)", "raid10": "raid10(4)", "raid5": "raid5(4)", "raid6": "raid6(4)"}
LOADS = [("reads", 1.0, "4KiB"), ("writes", 0.0, "4KiB"), ("mix", 0.7, "64KiB")]
DEPTHS = [1, 8, 32]
WANTED = 0.9
LIMIT = 400
SPINDLE, SPEED = Path(__file__).resolve().parents[2] / "devices" / "hdd-7200-bare.toml", 4.0
# Of the disk's own time.
SPINDLE_BUDGET_NS, SPINDLE_WINDOW = 900_000_000_000, "30s"
# Above what a fit and a run take; what takes longer hangs.
_TIMEOUT_S = 1800.0
KINDS = ("loop", "zram", "file", "limited", "emulated")
# Of which members wait for one another.
SHARING = ("loop", "zram", "file")


@dataclass(frozen=True)
class Rig:
    """Members of one kind, to be fitted and to make arrays of."""

    target: str
    on: list[str]
    destroy: bool
    inside: Path | None = None
    window: str = "400ms"
    """How long a cell is measured."""


@contextlib.contextmanager
def rig_of(kind: str) -> Iterator[Rig]:
    """Four devices of a kind, gone afterwards."""
    with contextlib.ExitStack() as made:
        if kind == "file":
            place = str(made.enter_context(folder(str(Path.cwd()))))
            yield Rig(place, [place], destroy=False)
            return
        if kind == "zram":
            devices = [made.enter_context(zram(SIZE)) for _ in range(MEMBERS)]
            for device in devices:
                random_file(Path(device), SIZE)
        else:
            devices = [made.enter_context(filled_loop("/dev/shm", SIZE)) for _ in range(MEMBERS)]
        if kind != "limited":
            yield Rig(devices[0], devices, destroy=True)
            return
        inside = made.enter_context(group(BLKIO))
        for device in devices:
            number = Path(device).stat().st_rdev
            for op in ("read", "write"):
                limit = f"{os.major(number)}:{os.minor(number)} {LIMIT}"
                (inside / f"blkio.throttle.{op}_iops_device").write_text(limit)
        yield Rig(devices[0], devices, destroy=True, inside=inside, window="2s")


@dataclass(frozen=True)
class EmulatedSubject:
    """A modelled spindle on the real clock, asked as `raidlab device fit` asks a target."""

    parameters: dict[str, Any]
    seed: int

    def ask(self, slot: Slot) -> CellAnswer:
        """Run one turn."""
        cell = ArrayCell(
            engine="live",
            seed=seed_of(self.seed, slot),
            tree={"kind": "independent", "children": [{"kind": "member"}]},
            members=[{"kind": "emulated", "device": self.parameters}],
            load=load_of_slot(slot),
            workload=slot.situation.requests(),
            warmup=Limit(duration=slot.warmup_ns),
            measure=Limit(duration=slot.measure_ns),
            speed=SPEED,
        )
        return cell_answer(run_request(text_of(cell)))


def fitted_spindle() -> dict[str, Any]:
    """The file of an emulated spindle: its mechanics by single requests, the rest by loops."""
    device = tomllib.loads(SPINDLE.read_text(encoding="utf-8"))
    parameters = {key: value for key, value in device.items() if key not in ("published", "provenance", "power")}
    capacity = _core.device_facts(json.dumps(parameters))["capacity_bytes"]
    single = TimedTarget({"kind": "emulated", "device": parameters}, capacity, StopFlag(), SPEED)
    asked = FitRequest("spindle", SPINDLE_BUDGET_NS, quick=True)
    return fit_subject(single, EmulatedSubject(parameters, asked.seed), asked, "an emulated spindle").document


def study_of(kind: str, window: str, *, apart: bool) -> dict[str, Any]:
    """The arrays, as they are predicted and measured."""
    shared = kind in SHARING and not apart
    live = {"warmup": {"duration": "150ms"}, "measure": {"duration": window}, "repeats": 3, "member_size": "256MiB"}
    spindle = {"device": str(SPINDLE), "speed": SPEED, "measure": {"duration": SPINDLE_WINDOW}, "repeats": 1}
    simulated = {"warmup": {"requests": 500}, "measure": {"requests": 5000}}
    # For as long as it is measured the same requests are asked for: which they happen to be is no error.
    simulated = {"measure": {"duration": SPINDLE_WINDOW}} if kind == "emulated" else simulated
    return {
        "name": "of-mine",
        "title": "Four of them",
        "on": ["sim"],
        "array": [{"name": name, "tree": tree} for name, tree in LEVELS.items()],
        "workload": [{"name": name, "read": read, "size": size} for name, read, size in LOADS],
        "load": {"depths": DEPTHS},
        "sim": {"device": "./mine.toml", "one_device": shared, **simulated},
        **({"emulated": spindle} if kind == "emulated" else {"live": live}),
    }


Rates = dict[tuple[str, str, int], tuple[float, float]]


@dataclass(frozen=True)
class Outcome:
    """What one kind came to."""

    stated_percent: float
    rates: Rates
    """Of every cell what was predicted and what was measured, in requests a second."""
    changed_percent: float | None = None
    """How much faster the device is than when it was fitted, where it has changed meanwhile."""


def measured(kind: str, budget: str, place: Path, *, apart: bool) -> Outcome:
    """Fit a device of a kind, predict arrays of it, measure them, and ask the device again."""
    file, study = place / "mine.toml", place / "study.toml"
    changed = None
    with contextlib.ExitStack() as made:
        if kind == "emulated":
            rig, document = Rig("", ["emulated"], destroy=False), fitted_spindle()
            file.write_text(toml_text(document), encoding="utf-8")
        else:
            rig = made.enter_context(rig_of(kind))
            given_up = ["--destroy", rig.target] if rig.destroy else []
            fit = ["device", "fit", rig.target, *given_up, "--budget", budget, "--out", file]
            document = raidlab(*fit, inside=rig.inside, timeout_s=_TIMEOUT_S)
        study.write_text(toml_text(study_of(kind, rig.window, apart=apart)), encoding="utf-8")
        words = [word for one in ["sim", *rig.on] for word in ("--on", one)]
        words += [word for one in rig.on if rig.destroy for word in ("--destroy", one)]
        raidlab("run", study, *words, "--out", place / "runs", inside=rig.inside, timeout_s=_TIMEOUT_S)
        if rig.target:
            again = raidlab("device", "validate", file, "--on", rig.target, *given_up, inside=rig.inside)
            changed = again["rate_change_percent"] if again["has_changed"] else None
        folders = [one for one in (place / "runs").iterdir() if one.is_dir() and not one.is_symlink()]
        rates: dict[tuple[str, str, int], dict[bool, float]] = {}
        for row in analyse(folders[0]).table.iter_rows(named=True):
            cell = (row["array"], row["workload"], row["depth"])
            rates.setdefault(cell, {})[row["target"] == "sim"] = row["iops"]
    found = {cell: (both[True], both[False]) for cell, both in rates.items()}
    return Outcome(document["fit"]["error_percent"], found, changed)


def shown(kind: str, outcome: Outcome, *, each: bool) -> bool:
    """Print a kind's line; whether enough of its cells are predicted."""
    stated, rates, changed = outcome.stated_percent, outcome.rates, outcome.changed_percent
    errors = {cell: 100 * (predicted / seen - 1) for cell, (predicted, seen) in rates.items()}
    within = sum(abs(error) <= stated for error in errors.values())
    holds = within >= WANTED * len(errors)
    verdict = "holds" if holds else "DOES NOT HOLD"
    if changed is not None:
        verdict += f", and the device has changed since ({changed:+.0f} %)"
    worst = max(errors, key=lambda cell: abs(errors[cell]))
    print(
        f"{kind:9} stated {stated:5.1f} %: {within:2} of {len(errors)} cells within it, median error "
        f"{statistics.median(map(abs, errors.values())):.1f} %, worst {errors[worst]:+.1f} % "
        f"({', '.join(map(str, worst))}): {verdict}",
        flush=True,
    )
    for cell, error in errors.items() if each else ():
        name, (predicted, seen) = " ".join(map(str, cell)), rates[cell]
        print(f"    {name:20} predicted {predicted:10.1f} measured {seen:10.1f} {error:+6.1f} %")
    return holds


def main() -> int:
    """Fit, predict and measure each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(KINDS), help="some of the kinds, with commas between")
    parser.add_argument("--budget", default="90s", help="how long a device is measured to be fitted")
    parser.add_argument("--apart", action="store_true", help="predict members that share something as devices apart")
    parser.add_argument("--each", action="store_true", help="print every cell")
    words = parser.parse_args()
    parse_time_ns(words.budget)
    all_hold = True
    for kind in words.only.split(","):
        try:
            with folder("/tmp") as place:
                outcome = measured(kind, words.budget, place, apart=words.apart)
        except UnavailableError as error:
            print(f"{kind:9} left out: {error}", flush=True)
            continue
        all_hold &= shown(kind, outcome, each=words.each)
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Probe arrays of real Linux md: what `raidlab probe` makes of them, in the lab kernel, over exact disks.

A line an array: what it is, what the probe says, whether the truth is in its likeliest class, and how many tests it
took. The probes run side by side: each boot of the lab serves one test of every array. What md knows of itself is the
truth that answers are held to, and never the input. Exit status 1 where an array is not in the likeliest class or the
answer is sure and wrong, 2 when the lab could not run, and why. Run it with raidlab's own Python:
``.venv/bin/python tests/md-lab/probe.py``.
"""

from __future__ import annotations

import argparse
import math
import queue
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lab import LabError, boot_lab, need_lab  # noqa: E402

from raidlab.measure.probe import ProbeAnswer, ProbeRequest  # noqa: E402
from raidlab.measure.probe.ask import Counted, ProbeTest, counted_in  # noqa: E402
from raidlab.measure.probe.hypotheses import KIB, ROTATIONS, ArrayShape, Hypothesis  # noqa: E402
from raidlab.measure.probe.identify import Prober  # noqa: E402
from raidlab.measure.probe.predict import Predictor  # noqa: E402
from raidlab.measure.probe.words import sentence  # noqa: E402
from raidlab.results.answer import CellAnswer  # noqa: E402
from raidlab.run.progress import Silent  # noqa: E402
from raidlab.study.device import DeviceModel  # noqa: E402

SERVICE_NS = 5_000_000
# Room for the largest chunks of twelve members; what is not written takes no memory.
MEMBER_MIB = 65_536
# What `mdadm --layout` calls them.
_WORDS = {
    "near2": "n2",
    "far2": "f2",
    "offset2": "o2",
    "left_symmetric": "left-symmetric",
    "left_asymmetric": "left-asymmetric",
    "right_symmetric": "right-symmetric",
    "right_asymmetric": "right-asymmetric",
    "parity_first": "parity-first",
    "parity_last": "parity-last",
}


def arrays() -> list[Hypothesis]:
    """RAID 0, 1, 10, 5, 6 of 4 and 6 members with chunks of 16 and 64 KiB; all rotations and layouts of 5."""
    usual = {"raid0": "", "raid10": "near2", "raid5": "left_symmetric", "raid6": "left_symmetric"}
    found = [
        Hypothesis(ArrayShape(level, members, detail), chunk * KIB)
        for level, detail in usual.items()
        for members in (4, 6)
        for chunk in (16, 64)
    ]
    found += [Hypothesis(ArrayShape("raid1", members)) for members in (2, 3)]
    found += [Hypothesis(ArrayShape(level, 5, one), 64 * KIB) for level in ("raid5", "raid6") for one in ROTATIONS]
    return found + [Hypothesis(ArrayShape("raid10", 5, one), 64 * KIB) for one in ("near2", "far2", "offset2")]


class Line(NamedTuple):
    """A test of an array, and where its requests begin."""

    array: Hypothesis
    test: ProbeTest | None
    counted: Counted
    starts: Sequence[int]

    def plan(self, name: str) -> str:
        """As the lab takes it."""
        shape, test = self.array.shape, self.test
        chunk = self.array.chunk_bytes // KIB or "-"
        array = f"{name} {shape.level} {chunk} {_WORDS.get(shape.detail, '-')} {shape.members}"
        if test is None:
            return f"{array} r 1 0 0 4096\n"
        requests = self.counted.warm_up + self.counted.requests
        return f"{array} {test.op[0]} {test.depth} {requests} {self.counted.warm_up} {test.size_bytes}\n"


class Rounds:
    """Several probes at once: when each of them waits for a test, all tests are run in one boot."""

    def __init__(self, work: Path) -> None:
        self.work, self.booted = work, 0
        self._asked: queue.Queue[tuple[Line, Future[dict[str, float]]] | None] = queue.Queue()

    def ask(self, line: Line) -> dict[str, float]:
        """Wait for a test: called by the probes."""
        answer: Future[dict[str, float]] = Future()
        self._asked.put((line, answer))
        return answer.result()

    def ended(self) -> None:
        """Say that a probe asks no more."""
        self._asked.put(None)

    def serve(self, probes: int) -> None:
        """Boot as often as it takes, until no probe is left."""
        waiting: list[tuple[Line, Future[dict[str, float]]]] = []
        while probes:
            one = self._asked.get()
            if one is None:
                probes -= 1
            else:
                waiting.append(one)
            if waiting and len(waiting) == probes:
                self._boot(waiting)
                waiting = []

    def _boot(self, waiting: Sequence[tuple[Line, Future[dict[str, float]]]]) -> None:
        names = [f"test-{number}" for number in range(len(waiting))]
        lines = [line for line, _ in waiting]
        (self.work / "plan").write_text("".join(line.plan(name) for line, name in zip(lines, names, strict=True)))
        for line, name in zip(lines, names, strict=True):
            (self.work / f"given-{name}").write_text("".join(f"{start}\n" for start in line.starts))
        (self.work / "results").unlink(missing_ok=True)
        disks = max(line.array.shape.members for line in lines)
        try:
            boot_lab("md-probe.sh", self.work, disks=disks, service_ns=SERVICE_NS, size_mb=MEMBER_MIB, limit_s=3600)
            self.booted += 1
            said = [line.split() for line in (self.work / "results").read_text().splitlines()]
            for (_, answer), name, (of, *words) in zip(waiting, names, said, strict=True):
                if name != of:
                    raise LabError(f"the lab answered {of} where {name} was asked")
                pairs = (word.split("=") for word in words)
                answer.set_result({key: float(value) for key, value in pairs if key != "device"})
        except LabError as error:
            for _, answer in waiting:
                if not answer.done():
                    answer.set_exception(error)


@dataclass(frozen=True)
class MdBox:
    """An array of real md, to be probed."""

    array: Hypothesis
    capacity_bytes: int
    rounds: Rounds
    seen: list[tuple[ProbeTest, float]] = field(default_factory=list)

    def ask(self, test: ProbeTest, starts: list[int], counted: Counted | None = None) -> CellAnswer:
        """Ask it in the lab: as many requests as the virtual clock counts."""
        weighed, counted = counted is None, counted or counted_in(test)
        found = self.rounds.ask(Line(self.array, test, counted, starts))
        elapsed_ns = round(1e9 * counted.requests / found["iops"])
        if weighed:
            self.seen.append((test, found["iops"]))
        # What a probe looks at, and no more.
        return cast(CellAnswer, {"all": {"requests": counted.requests}, "elapsed_ns": elapsed_ns})


def member() -> DeviceModel:
    """The lab's disks: one request at a time, all of them in the same time."""
    took_us = SERVICE_NS / 1e3
    parameters = {"kind": "fixed", "capacity_bytes": MEMBER_MIB << 20, "read_us": took_us, "write_us": took_us}
    return DeviceModel("exact", parameters, MEMBER_MIB << 20, sector_bytes=512)


class Probed(NamedTuple):
    """What a probe says of an array of md, and what each test gave that it weighed."""

    answer: ProbeAnswer
    seen: list[tuple[ProbeTest, float]]


def probed(array: Hypothesis, rounds: Rounds, *, writes: bool, known: bool) -> Probed:
    """Probe an array of md."""
    size = rounds.ask(Line(array, None, Counted(0, 0), ()))["size_bytes"]
    asked = ProbeRequest(array.title, member=member() if known else None, writes=writes)
    box = MdBox(array, int(size), rounds)
    return Probed(Prober(box, asked, Silent()).answer(), box.seen)


def is_among(truth: Hypothesis, found: ProbeAnswer, classes: int | None = None) -> bool:
    """Whether an array is in the likeliest classes of an answer."""
    arrays = [one for group in found.classes[:classes] for one in group.arrays]
    return any((one.shape, one.chunk_bytes) == (truth.shape, truth.chunk_bytes) for one in arrays)


def main() -> int:
    """Probe all of them and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--destroy", action="store_true", help="let probes write, too")
    parser.add_argument("--unknown", action="store_true", help="do not tell them what the members are")
    parser.add_argument("--only", metavar="WORD", default="", help="only arrays whose title has this in it")
    parser.add_argument("--each", action="store_true", help="print every test beside what the array itself would give")
    asked = parser.parse_args()
    wanted = [one for one in arrays() if asked.only in one.title]
    answers: dict[Hypothesis, Probed | Exception] = {}
    try:
        need_lab()
        with tempfile.TemporaryDirectory() as work:
            rounds = Rounds(Path(work))

            def one_probe(array: Hypothesis) -> None:
                try:
                    answers[array] = probed(array, rounds, writes=asked.destroy, known=not asked.unknown)
                except Exception as error:
                    answers[array] = error
                finally:
                    rounds.ended()

            for array in wanted:
                threading.Thread(target=one_probe, args=(array,), daemon=True).start()
            rounds.serve(len(wanted))
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    return _shown(wanted, answers, rounds.booted, each=asked.each)


def _shown(
    wanted: Sequence[Hypothesis], answers: dict[Hypothesis, Probed | Exception], booted: int, *, each: bool
) -> int:
    missed, wrong = 0, 0
    predictor = Predictor(member().parameters, rotating=False)
    for array in wanted:
        one = answers[array]
        if isinstance(one, LabError):
            print(one, file=sys.stderr)
            return 2
        if isinstance(one, Exception):
            raise one
        found = one.answer
        is_first, is_sure = is_among(array, found, 1), found.verdict.startswith("sure")
        missed += not is_first
        wrong += is_sure and not is_first
        word = "named" if is_first else "among them" if is_among(array, found) else "NOT THERE"
        chi2 = found.classes[0].chi2 if found.classes else float("nan")
        print(
            f"{array.title:50} {word:10} {'SURE AND WRONG' if is_sure and not is_first else found.verdict:16} "
            f"{len(found.lines):3} tests {found.busy_ns / 1e9:5.0f} s  chi2 {chi2:4.2f}  {sentence(found)}"
        )
        for test, rate in one.seen if each else ():
            simulated = math.exp(predictor.log_rate(test, array))
            print(
                f"    {test.name:40} md {rate:8.1f} simulated {simulated:8.1f} {100 * (simulated / rate - 1):+6.1f} %"
            )
    print(f"{len(wanted)} arrays of md, {len(wanted) - missed} in their class, {wrong} sure and wrong; {booted} boots")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

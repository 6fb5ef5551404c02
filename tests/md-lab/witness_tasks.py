#!/usr/bin/env python3
"""Hold rebuilds, resyncs and checks to real Linux md: how long they take, what members read and write meanwhile.

The same arrays over the same exact disks, in the lab kernel (``md-witness-task.sh``) and simulated, idle and beside a
closed loop. Prints a line a case; exit status 1 where a case is outside its bounds otherwise than ``KNOWN`` says, 2
when the lab could not run. ``--write`` keeps md's figures in ``tests/md-witness/tasks.csv``; ``--committed`` compares
with those.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lab import LabError, boot_lab, need_lab  # noqa: E402
from witness_cases import LOOK_NS, SCHEDULER, loadgen_offsets, md_policy  # noqa: E402

KEPT = HERE.parent / "md-witness" / "tasks.csv"
MIB = 1 << 20
MEMBER_MIB = {False: 256, True: 64}
"""Of each member, without and with a foreground; with it a task takes longer."""
SERVICE_NS = 5_000_000
LONGEST_NS = 600_000_000_000
OWN_READS, OWN_WRITES, OWN_BYTES = 10, 2, 100_000
"""No part of the task: reads of a spare's superblock, writes of that of each member at the beginning and at the end,
and bytes of both. Those after each sixteenth are simulated."""
DURATION, ACCESSES, RATE = 0.05, 0.03, 0.1
"""How far the simulator may be from md, as shares of md's figures."""


@dataclass(frozen=True)
class TaskCase:
    """One array that works for itself."""

    level: str
    members: int
    chunk_kib: int | None
    task: str
    """``recover`` (a spare for member 0), ``resync`` (of a new array whose members agree) or ``check``."""
    operation: str = "r"
    depth: int = 0
    """Requests of 4 KiB at random kept in flight meanwhile; 0: none."""

    @property
    def name(self) -> str:
        """One word, such as ``raid5-n5-recover`` or ``raid6-n6-check-beside-w-d8``."""
        load = f"-beside-{self.operation}-d{self.depth}" if self.depth else ""
        chunk = "" if self.chunk_kib in (None, 64) else f"-c{self.chunk_kib}"
        return f"{self.level}-n{self.members}{chunk}-{self.task}{load}"

    @property
    def member_mib(self) -> int:
        """How long a member is."""
        return MEMBER_MIB[self.depth > 0]

    @property
    def span_mib(self) -> int:
        """Of the array, what the foreground uses: a little less than all."""
        data = {"raid1": 1, "raid10": self.members // 2, "raid5": self.members - 1, "raid6": self.members - 2}
        return data[self.level] * (self.member_mib - 4)

    @property
    def plan(self) -> str:
        """Its line for the lab."""
        words = (self.name, self.level, self.chunk_kib or "-", self.members, self.member_mib * 1024, self.task)
        return " ".join(map(str, (*words, self.operation, self.depth, self.span_mib, self.depth))) + "\n"


@dataclass(frozen=True)
class TaskFigures:
    """What a task came to; of members the sums of all, accesses and bytes."""

    seconds: float
    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    requests: int
    """Of the foreground, meanwhile."""


ARRAYS: tuple[tuple[str, int, int | None], ...] = (
    ("raid1", 2, None),
    ("raid10", 4, 64),
    ("raid5", 5, 64),
    ("raid6", 6, 64),
)
OTHER_ARRAYS: tuple[tuple[str, int, int | None], ...] = (
    ("raid1", 3, None),
    ("raid10", 4, 16),
    ("raid10", 6, 512),
    ("raid5", 3, 16),
    ("raid6", 5, 128),
    ("raid6", 4, 64),
)


def task_cases() -> list[TaskCase]:
    """Every case, in the order in which they are run."""
    idle = [
        TaskCase(*array, task)
        for arrays in (ARRAYS, OTHER_ARRAYS)
        for task in ("recover", "resync", "check")
        for array in arrays
    ]
    # Not RAID 1 beside reads: a loop of them in one barrier unit (64 MiB) keeps md from ever beginning.
    loaded = [
        TaskCase(*array, task, operation, depth)
        for arrays, depth in ((ARRAYS, 8), (ARRAYS, 1), (OTHER_ARRAYS[::2], 8))
        for operation in "rw"
        for task in ("recover", "check")
        for array in arrays
        if not (array[0] == "raid1" and operation == "r") and not (arrays is not ARRAYS and operation == "w")
    ]
    return [*idle, *loaded]


def run_md(wanted: list[TaskCase], work: Path) -> dict[TaskCase, TaskFigures]:
    """Run the cases on real md, each in a boot of its own.

    How many pages of memory lie together, and so how many requests become one, would hang on the cases before it.
    """
    need_lab()
    size = 64 + max(MEMBER_MIB.values())
    for case in wanted:
        (work / "plan").write_text(case.plan)
        boot_lab("md-witness-task.sh", work, disks=1 + case.members, service_ns=SERVICE_NS, size_mb=size, limit_s=3600)
    lines = (work / "results").read_text().splitlines()
    return {case: figures_of(case, line) for case, line in zip(wanted, lines, strict=True)}


def figures_of(case: TaskCase, line: str) -> TaskFigures:
    """The figures in a line of the lab's results."""
    name, *words = line.split()
    said = dict(word.split("=") for word in words)
    if name != case.name:
        raise LabError(f"the lab ran another case than {case.name}: {line}")
    members = [[int(number) for number in member.split(":")] for member in said["members"].split(",")]
    reads, read_bytes, writes, write_bytes = (sum(column) for column in zip(*members, strict=True))
    return TaskFigures(float(said["seconds"]), reads, read_bytes, writes, write_bytes, int(said["requests"]))


def simulate(case: TaskCase, *, service_ns: int = SERVICE_NS, **policy: object) -> TaskFigures:
    """The same simulated; other disks or another policy show what the comparison is good for."""
    from raidlab import _core

    chunk = "" if case.chunk_kib is None else f", chunk={case.chunk_kib}KiB"
    service_us = service_ns / 1000
    member = {"kind": "fixed", "capacity_bytes": case.member_mib * MIB, "read_us": service_us, "write_us": service_us}
    closed = {"kind": "closed", "depth": case.depth}
    # Idle: the first request would come long after the end.
    nobody = {"kind": "open", "arrival": {"kind": "uniform", "rate_per_s": 1e-4}}
    places = loadgen_offsets(case.depth, case.depth, 20_000, span_mib=case.span_mib)
    request: dict[str, Any] = {
        "engine": "sim",
        "seed": 1,
        "tree": json.loads(_core.parse_tree(f"{case.level}({case.members}{chunk})")),
        "policy": md_policy() | policy,
        "members": [member | {"scheduler": SCHEDULER}],
        "host": {"look": LOOK_NS},
        "load": closed if case.depth else nobody,
        "workload": {
            "read": 1.0 if case.operation == "r" else 0.0,
            "size": {"kind": "fixed", "bytes": 4096},
            "address": {"kind": "listed", "offset_bytes": places},
        },
        "warmup": {},
        "measure": {"duration": LONGEST_NS},
    }
    if case.task == "recover":
        request |= {"missing": [0], "rebuild": {"throttle": {"kind": "md"}, "watch": 0}}
    else:
        # Md compares while it resyncs, but on RAID 1: what agrees is not written. Raidlab calls that a repair.
        kind = "repair" if case.task == "resync" and case.level != "raid1" else case.task
        request["events"] = [{"at": 0, "scrub": kind, "throttle": {"kind": "md"}, "watch": 0}]
    answer = _core.run_cell(json.dumps(request), None)
    (work,) = answer["rebuilds"] or answer["scrubs"]
    if not work["is_over"]:
        raise RuntimeError(f"{case.name} is not over after {LONGEST_NS / 1e9:.0f} s")
    reads, read_bytes, writes, write_bytes = (
        sum(member[key] for member in answer["members"]) for key in ("reads", "read_bytes", "writes", "write_bytes")
    )
    return TaskFigures(work["elapsed_ns"] / 1e9, reads, read_bytes, writes, write_bytes, int(answer["requests"]))


def outside(case: TaskCase, md: TaskFigures, simulated: TaskFigures) -> tuple[str, ...]:
    """What of the simulator is too far from md."""

    def differs(figure: str, share: float, own: int = 0, give: int = 0) -> bool:
        real, ours = getattr(md, figure) - own, getattr(simulated, figure)
        return bool(abs(ours - real) > share * abs(real) + give)

    own, give = OWN_WRITES * case.members, 2 * case.members
    found = {
        "duration": differs("seconds", DURATION),
        "reads": differs("reads", ACCESSES, give=OWN_READS),
        "read bytes": differs("read_bytes", ACCESSES, give=OWN_BYTES),
        "writes": differs("writes", ACCESSES, own, give),
        "write bytes": differs("write_bytes", ACCESSES, give=OWN_BYTES),
        "rate": bool(case.depth)
        and abs(simulated.requests / simulated.seconds / (md.requests / md.seconds) - 1) > RATE,
    }
    return tuple(name for name, is_outside in found.items() if is_outside)


def read_kept() -> dict[TaskCase, TaskFigures]:
    """Md's figures of the last ``--write``."""
    by_name = {case.name: case for case in task_cases()}
    kept: dict[TaskCase, TaskFigures] = {}
    with KEPT.open(newline="") as file:
        for row in csv.DictReader(file):
            counts = {key: int(row[key]) for key in ("reads", "read_bytes", "writes", "write_bytes", "requests")}
            kept[by_name[row["case"]]] = TaskFigures(seconds=float(row["seconds"]), **counts)
    return kept


def write_kept(found: dict[TaskCase, TaskFigures]) -> None:
    """Keep md's figures."""
    with KEPT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", *(field.name for field in fields(TaskFigures))))
        writer.writerows((case.name, *asdict(md).values()) for case, md in found.items())


def compare(figures: dict[TaskCase, TaskFigures]) -> int:
    """Print the table; how many cases are outside otherwise than is known."""
    print(
        f"{'case':30} {'s: md':>8} {'simul.':>8}  {'R+W: md':>13} {'simulated':>13}"
        f"  {'MiB R+W: md':>15} {'simulated':>13}"
    )
    surprises = 0
    for case, md in figures.items():
        ours = simulate(case)
        found, known = outside(case, md, ours), KNOWN.get(case.name, ())
        surprises += found != known
        sizes = [f"{f.read_bytes / MIB:.1f}+{f.write_bytes / MIB:.1f}" for f in (md, ours)]
        rates = f"  {md.requests / md.seconds:.1f}/s {ours.requests / ours.seconds:.1f}/s" if case.depth else ""
        word = f"OUTSIDE{' as known' if found == known else ''}: {', '.join(found)}" if found else "holds"
        print(
            f"{case.name:30} {md.seconds:8.3f} {ours.seconds:8.3f}"
            f"  {md.reads:>6}+{md.writes:<6} {ours.reads:>6}+{ours.writes:<6}"
            f"  {sizes[0]:>15} {sizes[1]:>13}{rates}  {word}{'' if found == known else f' (known: {known})'}",
            flush=True,
        )
    return surprises


KNOWN: dict[str, tuple[str, ...]] = {
    "raid10-n4-c16-recover": ("writes",),
    "raid1-n3-resync": ("duration", "reads", "writes"),
    "raid10-n4-c16-resync": ("duration", "reads"),
    "raid10-n6-c512-resync": ("reads",),
    "raid10-n4-c16-check": ("duration", "reads"),
    "raid10-n6-c512-check": ("reads",),
    "raid5-n5-recover-beside-r-d8": ("duration", "reads", "writes"),
    "raid6-n6-recover-beside-r-d8": ("duration", "reads", "writes", "rate"),
    "raid5-n5-check-beside-r-d8": ("duration", "reads"),
    "raid5-n5-recover-beside-w-d8": ("duration", "reads", "writes", "rate"),
    "raid6-n6-recover-beside-w-d8": ("duration", "reads", "writes", "write bytes"),
    "raid5-n5-check-beside-w-d8": ("duration", "reads", "writes", "write bytes"),
    "raid6-n6-check-beside-w-d8": ("duration", "reads", "writes", "write bytes"),
    "raid10-n4-recover-beside-r-d1": ("duration", "reads", "writes"),
    "raid5-n5-recover-beside-r-d1": ("duration", "reads", "writes", "rate"),
    "raid6-n6-recover-beside-r-d1": ("duration", "reads", "writes"),
    "raid10-n4-check-beside-r-d1": ("duration", "reads"),
    "raid5-n5-recover-beside-w-d1": ("rate",),
    "raid6-n6-recover-beside-w-d1": ("duration", "reads", "writes"),
    "raid10-n4-check-beside-w-d1": ("duration", "reads", "writes", "write bytes"),
    "raid5-n5-check-beside-w-d1": ("reads", "rate"),
    "raid6-n6-check-beside-w-d1": ("duration", "reads", "writes", "write bytes", "rate"),
    "raid6-n5-c128-recover-beside-r-d8": ("duration", "reads", "writes"),
    "raid6-n5-c128-check-beside-r-d8": ("duration", "reads"),
}
"""What is outside, and why is said in docs/internals/md-witness.md. Whoever mends one takes it out here."""


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Rebuild, resync and check beside real Linux md over the same disks.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="keep md's figures in tests/md-witness/tasks.csv")
    action.add_argument("--committed", action="store_true", help="boot nothing: compare with the figures kept there")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains this")
    arguments = parser.parse_args()
    wanted = [case for case in task_cases() if arguments.only in case.name]
    if not wanted:
        parser.error(f"--only {arguments.only}: no case is called so, such as {task_cases()[0].name}")
    if arguments.committed:
        known = read_kept()
        return int(compare({case: known[case] for case in wanted if case in known}) > 0)
    try:
        with tempfile.TemporaryDirectory(prefix="md-witness.") as folder:
            found = run_md(wanted, Path(folder))
    except LabError as error:
        print(f"witness_tasks.py: {error}", file=sys.stderr)
        return 2
    if arguments.write:
        kept = (read_kept() if KEPT.exists() else {}) | found
        write_kept({case: kept[case] for case in task_cases() if case in kept})
    return int(compare(found) > 0)


if __name__ == "__main__":
    sys.exit(main())

"""The network tests: one machine, two, ... all, writing and reading; and half of them reading while the others write.

Invariants:

- What a machine reads it has written before in the same place, and is evicted from the storage's cache where this
  process can reach it; where it cannot, the result says so.
- The limit of each step is named by what was watched while it ran.
- Reading and writing are reported apart, also where both go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from raidlab.directory import Directory
from raidlab.network.controller import AgentMachine, StepResult, Work, run_step
from raidlab.network.limits import StepLimit, Watch, WatchedResource, name_limit
from raidlab.network.store import OWN_NAME
from raidlab.stats import mean_interval

Note = Callable[[str], None]
# Test 5 of the plan: so many read while so many write.
_HALF = 2


@dataclass(frozen=True)
class NetworkTestPlan:
    """What is asked."""

    total: int
    """Bytes that each machine moves in a step."""
    block_bytes: int
    repeats: int
    watches: Sequence[Watch] = ()
    """What is watched besides the agents: links, the server."""
    directory: Path | None = None
    """The storage's own directory, where this process can put files out of the cache; None where it cannot."""


@dataclass(frozen=True)
class NetworkRow:
    """One direction of one step, over all repeats."""

    test: str
    """Such as ``3 read``."""
    work: Work
    machines: int
    """How many did it."""
    total_mb_s: float
    low: float | None
    high: float | None
    """All together, and the 95 % interval over repeats (None for one)."""
    slowest_mb_s: float
    fastest_mb_s: float
    """Among the machines."""
    limit: StepLimit


def run_tests(
    machines: Sequence[AgentMachine], asked: NetworkTestPlan, note: Note = lambda _text: None
) -> Iterator[NetworkRow]:
    """All tests on so many machines; a row as soon as it is there."""
    for work in ("write", "read"):
        for count in range(1, len(machines) + 1):
            note(f"{count} {work}")
            yield from _rows(f"{count} {work}", [(machine, work) for machine in machines[:count]], asked)
    if len(machines) >= 2 * _HALF:
        readers, writers = machines[:_HALF], machines[_HALF : 2 * _HALF]
        note(f"{_HALF} read while {_HALF} write")
        jobs: list[tuple[AgentMachine, Work]] = [(one, "read") for one in readers]
        jobs += [(one, "write") for one in writers]
        yield from _rows(f"{_HALF} read while {_HALF} write", jobs, asked)


def _rows(test: str, jobs: Sequence[tuple[AgentMachine, Work]], asked: NetworkTestPlan) -> Iterator[NetworkRow]:
    steps: list[StepResult] = []
    used: list[list[WatchedResource]] = []
    for _repeat in range(asked.repeats):
        before = [watch.read() for watch in asked.watches]
        steps.append(run_step(jobs, asked.total, asked.block_bytes, evict=lambda: _evict(asked.directory)))
        found = [
            watch.watched(old, watch.read(), steps[-1].elapsed_ns)
            for watch, old in zip(asked.watches, before, strict=True)
        ]
        used.append([*found, _agents_watched(steps[-1])])
    limit = name_limit(_merged(used))
    for work in dict.fromkeys(work for _machine, work in jobs):
        totals = [step.total_mb_s(work) for step in steps]
        interval = mean_interval(totals) if len(totals) > 1 else None
        rates = [one.mb_s for step in steps for one in step.machines if one.work == work]
        yield NetworkRow(
            test,
            work,
            sum(1 for _machine, other in jobs if other == work),
            sum(totals) / len(totals),
            interval[0] if interval else None,
            interval[1] if interval else None,
            min(rates),
            max(rates),
            limit,
        )


def _merged(used: Sequence[Sequence[WatchedResource]]) -> list[WatchedResource]:
    """What was watched, the mean of the repeats; the links of machines as one, the busiest of those that worked."""
    found = []
    for each in zip(*used, strict=True):
        share = sum(one.share for one in each) / len(each)
        nearest = min(each, key=lambda one: abs(one.share - share))
        found.append(WatchedResource(each[0].name, share, nearest.detail))
    machines = [one for one in found if one.name.startswith("the link of machine")]
    busy = [one for one in machines if one.share > 0.5 * max(other.share for other in machines)]
    rest = [one for one in found if one not in machines]
    if not busy:
        return rest
    mean = sum(one.share for one in busy) / len(busy)
    name = "the machine's own link" if len(busy) == 1 else "the machines' own links"
    return [
        *rest,
        WatchedResource(name, mean, f"{busy[0].detail}, each of {len(busy)}" if len(busy) > 1 else busy[0].detail),
    ]


def _evict(directory: Path | None) -> None:
    """Put raidlab's own files there out of this machine's page cache."""
    if directory is None:
        return
    with Directory.open(directory) as place:
        for name in filter(OWN_NAME.fullmatch, place.names()):
            with suppress(OSError), os.fdopen(place.open_file(name), "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _agents_watched(step: StepResult) -> WatchedResource:
    """What the busiest agent worked; one of them has one processor at most."""
    busiest = max(step.machines, key=lambda one: one.cpu_share)
    return WatchedResource("a machine's own work", busiest.cpu_share, f"{100 * busiest.cpu_share:.0f} % of a processor")

"""What hosts get from a storage together: one, two, ... all write, and read; and some read while others write.

Invariants:

- A step is one cell of `Hosts`: its hosts begin together, and rates are over the time from the first window opening to
  the last one closing.
- Reading and writing are reported apart, also where both go on.
- Steps are run in turns. A step in which a host was lost has a row of its own, of those that were left; what more hosts
  were needed for than are left is not run.

Reference: I. Bird et al., *Evaluating RAID in the Real World*, Jefferson Lab, 1998 (the tests of network-attached
boxes).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from raidlab.measure.execute import measure_request
from raidlab.measure.hosts import Hosts
from raidlab.measure.plan import plan_of
from raidlab.measure.request import MeasureRequest
from raidlab.measure.turns import in_turns
from raidlab.results.answer import CellAnswer, CheckAnswer, worst_checks
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress
from raidlab.run.runner import check_ended
from raidlab.stats import mean_interval
from raidlab.study import expand
from raidlab.study.target import Amount

Work = Literal["read", "write"]
_WORKS: tuple[Work, Work] = ("read", "write")
# Test 5 of the plan: so many read while so many write.
_HALF = 2


class HostsStep(NamedTuple):
    """So many hosts that read, and so many that write, at once."""

    test: str
    """Such as ``3 write``."""
    readers: int
    writers: int


class StepAnswer(NamedTuple):
    """What came of a step once."""

    reads: dict[str, float]
    """The hosts that were to take part, with the share of reads of each."""
    answer: CellAnswer

    @property
    def began_ns(self) -> dict[str, int]:
        """The hosts that did take part, and when each began."""
        return {host["name"]: host["began_unix_ns"] for host in self.answer["facts"]["hosts"]}

    @property
    def is_whole(self) -> bool:
        """Whether none was lost in it."""
        return set(self.began_ns) == set(self.reads)


@dataclass(frozen=True)
class NetworkRow:
    """One direction of one step, over all repeats."""

    test: str
    work: Work
    machines: int
    """How many did it."""
    repeats: int
    total_mb_s: float
    low: float | None
    high: float | None
    """All together, and the 95 % interval over repeats (None for one)."""
    slowest_mb_s: float
    fastest_mb_s: float
    """Among the machines."""
    apart_ms: float
    """How far apart at most its hosts began."""


@dataclass(frozen=True)
class NetworkOutcome:
    """What came of all steps."""

    rows: list[NetworkRow]
    checks: list[CheckAnswer]
    """The worst verdict of each check."""
    status: str
    failure: str | None


def steps_of(count: int) -> list[HostsStep]:
    """The steps of so many hosts.

    Examples
    --------
    >>> [step.test for step in steps_of(4)][-3:]
    ['3 read', '4 read', '2 read while 2 write']
    """
    found = [HostsStep(f"{number} write", 0, number) for number in range(1, count + 1)]
    found += [HostsStep(f"{number} read", number, 0) for number in range(1, count + 1)]
    both = HostsStep(f"{_HALF} read while {_HALF} write", _HALF, _HALF)
    return [*found, both] if count >= 2 * _HALF else found


def measure_network(asked: MeasureRequest, hosts: Hosts, *, progress: Progress, stop: StopFlag) -> NetworkOutcome:
    """Run all steps; ``asked`` is of one target that is read and written, and its depth is that of one host.

    Raises `RaidlabError` before anything is measured.
    """
    count, [depth] = len(hosts.hosts), asked.load["depths"]
    loaded, [subject] = plan_of(replace(asked, load={"depths": [count * depth]}), hosts)
    cell = expand(loaded.study, "live", seed=asked.seed).cells[0]
    with hosts.made_members() as members:
        progress.note("making the target of each host ready")
        once = measure_request(loaded, cell, subject, members, asked.drive, amounts=(Amount(), Amount(requests=1)))
        _whole(hosts.run(once))
        document = json.loads(measure_request(loaded, cell, subject, members, asked.drive))

        def run(step: HostsStep, repeat: int) -> StepAnswer | None:
            names = [host.name for host in hosts.living][: step.readers + step.writers]
            if len(names) < step.readers + step.writers:
                return None
            reads = {name: float(at < step.readers) for at, name in enumerate(names)}
            load = {**document["load"], "depth": len(names) * depth}
            request = json.dumps({**document, "load": load, "seed": document["seed"] + repeat})
            return StepAnswer(reads, _whole(hosts.run(request, reads)))

        turns = in_turns(
            steps_of(count),
            asked.budget.repeats,
            run,
            seed=asked.seed,
            title="loading from hosts",
            progress=progress,
            stop=stop,
        )
    hosts.say_lost(turns)
    leaves = {host.name: leaf for leaf, host in enumerate(hosts.hosts)}
    done = {step: [one for one in found if one is not None] for step, found in turns.results.items()}
    rows = [row for step, found in done.items() for row in _rows(step, found, leaves)]
    checks = worst_checks(check for found in done.values() for one in found for check in one.answer["checks"])
    return NetworkOutcome(rows, checks, turns.status, turns.failure)


def _whole(answer: CellAnswer) -> CellAnswer:
    check_ended(answer["stopped_by"], interrupted=answer["interrupted"])
    return answer


def _rows(step: HostsStep, found: Sequence[StepAnswer], leaves: dict[str, int]) -> list[NetworkRow]:
    """A row a direction; of those repeats in which a host was lost, rows of their own."""
    groups = (
        (step.test, [one for one in found if one.is_whole]),
        (f"{step.test}, one lost", [one for one in found if not one.is_whole]),
    )
    rows = [_row(test, work, each, leaves) for test, each in groups for work in _WORKS if each]
    return [row for row in rows if row is not None]


def _row(test: str, work: Work, each: Sequence[StepAnswer], leaves: dict[str, int]) -> NetworkRow | None:
    share = float(work == "read")
    totals, rates, machines, apart_ns = [], [], 0, 0
    for one in each:
        began_ns, members, mb_s = one.began_ns, one.answer["members"], 1000 / one.answer["elapsed_ns"]
        mine = [members[leaves[name]] for name in began_ns if one.reads[name] == share]
        rates += [mb_s * (member["read_bytes"] if share else member["write_bytes"]) for member in mine]
        totals.append(mb_s * one.answer[work]["bytes"])
        machines = len(mine)
        apart_ns = max(apart_ns, max(began_ns.values()) - min(began_ns.values()))
    if not machines:
        return None
    interval = mean_interval(totals) if len(totals) > 1 else None
    # No rate is below nothing, however few the repeats.
    low, high = (max(0.0, interval[0]), interval[1]) if interval else (None, None)
    mean = sum(totals) / len(totals)
    return NetworkRow(test, work, machines, len(totals), mean, low, high, min(rates), max(rates), apart_ns / 1e6)

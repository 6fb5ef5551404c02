"""What a target is asked: requests at random multiples of a period, and the two that can be asked.

Invariants:

- A test is a function of its fields and a seed; a target and a hypothesis are asked in the same way.
- A target is only read, unless the test writes; such a test is made only where the device is given up.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from raidlab import _core
from raidlab.reading import Plain
from raidlab.results.answer import CellAnswer
from raidlab.run.interrupt import StopFlag
from raidlab.run.runner import cell_answer, check_ended, run_request
from raidlab.study.cell import (
    ArrayCell,
    CellCache,
    CellPath,
    CellPolicy,
    ClosedLoad,
    DirectCell,
    Limit,
    Opaque,
    text_of,
)
from raidlab.study.units import format_bytes
from raidlab.study.workload import DrawnRequests, FixedSize, ListedAddress

PAGE = 4096
# How many starts are drawn for a test; one that lasts longer begins with them again.
LISTED = 1024
# On the virtual clock: so many requests are counted after so many that are not, and more where more are in flight.
_REQUESTS, _WARM_UP = 400, 60
# Writes are told from one another only where the members' own buffers are full.
_WARM_UP_WRITES = 1000
_USUAL_DEPTH = 16


@dataclass(frozen=True)
class ProbeTest:
    """Requests of one size at random multiples of a period, at one or more positions within it."""

    name: str
    period_bytes: int
    positions: tuple[int, ...] = (0,)
    op: Literal["read", "write"] = "read"
    size_bytes: int = PAGE
    depth: int = 16

    def starts(self, capacity_bytes: int, count: int, seed: int) -> list[int]:
        """Where its requests begin, in a target of this size."""
        of = f"{self.period_bytes}/{self.positions}/{self.op}/{self.size_bytes}"
        drawn = np.random.default_rng([seed, zlib.crc32(of.encode())])
        last = max(self.positions) + self.size_bytes
        multiples = max(1, (capacity_bytes - last) // self.period_bytes + 1)
        starts = drawn.integers(multiples, size=count) * self.period_bytes + drawn.choice(self.positions, size=count)
        return [int(start) for start in starts]

    def workload(self, starts: list[int]) -> DrawnRequests:
        """Its requests, as a cell has them."""
        return DrawnRequests(
            read=1.0 if self.op == "read" else 0.0,
            size=FixedSize(kind="fixed", bytes=self.size_bytes),
            address=ListedAddress(kind="listed", offset_bytes=starts),
            align=PAGE,
        )


class Counted(NamedTuple):
    """How many requests are asked for before it counts, and how many then."""

    warm_up: int
    requests: int


def counted_in(test: ProbeTest) -> Counted:
    """How many requests of a test are asked for on a virtual clock."""
    deeper = max(1, test.depth // _USUAL_DEPTH)
    warm_up = _WARM_UP if test.op == "read" else _WARM_UP_WRITES
    return Counted(warm_up * deeper, _REQUESTS * deeper)


class AskedTest(NamedTuple):
    """A test, what it gave, and what of its requests were counted and where they began."""

    test: ProbeTest
    log_rate: float
    starts: list[int]
    counted: Counted


class ProbeSubject(Protocol):
    """What can be probed."""

    @property
    def capacity_bytes(self) -> int:
        """What it holds."""

    def ask(self, test: ProbeTest, starts: list[int], counted: Counted | None = None) -> CellAnswer:
        """Ask for what begins there; `KeyboardInterrupt` where it is to stop."""


@dataclass(frozen=True)
class TargetBox:
    """A real target, driven by the meter of `raidlab measure`."""

    member: Opaque
    capacity_bytes: int
    seed: int
    stop: StopFlag
    slot_ns: int
    destroy: tuple[str, ...] = ()

    def ask(self, test: ProbeTest, starts: list[int], counted: Counted | None = None) -> CellAnswer:
        """Ask on the real clock."""
        cell = DirectCell(
            seed=self.seed,
            targets=[self.member],
            destroy=list(self.destroy),
            load=ClosedLoad(depth=test.depth),
            workload=test.workload(starts),
            verify="off",
            warmup=Limit(duration=self.slot_ns // 6) if counted is None else Limit(requests=counted.warm_up),
            measure=Limit(duration=self.slot_ns) if counted is None else Limit(requests=counted.requests),
        )
        answer = run_request(text_of(cell), lambda _share: not self.stop())
        check_ended(answer.get("stopped_by"), interrupted=bool(answer.get("interrupted")))
        return cell_answer(answer)


@dataclass(frozen=True)
class SimulatedBox:
    """An array of modelled members on the virtual clock: a hypothesis, or a target whose answer is known."""

    tree: Opaque
    member: Mapping[str, Plain]
    policy: CellPolicy
    capacity_bytes: int
    seed: int
    cache: CellCache | None = None

    def ask(self, test: ProbeTest, starts: list[int], counted: Counted | None = None) -> CellAnswer:
        """Ask on the virtual clock."""
        counted = counted or counted_in(test)
        cell = ArrayCell(
            engine="sim",
            seed=self.seed,
            tree=self.tree,
            members=[dict(self.member)],
            policy=self.policy,
            path=CellPath(cache=[self.cache]) if self.cache is not None else None,
            load=ClosedLoad(depth=test.depth),
            workload=test.workload(starts),
            warmup=Limit(requests=counted.warm_up),
            measure=Limit(requests=counted.requests),
        )
        return cell_answer(run_request(text_of(cell)))


def simulated_box(
    tree: Opaque, member: Mapping[str, Plain], policy: CellPolicy, seed: int, cache: CellCache | None = None
) -> SimulatedBox:
    """An array of such members, as large as they make it."""
    device = _core.device_facts(json.dumps(dict(member)))
    facts = _core.tree_facts(json.dumps(tree), device["capacity_bytes"], device["sector_bytes"])
    return SimulatedBox(tree, member, policy, facts["volume_bytes"][0], seed, cache)


def rate_of(subject: ProbeSubject, test: ProbeTest, seed: int) -> float:
    """Requests a second of a test."""
    return rate_in(subject.ask(test, test.starts(subject.capacity_bytes, LISTED, seed)))


def rate_in(answer: CellAnswer) -> float:
    """Requests a second of an answer.

    A target that did nothing in a test is too slow for it; a cache of the virtual clock may take no time at all.
    """
    return 1e9 * max(answer["all"]["requests"], 1) / max(answer["elapsed_ns"], 1)


def asked_test(test: ProbeTest, starts: list[int], answer: CellAnswer) -> AskedTest:
    """A test with its answer, which says on the real clock how many requests there were."""
    counted = counted_in(test)
    if (of_run := answer.get("requests_of_run")) is not None:
        requests = answer["all"]["requests"]
        counted = Counted(of_run["completed"] - requests, requests)
    return AskedTest(test, math.log(rate_in(answer)), starts, counted)


def position_words(positions: tuple[int, ...]) -> str:
    """Positions in words, such as ``0 and 64 KiB``."""
    return " and ".join("0" if not one else format_bytes(one) for one in positions)

"""What is fitted: a target on the real clock, or a modelled device on the virtual one.

Invariants:

- Both are asked the same cells and answer in the same words; nothing of the fit knows which of the two it has.
- A target is written only where `raidlab measure` would write it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from raidlab.measure.fit.situations import Slot
from raidlab.reading import Plain
from raidlab.results.answer import CellAnswer
from raidlab.run.interrupt import StopFlag
from raidlab.run.runner import cell_answer, check_ended, run_request
from raidlab.study.cell import ArrayCell, ClosedLoad, DirectCell, Limit, Opaque, OpenLoad, PoissonArrival, text_of

# Of requests that come at random, at a device that cannot follow.
MOST_IN_FLIGHT = 1024


class FitSubject(Protocol):
    """Something that can be asked for the times of requests."""

    def ask(self, slot: Slot) -> CellAnswer:
        """Run one turn; `KeyboardInterrupt` where it is to stop."""


def seed_of(seed: int, slot: Slot) -> int:
    """The seed of a turn: every turn reads elsewhere, so that what one leaves in a cache is of no use to another."""
    return zlib.crc32(f"{seed}/{slot.turn}/{slot.situation}".encode())


def load_of_slot(slot: Slot) -> ClosedLoad | OpenLoad:
    """How the requests of a turn are offered."""
    if slot.rate_per_s is None:
        return ClosedLoad(depth=slot.situation.depth)
    return OpenLoad(arrival=PoissonArrival(rate_per_s=slot.rate_per_s), max_in_flight=MOST_IN_FLIGHT)


@dataclass(frozen=True)
class TargetSubject:
    """A real target, driven by the meter of `raidlab measure`."""

    member: Opaque
    seed: int
    stop: StopFlag

    def ask(self, slot: Slot) -> CellAnswer:
        """Run one turn on the real clock."""
        cell = DirectCell(
            seed=seed_of(self.seed, slot),
            targets=[self.member],
            load=load_of_slot(slot),
            workload=slot.situation.requests(),
            verify="off",
            warmup=Limit(duration=slot.warmup_ns),
            measure=Limit(duration=slot.measure_ns),
        )
        answer = run_request(text_of(cell), lambda _share: not self.stop())
        check_ended(answer.get("stopped_by"), interrupted=bool(answer.get("interrupted")))
        return cell_answer(answer)


@dataclass(frozen=True)
class ModelSubject:
    """A modelled device, by itself in the simulator."""

    parameters: Mapping[str, Plain]
    seed: int = 1
    most_requests: int = 20_000
    """Beyond so many a mean is as sure as it will be."""

    def ask(self, slot: Slot) -> CellAnswer:
        """Run one turn on the virtual clock."""
        cell = ArrayCell(
            engine="sim",
            seed=seed_of(self.seed, slot),
            tree={"kind": "independent", "children": [{"kind": "member"}]},
            members=[json.loads(json.dumps(self.parameters))],
            load=load_of_slot(slot),
            workload=slot.situation.requests(),
            warmup=Limit(duration=slot.warmup_ns)
            if slot.warmup_ns
            else Limit(requests=max(20 * slot.situation.depth, 200)),
            measure=Limit(requests=self.most_requests, duration=slot.measure_ns),
        )
        return cell_answer(run_request(text_of(cell)))

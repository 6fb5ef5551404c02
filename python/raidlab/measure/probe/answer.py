"""What a probe is told, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from raidlab.measure.probe.hypotheses import Hypothesis
from raidlab.measure.probe.judge import CandidateClass
from raidlab.study.device import DeviceModel

LEAST_MEMBERS, MOST_MEMBERS = 2, 12

Verdict = Literal["sure", "sure of a class", "not sure", "no known array", "a cache answers", "members unknown"]


@dataclass(frozen=True)
class ProbeRequest:
    """What a probe is told, whatever it probes."""

    title: str
    """What the target is called."""
    members: tuple[int, int] = (LEAST_MEMBERS, MOST_MEMBERS)
    member: DeviceModel | None = None
    """What the members are, where that is known."""
    writes: bool = False
    budget_ns: int = 600_000_000_000
    seed: int = 1


@dataclass(frozen=True)
class ProbeLine:
    """A test, what it gave, and what the likeliest array would give."""

    name: str
    op: str
    depth: int
    rate_per_s: float
    predicted_per_s: float
    runner_up_per_s: float | None
    """What the likeliest array of another class would give."""
    residual_sigma: float


@dataclass(frozen=True)
class ProbeAnswer:
    """What a target is, how sure that is, and why."""

    title: str
    verdict: Verdict
    classes: tuple[CandidateClass, ...] = ()
    """The likeliest first; those of less than 1 % are left out."""
    runner_up: Hypothesis | None = None
    """The likeliest array of the second class, however unlikely."""
    lines: tuple[ProbeLine, ...] = ()
    latency_ns: float = 0.0
    """Of one random read of 4 KiB at a time."""
    cache_ratio: float = 0.0
    """How many times as fast what was just read is read again."""
    writes_cached: bool = False
    """Whether writes ended before the members could have done them."""
    needs: tuple[str, ...] = ()
    """What would tell more."""
    notes: tuple[str, ...] = ()
    busy_ns: int = 0
    """How long the target was measured."""
    seen_in_bytes: int = 0
    """The size of a target that is too small for some of the arrays asked for to be seen in; 0 of a large one."""
    kind: Literal["block", "file", "sim"] = "block"
    """What was probed: only a block device may be given up, and a simulated array may always be written."""

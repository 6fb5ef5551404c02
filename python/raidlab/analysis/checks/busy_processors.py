"""Did other programs keep the processors from raidlab?

Who waits for a processor asks for less, and finds later what has long been done: a slow machine looks like a slow
device. That others are at work is no harm by itself; that somebody had to wait meanwhile is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Machine, MachineNow

NAME = "busy_processors"
# Of the time of all processors together.
_MOST_SHARE = 0.25
# Of the time, that somebody waited for a processor.
_MOST_WAITED = 0.25
# Where the kernel does not tell who waited.
_CROWDED_SHARE = 0.5
_MOMENTS: tuple[Literal["before"], Literal["after"]] = ("before", "after")


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when other programs took over 25 % of the processors, and somebody waited for one 25 % of the time."""
    machine = analysis.run.facts.get("machine")
    if machine is not None and any(point.target == "live" for point in analysis.points):
        yield of_machine(machine, "run")


def of_machine(machine: Machine, target: str) -> Finding:
    """By what all programs had used before and after, and by how long anybody waited for a processor."""
    (programs, waited_us, ticks), (programs_after, waited_after, ticks_after) = (
        _used(machine[when]) for when in _MOMENTS
    )
    if programs is None or programs_after is None or ticks is None or ticks_after is None or ticks_after <= ticks:
        why = "it was not recorded what other programs used"
        return Finding(NAME, target, UNKNOWN, f"Could not be determined, because {why}.", "Watch top meanwhile.")
    # A program that began meanwhile is counted whole, one that ended not at all: a lower bound.
    grown = sum(count - programs.get(number, 0) for number, count in programs_after.items())
    share = grown / (ticks_after - ticks)
    waited, span_ns = None, machine["after"]["clock"]["monotonic_ns"] - machine["before"]["clock"]["monotonic_ns"]
    if waited_us is not None and waited_after is not None and span_ns > 0:
        waited = (waited_after - waited_us) * 1000 / span_ns
    told = "" if waited is None else f", and somebody waited for a processor {min(waited, 1.0):.0%} of the time"
    evidence = f"Other programs took {share:.0%} of the processors{told}."
    crowded = share > _CROWDED_SHARE if waited is None else share > _MOST_SHARE and waited > _MOST_WAITED
    if crowded:
        return Finding(NAME, target, WARN, evidence, "Stop what else runs (top), and measure again.")
    return Finding(NAME, target, PASS, evidence)


def _used(machine: MachineNow) -> tuple[dict[str, int] | None, int | None, int | None]:
    """What each other program had used, for how long anybody had waited, and all ticks; None where nobody told."""
    others, ticks = machine.get("others"), machine["processor"]["all_ticks"]
    return (None, None, ticks) if others is None else (others["programs"], others["waited_us"], ticks)

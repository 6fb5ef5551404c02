"""Did other programs keep the processors from raidlab?

Who waits for a processor asks for less, and finds later what has long been done: a slow machine looks like a slow
device. That others are at work is no harm by itself; that somebody had to wait meanwhile is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.metrics import Analysis

NAME = "busy_processors"
# Of the time of all processors together.
_MOST_SHARE = 0.25
# Of the time, that somebody waited for a processor.
_MOST_WAITED = 0.25
# Where the kernel does not tell who waited.
_CROWDED_SHARE = 0.5


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when other programs took over 25 % of the processors, and somebody waited for one 25 % of the time."""
    machine = analysis.run.facts.get("machine")
    if machine is not None and any(point.target == "live" for point in analysis.points):
        yield judge(machine, "run")


def check_machine(machine: dict[str, Any]) -> Iterator[Finding]:
    """Over the time of the other checks."""
    yield judge(machine, "machine")


def judge(machine: dict[str, Any], target: str) -> Finding:
    """By what all programs had used before and after, and by how long anybody waited for a processor."""
    before, after = (machine[when].get("others") or {} for when in ("before", "after"))
    ticks = [machine[when]["processor"]["all_ticks"] for when in ("before", "after")]
    spans = [machine[when]["clock"].get("monotonic_ns") for when in ("before", "after")]
    if before.get("programs") is None or after.get("programs") is None or None in ticks or ticks[1] <= ticks[0]:
        why = "it was not recorded what other programs used"
        return Finding(NAME, target, UNKNOWN, f"Could not be determined, because {why}.", "Watch top meanwhile.")
    # A program that began meanwhile is counted whole, one that ended not at all: a lower bound.
    grown = sum(count - before["programs"].get(number, 0) for number, count in after["programs"].items())
    share = grown / (ticks[1] - ticks[0])
    waited = None
    if None not in (before.get("waited_us"), after.get("waited_us"), *spans) and spans[1] > spans[0]:
        waited = (after["waited_us"] - before["waited_us"]) * 1000 / (spans[1] - spans[0])
    told = "" if waited is None else f", and somebody waited for a processor {min(waited, 1.0):.0%} of the time"
    evidence = f"Other programs took {share:.0%} of the processors{told}."
    crowded = share > _CROWDED_SHARE if waited is None else share > _MOST_SHARE and waited > _MOST_WAITED
    if crowded:
        return Finding(NAME, target, WARN, evidence, "Stop what else runs (top), and measure again.")
    return Finding(NAME, target, PASS, evidence)

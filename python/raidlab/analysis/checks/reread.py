"""Was the same read over and over, so that a cache below the device may have answered?

Below every layer that the kernel knows may lie one more cache: a drive's, a controller's, a storage network's. What
fits into it is read from it from the second time on, and none of its counters is to be had.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.cache import in_memory
from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.checks.members import is_stored
from raidlab.analysis.metrics import Analysis
from raidlab.study.units import format_bytes

NAME = "reread"
_MOST_TIMES = 2.0
# The smallest drive has as much memory of its own.
_ANY_CACHE_BYTES = 32 << 20
# No cache that is common holds more.
_LARGEST_CACHE_BYTES = 1 << 40


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when 32 MiB or less were read more than twice over; UNKNOWN where a larger cache may have answered."""
    found = []
    for array in dict.fromkeys(point.array for point in analysis.points if point.target == "live"):
        members = [member for member in analysis.run.live_members(array) if is_stored(member)]
        read = sum(
            point.total("read_bytes") for point in analysis.points if (point.target, point.array) == ("live", array)
        )
        if read and members and not all(in_memory(member) for member in members):
            span = sum(member.get("size_bytes") or 0 for member in members)
            measure = analysis.run.facts.get("measure")
            low, high = (0.0, 100.0) if measure is None else measure["span_percent"]
            span = int(span * (high - low) / 100)
            if span:
                found.append((read / span, span, array))
    if not found:
        return
    times, span, array = max(found, key=lambda entry: (entry[0] > _MOST_TIMES, -entry[1], entry[0]))
    if times <= _MOST_TIMES or span > _LARGEST_CACHE_BYTES:
        worst = max(times for times, *_ in found)
        yield Finding(NAME, "live", PASS, f"No target was read more than {worst:.2g} times over.")
        return
    told = f"the {format_bytes(span)} of {array} were read {times:,.0f} times over"
    remedy = knob(
        analysis,
        "Give members more than any cache holds (live.member_size), and look with raidlab check.",
        "Leave out --quick, give members more than any cache holds, and look with raidlab check.",
        "Take a larger target (--file-size), or look with raidlab check, which times reading again.",
    )
    if span <= _ANY_CACHE_BYTES:
        yield Finding(NAME, "live", WARN, f"{told[0].upper()}{told[1:]}: every drive has a cache of that size.", remedy)
        return
    evidence = f"Could not be determined, because {told}: a cache below, if it holds them, answered all but the first."
    yield Finding(NAME, "live", UNKNOWN, evidence, remedy)

"""Were the kernel's arrays below the targets whole and idle, before and after?

An array without one of its members, or busy with a rebuild, a resync or a scrub, is another array than the one that
its owner wants to know about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raidlab.checks.finding import PASS, WARN, Finding
from raidlab.metrics import Analysis

NAME = "array_state"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for arrays and volumes of the kernel's that are degraded, busy, or tell nothing of their state."""
    members = analysis.run.live_members()
    looks = [("", "volumes"), (" afterwards", "volumes_after")]
    found = {
        (volume["kind"], volume["name"], when): volume
        for member in members
        for when, key in looks
        for volume in member.get(key) or []
    }
    if not found:
        return
    wrong = [words for (_, _, when), volume in found.items() if (words := _wrong(volume, when))]
    if wrong:
        sentences = "; ".join(dict.fromkeys(wrong))
        yield Finding(
            NAME,
            "live",
            WARN,
            f"{sentences}.",
            "Measure again when the array is whole and idle, or say with every figure that it was not.",
        )
        return
    names = sorted({name for _, name, _ in found})
    yield Finding(NAME, "live", PASS, f"Whole and idle before and after: {', '.join(names)}.")


def _wrong(volume: dict[str, Any], when: str) -> str:
    name = f"{volume['name']} ({volume['kind']})"
    if volume["state"] is None:
        reason = volume["unknown"].get("state", "nothing tells")
        return f"The state of {name}{when} could not be determined, because {reason}"
    faults = [volume["state"]] if volume["state"] != "optimal" else []
    if volume["activity"] not in (None, "idle"):
        faults.append(f"busy with {volume['activity']}")
    return f"{name} was{when} {' and '.join(faults)}" if faults else ""

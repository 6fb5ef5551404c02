"""Do the live members lie on disks of their own?

Members that share a disk do not work side by side: more members bring no more disk, and a redundant write that goes to
"two members" goes twice to one disk. Ratios between arrays then show the work each level causes, not what real arrays
of separate disks would do.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.checks.finding import PASS, WARN, Finding
from raidlab.metrics import Analysis

NAME = "shared_device"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when members share physical devices."""
    members = analysis.run.facts["live_members"]
    if not members:
        return
    if all(member["kind"] == "memory" for member in members):
        yield Finding(
            NAME,
            "live",
            WARN,
            f"All {len(members)} members are in memory: the live figures are the cost of raidlab and of the kernel, "
            "not of disks.",
            "Use --on with a directory or with devices to measure storage.",
        )
        return
    disks = sorted({disk for member in members for disk in member["disks"]})
    if len(disks) == 1:
        yield Finding(
            NAME,
            "live",
            WARN,
            f"All {len(members)} members lie on one physical device ({disks[0]}): they share its throughput, so more "
            "members bring no more speed. Live figures per disk divide by that one disk and show how much work a level "
            "causes; they do not show how separate disks would share it.",
            "Give one directory or device of its own for each member: --on /disk1/ --on /disk2/ ...; "
            "use the simulated half to judge separate disks.",
        )
    elif len(disks) < len(members):
        yield Finding(
            NAME,
            "live",
            WARN,
            f"{len(members)} members lie on {len(disks)} physical devices ({', '.join(disks)}): some share one.",
            "Give one directory or device of its own for each member.",
        )
    else:
        yield Finding(NAME, "live", PASS, f"Each of the {len(members)} members has a physical device of its own.")

"""Do the live members lie on disks of their own?

Members that share a disk do not work side by side: more members bring no more disk, and a redundant write that goes to
"two members" goes twice to one disk. Ratios between arrays then show the work each level causes, not what real arrays
of separate disks would do. Targets that are measured at once measure each other when they share one.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.checks.knobs import is_measurement
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "shared_device"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when members that are used together share physical devices, or lie in memory."""
    members = analysis.run.live_members()
    stored = [member for member in members if member["kind"] not in ("memory", "null")]
    in_memory = sum(1 for member in members if member["kind"] == "memory")
    if in_memory:
        yield _in_memory(analysis, in_memory, len(members))
    if not stored:
        return
    if is_measurement(analysis):
        yield from _targets(analysis)
        return
    disks = _disks(members)
    if len(members) > 1 and len(disks) == 1:
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
        evidence = f"{len(members)} members lie on {len(disks)} physical devices ({', '.join(disks)}): some share one."
        yield Finding(NAME, "live", WARN, evidence, "Give one directory or device of its own for each member.")
    else:
        yield Finding(NAME, "live", PASS, f"Each of the {len(members)} members has a physical device of its own.")


def _in_memory(analysis: Analysis, count: int, of: int) -> Finding:
    what = "targets" if is_measurement(analysis) else "members"
    which = f"All {of} {what} are" if count == of else f"{count} of {of} {what} are"
    if of == 1:
        which = "The only target is" if is_measurement(analysis) else "The only member is"
    evidence = f"{which} in memory: the live figures are the cost of raidlab and of the kernel, not of disks."
    return Finding(NAME, "live", WARN, evidence, "Name a directory or devices to measure storage.")


def _targets(analysis: Analysis) -> Iterator[Finding]:
    """Only what is measured at the same time can get in each other's way."""
    sharing, arrays = [], False
    measure = analysis.run.facts.get("measure")
    if measure is None:
        # It was killed before it wrote what lay on what.
        return
    for subject in measure["subjects"]:
        members = [member for member in analysis.run.live_members(subject["name"]) if member["disks"]]
        disks = _disks(members)
        if len(members) > 1 and len(disks) < len(members):
            arrays = arrays or subject["engine"] != "direct"
            sharing.append(f"{len(members)} of {subject['name']} lie on {', '.join(disks)}")
    if sharing and arrays:
        evidence = (
            f"Members of an array share physical devices, so that more of them bring no more speed: "
            f"{'; '.join(sharing)}."
        )
        remedy = "Name a directory or device of its own for each member: TREE@PLACE,PLACE,..."
        yield Finding(NAME, "live", WARN, evidence, remedy)
    elif sharing:
        evidence = (
            f"Targets that are measured at once share physical devices and so each other's throughput: "
            f"{'; '.join(sharing)}."
        )
        remedy = "Measure them one after the other with --each, or give targets on separate disks."
        yield Finding(NAME, "live", WARN, evidence, remedy)
    else:
        yield Finding(NAME, "live", PASS, "No two targets that are measured at once lie on one physical device.")


def check_together(members: list[Member]) -> Finding:
    """WARN when targets that might be measured at once lie on one physical device."""
    disks = _disks(members)
    evidence = f"{len(members)} targets lie on {len(disks)} physical devices ({', '.join(disks)})"
    if len(disks) < len(members):
        remedy = "Measure them one after the other (--each), or give targets on separate disks."
        return Finding(NAME, "all", WARN, f"{evidence}: some share one.", remedy)
    return Finding(NAME, "all", PASS, f"{evidence}.")


def _disks(members: list[Member]) -> list[str]:
    return sorted({disk for member in members for disk in member["disks"]})

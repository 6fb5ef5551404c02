"""What a live target is, beyond what the engine tells: what lies below it and how that is set; one file a fact.

Adding a fact: a file with ``fact(path, stack, sources)``, its key in `results.facts.TargetFacts` and in `target_facts`,
a test with a tree of files in place of sysfs, and the check that reads it.

Invariants:

- Nothing is opened for writing and nothing is changed; what is read of a target's content is 512 KiB at most.
- Every fact is a dict; what could not be determined is its key ``unknown``, with the reason.
- Nobody is stopped by a fact that cannot be had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from raidlab.results.facts import Member, TargetFacts, Unknown
from raidlab.run.kernel_facts import Sources, volumes_below
from raidlab.run.kernel_facts.stack import StackedDevice, disks_below, layer_facts, stack_below
from raidlab.run.target_facts import allocation, content, limits, settings, signature, traffic

T = TypeVar("T")


def target_facts(path: str | Path | None, sources: Sources | None = None) -> TargetFacts:
    """All facts of the target at a path; of one without a path (memory, null) that nothing lies below.

    ``sources``: this system's, if left out.
    """
    if path is None:
        return {"disks": [], "volumes": [], "stack": []}
    place, asked = Path(path), sources or Sources()
    stack = stack_below(place, asked)
    return {
        "disks": disks_below(place),
        "volumes": volumes_below(place),
        "stack": [layer_facts(layer) for layer in stack],
        "settings": _fact_or_reason(settings.fact, place, stack, asked),
        "limits": _fact_or_reason(limits.fact, place, stack, asked),
        "allocation": _fact_or_reason(allocation.fact, place, stack, asked),
        "signature": _fact_or_reason(signature.fact, place, stack, asked),
        "content": _fact_or_reason(content.fact, place, stack, asked),
        # Counters last: what the others read is not to be taken for a load.
        "traffic": _fact_or_reason(traffic.fact, place, stack, asked),
    }


def opened_member(opened: Mapping[str, Any] | None, kind: str = "", path: str | None = None) -> Member:
    """The engine's facts of a target that it has opened, and what is gathered besides; None: one that nothing uses."""
    if opened is None:
        return {"kind": kind, "path": path, "io": "unused", "disks": []}
    return cast(Member, {**opened, **target_facts(opened.get("path"))})


def note_state_after(members: list[Member]) -> None:
    """The state of the kernel's arrays afterwards, and the counters of what lies below.

    An array that began to rebuild meanwhile was measured rebuilding.
    """
    for member in members:
        path = Path(member.get("path") or "")
        if not member.get("path") or not path.exists():
            continue
        if member.get("volumes"):
            member["volumes_after"] = volumes_below(path)
        if member.get("traffic"):
            sources = Sources()
            member["traffic_after"] = _fact_or_reason(traffic.fact, path, stack_below(path, sources), sources)


def _fact_or_reason(
    fact: Callable[[Path, list[StackedDevice], Sources], T], path: Path, stack: list[StackedDevice], sources: Sources
) -> T | Unknown:
    """A fact, or why it could not be had."""
    try:
        return fact(path, stack, sources)
    except OSError as error:
        return {"unknown": error.strerror or str(error)}


__all__ = ["note_state_after", "opened_member", "stack_below", "target_facts"]

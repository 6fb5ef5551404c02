"""What a live target is, beyond what the engine tells: what lies below it and how that is set; one file a fact.

Adding a fact: a file with ``KEY`` and ``fact(path, stack, sources)``, a line in `FACTS`, a test with a tree of files in
place of sysfs, and the check that reads it.

Invariants:

- Nothing is opened for writing and nothing is changed; what is read of a target's content is 512 KiB at most.
- Every fact is a dict; what could not be determined is its key ``unknown``, with the reason.
- Nobody is stopped by a fact that cannot be had.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raidlab.run.kernel_facts import Sources, volumes_below
from raidlab.run.physical import disks_below
from raidlab.run.target_facts import allocation, content, limits, settings, signature, traffic
from raidlab.run.target_facts.stack import Layer, layer_facts, stack_below

# Counters last: what the others read is not to be taken for a load.
FACTS = (settings, limits, allocation, signature, content, traffic)


def target_facts(path: str | Path | None, sources: Sources | None = None) -> dict[str, Any]:
    """All facts of the target at a path; of one without a path (memory, null) that nothing lies below.

    Parameters
    ----------
    path : str, pathlib.Path or None
    sources : Sources, optional
        This system's, if left out.
    """
    if path is None:
        return {"disks": [], "volumes": [], "stack": []}
    place, asked = Path(path), sources or Sources()
    stack = stack_below(place, asked)
    return {
        "disks": disks_below(place),
        "volumes": volumes_below(place),
        "stack": [layer_facts(layer) for layer in stack],
        **{fact.KEY: _had(fact.fact, place, stack, asked) for fact in FACTS},
    }


def note_state_after(members: list[dict[str, Any]]) -> None:
    """The state of the kernel's arrays afterwards, and the counters of what lies below.

    An array that began to rebuild meanwhile was measured rebuilding.
    """
    for member in members:
        path = Path(member["path"]) if member.get("path") else None
        if path is None or not path.exists():
            continue
        if member.get("volumes"):
            member["volumes_after"] = volumes_below(path)
        if member.get("traffic"):
            sources = Sources()
            member["traffic_after"] = _had(traffic.fact, path, stack_below(path, sources), sources)


def _had(fact: Any, path: Path, stack: list[Layer], sources: Sources) -> dict[str, Any]:
    try:
        return dict(fact(path, stack, sources))
    except OSError as error:
        return {"unknown": error.strerror or str(error)}


__all__ = ["FACTS", "note_state_after", "stack_below", "target_facts"]

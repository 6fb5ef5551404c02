"""The devices' own counters over a second in which raidlab asks nothing of them: what moves is somebody else's.

Invariant: it waits once for all targets, not once for each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from raidlab.results.facts import NamedDeviceBytes, UnaskedTraffic
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice, counters, stack_below

SECONDS = 1.0


def watch(
    paths: Sequence[Path | None], seconds: float = SECONDS, sources: Sources | None = None
) -> list[UnaskedTraffic]:
    """``seconds`` and ``devices`` (``name``, ``read_bytes``, ``write_bytes``) of each path, the uppermost first."""
    asked = sources or Sources()
    stacks = [stack_below(path, asked) if path is not None else [] for path in paths]
    begun, before = time.monotonic(), [_counted(stack) for stack in stacks]
    time.sleep(seconds)
    after, passed_s = [_counted(stack) for stack in stacks], time.monotonic() - begun
    return [
        {"seconds": passed_s, "devices": [moved(name, a[name], b[name]) for name in a if name in b]}
        for a, b in zip(before, after, strict=True)
    ]


def moved(name: str, before: tuple[int, int], after: tuple[int, int]) -> NamedDeviceBytes:
    """What a device moved between two readings."""
    return {"name": name, "read_bytes": after[0] - before[0], "write_bytes": after[1] - before[1]}


def _counted(stack: list[StackedDevice]) -> dict[str, tuple[int, int]]:
    found = ((layer.name, counters(layer)) for layer in stack)
    return {name: value for name, value in found if value is not None}

"""What has moved so far at each block device below a target, from the uppermost down: the kernel's own counters."""

from __future__ import annotations

import time
from pathlib import Path

from raidlab.results.facts import DeviceCounters, Traffic
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice, counters, service_counters


def fact(_path: Path, stack: list[StackedDevice], _sources: Sources) -> Traffic:
    """``at_s`` of a steady clock, and ``devices``, by name of those that count: bytes, requests, and their time."""
    found = {layer.name: counted for layer in stack if (counted := _counted(layer)) is not None}
    return {"at_s": time.monotonic(), "devices": found}


def _counted(layer: StackedDevice) -> DeviceCounters | None:
    moved, served = counters(layer), service_counters(layer)
    if moved is None:
        return None
    found: DeviceCounters = {"read_bytes": moved[0], "write_bytes": moved[1]}
    if served is not None:
        found["reads"], found["writes"], found["read_ms"], found["write_ms"] = served
    return found

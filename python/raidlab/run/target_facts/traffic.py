"""What has moved so far at each block device below a target, from the uppermost down: the kernel's own counters."""

from __future__ import annotations

import time
from pathlib import Path

from raidlab.results.facts import Traffic
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice, counters


def fact(_path: Path, stack: list[StackedDevice], _sources: Sources) -> Traffic:
    """``at_s`` of a steady clock, and ``devices``: ``read_bytes`` and ``write_bytes`` by name of those that count."""
    found = {layer.name: counters(layer) for layer in stack}
    return {
        "at_s": time.monotonic(),
        "devices": {
            name: {"read_bytes": pair[0], "write_bytes": pair[1]} for name, pair in found.items() if pair is not None
        },
    }

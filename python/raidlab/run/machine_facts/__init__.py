"""What this machine did while it measured: its clocks, its processors; read at the beginning and at the end.

Adding a fact: a file with ``fact(sources)``, its key in `results.facts.MachineNow` and in `machine_facts`, a test, and
the check that reads it.

Invariants:

- Nothing is changed, and nothing waits.
- What cannot be read is None.
"""

from __future__ import annotations

from raidlab.results.facts import Machine, MachineNow
from raidlab.run.kernel_facts import Sources
from raidlab.run.machine_facts import clock, others, processor


def machine_facts(sources: Sources | None = None) -> MachineNow:
    """All facts, now."""
    asked = sources or Sources()
    return {"clock": clock.fact(asked), "processor": processor.fact(asked), "others": others.fact(asked)}


class MachineWatch:
    """The facts at the beginning, and at the end whenever that is asked for."""

    def __init__(self, sources: Sources | None = None) -> None:
        self._sources = sources or Sources()
        self._before = machine_facts(self._sources)

    def facts(self) -> Machine:
        """``before`` and ``after``, the latter being now."""
        return {"before": self._before, "after": machine_facts(self._sources)}


__all__ = ["MachineWatch", "machine_facts"]

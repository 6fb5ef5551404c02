"""What this machine did while it measured: its clocks, its processors; read at the beginning and at the end.

Adding a fact: a file with ``KEY`` and ``fact(sources)``, a line in `FACTS`, a test, and the check that reads it.

Invariants:

- Nothing is changed, and nothing waits.
- What cannot be read is None.
"""

from __future__ import annotations

from typing import Any

from raidlab.run.kernel_facts import Sources
from raidlab.run.machine_facts import clock, others, processor

FACTS = (clock, processor, others)


def machine_facts(sources: Sources | None = None) -> dict[str, Any]:
    """All facts, now."""
    asked = sources or Sources()
    return {fact.KEY: fact.fact(asked) for fact in FACTS}


class MachineWatch:
    """The facts at the beginning, and at the end whenever that is asked for."""

    def __init__(self, sources: Sources | None = None) -> None:
        self._sources = sources or Sources()
        self._before = machine_facts(self._sources)

    def facts(self) -> dict[str, Any]:
        """``before`` and ``after``, the latter being now."""
        return {"before": self._before, "after": machine_facts(self._sources)}


__all__ = ["FACTS", "MachineWatch", "machine_facts"]

"""Running a study: targets, members, the pool of workers, the order of things.

Invariants:

- This package knows `study` and the engine, and nothing that comes after it: results are written by whoever takes
  the outcomes.
- Nothing outside this package starts a measurement.
- Importing it costs next to nothing. The simulator's workers are processes that import `run.pool`: what they do not
  need is imported when it is used, or each simulated run would begin half a second later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raidlab.results.outcome import CellOutcome, HoldOutcome, Outcome
    from raidlab.run.execute import Execution, check_study
    from raidlab.run.far import FarMachine
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import Progress, Silent, progress_on
    from raidlab.run.targets import Target, refuse_empty, resolve_targets

_HOMES = {
    "CellOutcome": "raidlab.results.outcome",
    "Execution": "raidlab.run.execute",
    "FarMachine": "raidlab.run.far",
    "HoldOutcome": "raidlab.results.outcome",
    "Outcome": "raidlab.results.outcome",
    "Progress": "raidlab.run.progress",
    "Silent": "raidlab.run.progress",
    "StopFlag": "raidlab.run.interrupt",
    "Target": "raidlab.run.targets",
    "catching_signals": "raidlab.run.interrupt",
    "check_study": "raidlab.run.execute",
    "progress_on": "raidlab.run.progress",
    "refuse_empty": "raidlab.run.targets",
    "resolve_targets": "raidlab.run.targets",
}

__all__ = [
    "CellOutcome",
    "Execution",
    "FarMachine",
    "HoldOutcome",
    "Outcome",
    "Progress",
    "Silent",
    "StopFlag",
    "Target",
    "catching_signals",
    "check_study",
    "progress_on",
    "refuse_empty",
    "resolve_targets",
]


def __getattr__(name: str) -> Any:
    """Import a name from its home when it is first used."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'raidlab.run' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)

"""Running a study: targets, members, the pool of workers, the order of things.

Invariants:

- This package knows `study` and the engine, and nothing that comes after it: results are written by the writer
  that a session is handed.
- Nothing outside this package starts a measurement.
- Importing it costs next to nothing. The simulator's workers are processes that import `run.pool`: what they do not
  need is imported when it is used, or each simulated run would begin half a second later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raidlab.results.outcome import CellOutcome as CellOutcome
    from raidlab.results.outcome import HoldOutcome as HoldOutcome
    from raidlab.results.outcome import Outcome as Outcome
    from raidlab.run.execute import Execution as Execution
    from raidlab.run.execute import check_study as check_study
    from raidlab.run.interrupt import StopFlag as StopFlag
    from raidlab.run.interrupt import catching_signals as catching_signals
    from raidlab.run.progress import Progress as Progress
    from raidlab.run.progress import Silent as Silent
    from raidlab.run.progress import progress_on as progress_on
    from raidlab.run.stream_cells import CopySink as CopySink
    from raidlab.run.targets import Target as Target
    from raidlab.run.targets import refuse_empty as refuse_empty
    from raidlab.run.targets import resolve_targets as resolve_targets

_NAMES = {
    "raidlab.results.outcome": ("CellOutcome", "HoldOutcome", "Outcome"),
    "raidlab.run.execute": ("Execution", "check_study"),
    "raidlab.run.stream_cells": ("CopySink",),
    "raidlab.run.interrupt": ("StopFlag", "catching_signals"),
    "raidlab.run.progress": ("Progress", "Silent", "progress_on"),
    "raidlab.run.targets": ("Target", "refuse_empty", "resolve_targets"),
}


def __getattr__(name: str) -> Any:
    """Import a name from its home when it is first used."""
    import importlib

    for home, names in _NAMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'raidlab.run' has no attribute '{name}'")

"""Running a study: targets, members, the pool of workers, the order of things.

Invariants:

- This package knows `study` and the engine, and nothing that comes after it: results are written by whoever takes
  the outcomes.
- Nothing outside this package starts a measurement.
"""

from raidlab.results.outcome import CellOutcome, HoldOutcome, Outcome
from raidlab.run.execute import Execution, check_study
from raidlab.run.far import FarMachine
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.progress import Progress, Silent, progress_on
from raidlab.run.targets import Target, refuse_empty, resolve_targets

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

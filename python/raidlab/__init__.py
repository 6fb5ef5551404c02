"""raidlab: an evaluation laboratory for RAID arrays.

Invariants:

- Importing this package costs next to nothing: what needs Polars, Pydantic or Altair is imported when it is used.
- The names here are the public API; everything else may change.

Examples
--------
>>> import raidlab
>>> run = raidlab.run_study("quickstart", on=["sim"], quick=True)  # doctest: +SKIP
>>> raidlab.analyse(run).table  # doctest: +SKIP
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raidlab.analysis.checks.run_with_findings import load_run
    from raidlab.api import analyse, compare, resume_run, run_study, simulate_margins, write_report
    from raidlab.results import Run
    from raidlab.study import LoadedStudy, load_study

__version__ = "0.1.0"

_HOMES = {
    "analyse": "raidlab.api",
    "compare": "raidlab.api",
    "resume_run": "raidlab.api",
    "run_study": "raidlab.api",
    "simulate_margins": "raidlab.api",
    "write_report": "raidlab.api",
    "Run": "raidlab.results",
    "load_run": "raidlab.analysis.checks.run_with_findings",
    "LoadedStudy": "raidlab.study",
    "load_study": "raidlab.study",
}

__all__ = [
    "LoadedStudy",
    "Run",
    "__version__",
    "analyse",
    "compare",
    "load_run",
    "load_study",
    "resume_run",
    "run_study",
    "simulate_margins",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first used."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'raidlab' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


if os.environ.get("RAIDLAB_LOG"):
    from raidlab import log

    log.start()

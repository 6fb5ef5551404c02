"""Results of runs: one schema, append-only folders, provenance.

Invariants:

- This package writes what `run` measured and reads it back; it works nothing out.
- Everything after it (metrics, checks, figures, report) reads a `Run` and never a file.
"""

from raidlab.results.folder import RunWriter, new_folder
from raidlab.results.load import Run, load_run
from raidlab.results.resume import Unfinished, open_unfinished
from raidlab.results.tables import SCHEMA_VERSION

__all__ = [
    "SCHEMA_VERSION",
    "Run",
    "RunWriter",
    "Unfinished",
    "load_run",
    "new_folder",
    "open_unfinished",
]

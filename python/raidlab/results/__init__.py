"""Results of runs: one schema, append-only folders, provenance.

Invariants:

- This package writes what `run` measured and reads it back; it works nothing out.
- Everything after it (metrics, checks, figures, report) reads a `Run` and never a file.
"""

from raidlab.results.folder import RunWriter, finish_killed, new_folder
from raidlab.results.load import Run, load_run
from raidlab.results.tables import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION", "Run", "RunWriter", "finish_killed", "load_run", "new_folder"]

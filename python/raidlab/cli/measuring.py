"""What ``raidlab measure`` does and prints.

Invariants:

- The result goes to standard output: tables at 80 columns, or one JSON document. Everything else goes to standard
  error.
- However a measurement ends, what was measured is printed, and the exit code says how it ended.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from raidlab.measure import Asked
    from raidlab.results import Run


def measure_and_print(asked: Asked, *, out: str | None, as_json: bool, argv: Sequence[str]) -> int:
    """Measure, print, and return the exit code.

    Parameters
    ----------
    asked : Asked
    out : str or None
        Where a run folder is kept; nowhere if None.
    as_json : bool
    argv : sequence of str
        The command, for the record.
    """
    from raidlab.measure import measure
    from raidlab.run import progress_on

    progress = progress_on(sys.stderr)
    if out is not None:
        return _print(measure(asked, Path(out), progress=progress, argv=argv), as_json=as_json, kept=True)
    with tempfile.TemporaryDirectory(prefix="raidlab-") as folder:
        return _print(measure(asked, Path(folder), progress=progress, argv=argv), as_json=as_json, kept=False)


def _print(run: Run, *, as_json: bool, kept: bool) -> int:
    from raidlab.checks import run_checks
    from raidlab.cli.measure_json import measurement_json
    from raidlab.cli.measure_tables import print_measurement
    from raidlab.cli.run import exit_code
    from raidlab.metrics import Analysis

    status = run.facts["status"]
    if run.cells.is_empty():
        print("interrupted; nothing had been measured yet", file=sys.stderr)
        return EXIT_INTERRUPTED
    analysis = Analysis(run)
    findings = run_checks(analysis)
    if as_json:
        print(measurement_json(analysis, findings, kept=kept))
    else:
        print_measurement(analysis, findings)
    if kept:
        print(f"kept: {run.folder} (a page of it: raidlab report {run.folder})", file=sys.stderr)
    if status != "complete":
        print(f"the measurement was {status}; what was measured until then is shown above", file=sys.stderr)
    if run.facts["failure"]:
        print(f"error: {run.facts['failure']}", file=sys.stderr)
    return exit_code(run, findings)

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
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

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
    from raidlab.run import StopFlag, catching_signals, progress_on

    stop = StopFlag()
    with ExitStack() as made:
        made.enter_context(catching_signals(stop))
        # What is not kept still wants a place until it is printed.
        place, elsewhere = (_temporary(made), _in_memory(made)) if out is None else (Path(out), None)
        run = measure(asked, place, progress=progress_on(sys.stderr), argv=argv, stop=stop, elsewhere=elsewhere)
        return _print(run, as_json=as_json, kept=out is not None)


def _temporary(made: ExitStack, parent: str | None = None) -> Path:
    return Path(made.enter_context(tempfile.TemporaryDirectory(prefix="raidlab-", dir=parent)))


def _in_memory(made: ExitStack) -> Path | None:
    """Where results fit should the disk of temporary files fill up, which may well be the target."""
    with suppress(OSError):
        return _temporary(made, "/dev/shm")
    return None


def _print(run: Run, *, as_json: bool, kept: bool) -> int:
    from raidlab.analysis.checks import run_checks
    from raidlab.analysis.metrics import Analysis
    from raidlab.cli.measure_json import measurement_json
    from raidlab.cli.measure_tables import print_measurement
    from raidlab.cli.run import exit_code
    from raidlab.cli.terminal import printing, say

    status = run.facts["status"]
    if run.cells.is_empty():
        say("interrupted; nothing had been measured yet")
        return exit_code(run, [])
    analysis = Analysis(run)
    findings = run_checks(analysis)
    with printing():
        if as_json:
            print(measurement_json(analysis, findings, kept=kept))
        else:
            print_measurement(analysis, findings)
    if kept:
        say(f"kept: {run.folder} (a page of it: raidlab report {run.folder})")
    if status != "complete":
        ended = "was interrupted" if status == "interrupted" else "failed"
        say(f"the measurement {ended}; what was measured until then is shown above")
    if run.facts["failure"]:
        say(f"error: {run.facts['failure']}")
    return exit_code(run, findings)

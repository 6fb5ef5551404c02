"""A run together with what the checks say of it, so that a verdict does not get lost on the way to a notebook.

Invariants:

- Findings are worked out from the folder by the checks of this version, as `results show` does; they are not kept.
- They are worked out when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import polars as pl

from raidlab.analysis.checks import run_checks
from raidlab.analysis.checks.finding import frame_of
from raidlab.analysis.metrics import Analysis
from raidlab.results import Run
from raidlab.results import load_run as load

_VIEW = "findings"


class RunWithFindings(Run):
    """A finished run, and the findings of all checks about it."""

    @cached_property
    def findings(self) -> pl.DataFrame:
        """One row a finding, the worst first: ``check``, ``target``, ``verdict``, ``evidence``, ``mend``."""
        return frame_of(run_checks(Analysis(self)))

    def _worked_out(self, query: str) -> Mapping[str, pl.DataFrame]:
        # The word may stand there for something else; then the table is made for nothing.
        return {_VIEW: self.findings} if _VIEW in query.lower() else {}


def load_run(folder: str | Path) -> RunWithFindings:
    """Open a run folder.

    Parameters
    ----------
    folder : str or Path
        The folder that a run wrote.

    Returns
    -------
    RunWithFindings
        Its tables are attributes and views of its ``sql``, and so is ``findings``: what the checks say.

    Raises
    ------
    InputError
        When it is no run folder, or one of another version.
    """
    run = load(folder)
    return RunWithFindings(run.folder, run.facts, run.identity, run.tables)

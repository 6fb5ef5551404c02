"""CSV: a row a point with all metrics, and a row a finding of the checks, for spreadsheets.

Invariant: a text that a spreadsheet would take for a formula has an apostrophe before it, which spreadsheets take for
"this is a text"; numbers stay numbers, the negative ones too.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from raidlab.checks import frame_of, run_checks
from raidlab.metrics import Analysis
from raidlab.results.spreadsheet import spreadsheet_text


def export(analysis: Analysis, folder: Path) -> list[Path]:
    """Write ``points.csv`` and ``findings.csv``."""
    points, findings = folder / "points.csv", folder / "findings.csv"
    for frame, file in ((analysis.table, points), (frame_of(run_checks(analysis)), findings)):
        frame.with_columns(pl.col(pl.String).map_elements(spreadsheet_text, return_dtype=pl.String)).write_csv(file)
    return [points, findings]

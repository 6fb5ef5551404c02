"""CSV: a row a point with all metrics, and a row a finding of the checks, for spreadsheets.

Invariant: a text that a spreadsheet would take for a formula has an apostrophe before it, which spreadsheets take for
"this is a text"; numbers stay numbers, the negative ones too.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from raidlab.analysis.checks import frame_of, run_checks
from raidlab.analysis.metrics import Analysis
from raidlab.directory import Directory
from raidlab.results.spreadsheet import spreadsheet_text


def export(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``points.csv`` and ``findings.csv``."""
    tables = {"points.csv": analysis.table, "findings.csv": frame_of(run_checks(analysis))}
    return [folder.replace(name, _safe(table).write_csv().encode()) for name, table in tables.items()]


def _safe(table: pl.DataFrame) -> pl.DataFrame:
    """A table of which a spreadsheet works out nothing."""
    return table.with_columns(pl.col(pl.String).map_elements(spreadsheet_text, return_dtype=pl.String))

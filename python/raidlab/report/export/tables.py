"""CSV and Parquet: a row a point with all metrics, and a row a finding of the checks.

The run's own tables are Parquet already.

Invariant: in CSV a text that a spreadsheet would take for a formula has an apostrophe before it, which spreadsheets
take for "this is a text"; numbers stay numbers, the negative ones too.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from raidlab.analysis.checks import frame_of, run_checks
from raidlab.analysis.metrics import Analysis
from raidlab.directory import Directory
from raidlab.results.growing import parquet_of
from raidlab.results.spreadsheet import spreadsheet_text


def export_csv(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``points.csv`` and ``findings.csv``."""
    return [folder.replace(f"{name}.csv", _safe(table).write_csv().encode()) for name, table in _tables(analysis)]


def export_parquet(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``points.parquet`` and ``findings.parquet``."""
    return [folder.replace(f"{name}.parquet", parquet_of(table)) for name, table in _tables(analysis)]


def _tables(analysis: Analysis) -> list[tuple[str, pl.DataFrame]]:
    return [("points", analysis.table), ("findings", frame_of(run_checks(analysis)))]


def _safe(table: pl.DataFrame) -> pl.DataFrame:
    """A table of which a spreadsheet works out nothing."""
    return table.with_columns(pl.col(pl.String).map_elements(spreadsheet_text, return_dtype=pl.String))

"""CSV: a row a point with all metrics, and a row a finding of the checks, for spreadsheets."""

from __future__ import annotations

from pathlib import Path

from raidlab.checks import frame_of, run_checks
from raidlab.directory import Directory
from raidlab.metrics import Analysis


def export(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``points.csv`` and ``findings.csv``."""
    tables = {"points.csv": analysis.table, "findings.csv": frame_of(run_checks(analysis))}
    return [folder.replace(name, table.write_csv().encode()) for name, table in tables.items()]

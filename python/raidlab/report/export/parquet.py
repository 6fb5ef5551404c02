"""Parquet: a row a point with all metrics, a row a finding of the checks. The run's own tables are Parquet already."""

from __future__ import annotations

from pathlib import Path

from raidlab.analysis.checks import frame_of, run_checks
from raidlab.analysis.metrics import Analysis
from raidlab.directory import Directory
from raidlab.results.finish import parquet_of


def export(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``points.parquet`` and ``findings.parquet``."""
    tables = {"points.parquet": analysis.table, "findings.parquet": frame_of(run_checks(analysis))}
    return [folder.replace(name, parquet_of(table)) for name, table in tables.items()]

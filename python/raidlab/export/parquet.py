"""Parquet: a row a point with all metrics, a row a finding of the checks. The run's own tables are Parquet already."""

from __future__ import annotations

from pathlib import Path

from raidlab.checks import frame_of, run_checks
from raidlab.metrics import Analysis


def export(analysis: Analysis, folder: Path) -> list[Path]:
    """Write ``points.parquet`` and ``findings.parquet``."""
    points, findings = folder / "points.parquet", folder / "findings.parquet"
    analysis.table.write_parquet(points, statistics=True)
    frame_of(run_checks(analysis)).write_parquet(findings, statistics=True)
    return [points, findings]

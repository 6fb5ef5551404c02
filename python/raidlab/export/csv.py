"""CSV: a row a point with all metrics, and a row a finding of the checks, for spreadsheets."""

from __future__ import annotations

from pathlib import Path

from raidlab.checks import frame_of, run_checks
from raidlab.metrics import Analysis


def export(analysis: Analysis, folder: Path) -> list[Path]:
    """Write ``points.csv`` and ``findings.csv``."""
    points, findings = folder / "points.csv", folder / "findings.csv"
    analysis.table.write_csv(points)
    frame_of(run_checks(analysis)).write_csv(findings)
    return [points, findings]

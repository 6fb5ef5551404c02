"""CSV: a row a point with all metrics, for spreadsheets."""

from __future__ import annotations

from pathlib import Path

from raidlab.metrics import Analysis


def export(analysis: Analysis, folder: Path) -> list[Path]:
    """Write ``points.csv``."""
    file = folder / "points.csv"
    analysis.table.write_csv(file)
    return [file]

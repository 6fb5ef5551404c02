"""Parquet: a row a point with all metrics. The run folder's own tables are Parquet already."""

from __future__ import annotations

from pathlib import Path

from raidlab.metrics import Analysis


def export(analysis: Analysis, folder: Path) -> list[Path]:
    """Write ``points.parquet``."""
    file = folder / "points.parquet"
    analysis.table.write_parquet(file, statistics=True)
    return [file]

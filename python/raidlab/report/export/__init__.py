"""Results for other tools, one file a format.

Adding one: a file named after its kind with a function ``export(analysis, folder)`` that gives the files it wrote, a
line in `EXPORTS`, a test with the other tool reading it.

Invariant: an export is worked out from a run folder alone and writes only into the directory it is given, through its
descriptor.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from raidlab.analysis.metrics import Analysis
from raidlab.directory import Directory
from raidlab.report.export import fio_json, hlog, prometheus, tables

EXPORTS: dict[str, Callable[[Analysis, Directory], list[Path]]] = {
    "csv": tables.export_csv,
    "parquet": tables.export_parquet,
    "fio_json": fio_json.export,
    "hlog": hlog.export,
    "prometheus": prometheus.export,
}

__all__ = ["EXPORTS"]

"""HdrHistogram logs: one a point, an interval a repeat and operation, tagged ``read`` and ``write``."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

from raidlab.analysis.metrics import Analysis, Point
from raidlab.directory import Directory
from raidlab.formats.hlog import Interval, log_text
from raidlab.report.export.findings import file_of, title_with_verdicts, verdicts_by_target


def export(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``<point>.hlog`` for each point: response times in nanoseconds."""
    started = datetime.datetime.fromisoformat(analysis.run.facts["times"]["started"])
    verdicts = verdicts_by_target(analysis)
    written = []
    for number, point in enumerate(analysis.points):
        title = f"raidlab: response times in ns; {point.target}, {point.array}, {point.workload}, {point.level}"
        text = log_text(
            _intervals(point), started.timestamp(), " ".join(title_with_verdicts(title, point, verdicts).split())
        )
        written.append(folder.replace(file_of(number, point, "hlog"), text.encode()))
    return written


def _intervals(point: Point) -> Iterator[Interval]:
    at_s = 0.0
    for row in point.rows:
        length_s = row["elapsed_ns"] / 1e9
        for operation in ("read", "write"):
            histogram = point.run.histogram([int(row["cell"])], operation)
            if histogram.total:
                yield Interval(at_s, length_s, histogram, operation)
        at_s += length_s

"""Prometheus text: the latest figures of a run as gauges, for a node exporter's textfile collector.

Reference: Prometheus, *Exposition formats*, text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raidlab.metrics import METRICS, Analysis, Point

_BACKSLASHED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def export(analysis: Analysis, folder: Path) -> list[Path]:
    """Write ``raidlab.prom``."""
    file = folder / "raidlab.prom"
    file.write_text("\n".join(_lines(analysis)) + "\n", encoding="utf-8")
    return [file]


def _lines(analysis: Analysis) -> Iterator[str]:
    for metric in METRICS:
        samples = [
            (point, value)
            for index, point in enumerate(analysis.points)
            if (value := analysis.values[index][metric.kind]) is not None
        ]
        if not samples:
            continue
        name = f"raidlab_{metric.kind}"
        yield f"# HELP {name} {metric.meaning} ({metric.unit})"
        yield f"# TYPE {name} gauge"
        for point, value in samples:
            yield f"{name}{{{_labels(analysis, point)}}} {value:.10g}"


def _labels(analysis: Analysis, point: Point) -> str:
    labels = {
        "study": analysis.run.study.name,
        "target": point.target,
        "array": point.array,
        "group": point.group,
        "workload": point.workload,
        "load": point.load,
        "depth": str(point.depth),
        "rate_per_s": f"{point.rate_per_s:g}",
    }
    return ",".join(f'{key}="{value.translate(_BACKSLASHED)}"' for key, value in labels.items())

"""Prometheus text: the latest figures of a run as gauges, for a node exporter's textfile collector.

Reference: Prometheus, *Exposition formats*, text format 0.0.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from raidlab.analysis.checks import run_checks
from raidlab.analysis.metrics import METRICS, Analysis, Point
from raidlab.directory import Directory

_BACKSLASHED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def export(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``raidlab.prom``."""
    text = "\n".join(_lines(analysis)) + "\n"
    return [folder.replace("raidlab.prom", text.encode())]


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
    yield from _findings(analysis)


def _findings(analysis: Analysis) -> Iterator[str]:
    """How often each check gave each verdict: an alert on ``verdict="INVALID"`` is one on figures not to be used."""
    counts = Counter((finding.target, finding.check, finding.verdict) for finding in run_checks(analysis))
    yield "# HELP raidlab_findings Findings of the checks by verdict; INVALID: do not use the figures (findings)"
    yield "# TYPE raidlab_findings gauge"
    for (target, check, verdict), count in counts.items():
        labels = {"study": analysis.run.study.name, "target": target, "check": check, "verdict": verdict}
        yield f"raidlab_findings{{{_written(labels)}}} {count}"


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
    return _written(labels)


def _written(labels: dict[str, str]) -> str:
    return ",".join(f'{key}="{value.translate(_BACKSLASHED)}"' for key, value in labels.items())

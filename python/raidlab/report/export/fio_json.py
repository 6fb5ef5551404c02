"""JSON in the shape of fio's own, a file a point, for tools that read fio's results (fio-plot among them).

What raidlab has not measured is not there; what these tools cannot do without and raidlab does not split further
(submission latency, the shares of latency classes) is worked out from the same histogram. The generator says so in
``fio version``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from raidlab.analysis.metrics import Analysis, Point
from raidlab.directory import Directory
from raidlab.histogram import Histogram
from raidlab.report.export.findings import file_of, verdicts_by_target
from raidlab.study.workload import Address, FixedSize, Workload

_PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
_CLASSES = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)


def export(analysis: Analysis, folder: Directory) -> list[Path]:
    """Write ``<point>.json`` for each point."""
    workloads = {workload.name: workload for workload in analysis.run.study.workload}
    verdicts = verdicts_by_target(analysis)
    written = []
    for number, point in enumerate(analysis.points):
        document = _document(analysis, point, workloads.get(point.workload), verdicts[point.target])
        written.append(folder.replace(file_of(number, point, "json"), f"{json.dumps(document, indent=1)}\n".encode()))
    return written


def _document(analysis: Analysis, point: Point, workload: Workload | None, verdict: str) -> dict[str, Any]:
    facts = analysis.run.facts
    title = f"{point.array}, {point.workload}"
    job = {
        "jobname": title,
        "groupid": 0,
        "error": 0,
        "elapsed": math.ceil(point.total("elapsed_ns") / 1e9),
        "job options": {
            "name": title,
            **_options(point, workload),
            **({"description": verdict} if verdict else {}),
        },
        # Where fio repeats a job's description; here it is what the checks say.
        **({"desc": verdict} if verdict else {}),
        "read": _direction(point, "read"),
        "write": _direction(point, "write"),
        **_classes(point.response),
        # Processor time is kept for the whole run, not for a point, so none is claimed here.
        "usr_cpu": 0.0,
        "sys_cpu": 0.0,
    }
    return {
        "fio version": f"raidlab-{facts['raidlab']['version']}",
        "time": facts["times"]["started"],
        "jobs": [job],
    }


def _options(point: Point, workload: Workload | None) -> dict[str, str]:
    options = {"rw": _pattern(point, workload), "iodepth": str(point.depth or 1), "numjobs": "1"}
    if workload is not None and workload.trace is None and isinstance(workload.size, FixedSize):
        options["bs"] = str(workload.size.bytes)
    else:
        requests = point.total("all_requests")
        options["bs"] = str(round(point.total("all_bytes") / requests)) if requests else "0"
    if point.rate_per_s:
        options["rate_iops"] = f"{point.rate_per_s:g}"
    return options


def _pattern(point: Point, workload: Workload | None) -> str:
    reads, writes = point.total("read_requests"), point.total("write_requests")
    way = "rw" if reads and writes else "write" if writes else "read"
    address: Address | None = workload.address if workload is not None else None
    return way if address is not None and address.kind == "sequential" else f"rand{way}"


def _direction(point: Point, operation: str) -> dict[str, Any]:
    response = point.run.histogram(point.cells, operation)
    service = point.run.histogram(point.cells, operation, "service")
    seconds = point.total("elapsed_ns") / 1e9
    rates = point.each_per_s(f"{operation}_requests")
    mean = sum(rates) / len(rates) if rates else 0.0
    spread = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)) if len(rates) > 1 else 0.0
    moved = point.total(f"{operation}_bytes")
    return {
        "io_bytes": int(moved),
        "io_kbytes": int(moved) // 1024,
        "bw_bytes": int(moved / seconds) if seconds else 0,
        "bw": int(moved / seconds / 1024) if seconds else 0,
        "iops": point.per_s(f"{operation}_requests"),
        "runtime": round(seconds * 1000),
        "total_ios": int(point.total(f"{operation}_requests")),
        "lat_ns": _times(response),
        "clat_ns": {**_times(service), "percentile": _percentiles(service)},
        "iops_mean": mean,
        "iops_stddev": spread,
        "iops_min": min(rates, default=0.0),
        "iops_max": max(rates, default=0.0),
    }


def _times(histogram: Histogram) -> dict[str, float]:
    total = histogram.total
    if not total:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    values, counts = histogram.value_ns.astype(float), histogram.count.astype(float)
    mean = float((values * counts).sum() / total)
    variance = float((counts * (values - mean) ** 2).sum() / total)
    return {
        "min": int(values[0]),
        "max": int(values[-1]),
        "mean": mean,
        "stddev": math.sqrt(variance),
        "N": total,
    }


def _percentiles(histogram: Histogram) -> dict[str, int]:
    return {f"{percentile:.6f}": histogram.percentile_ns(percentile) or 0 for percentile in _PERCENTILES}


def _classes(histogram: Histogram) -> dict[str, dict[str, float]]:
    """The share of requests in each of fio's classes of latency, in percent."""
    found: dict[str, dict[str, float]] = {}
    below, total = 0.0, histogram.total
    for unit, scale in (("ns", 1), ("us", 1000), ("ms", 1_000_000)):
        edges = _CLASSES if unit != "ms" else (*_CLASSES, 2000)
        shares: dict[str, float] = {}
        for edge in edges:
            within = 100 * (histogram.share_within(edge * scale - 1) or 0.0) if total else 0.0
            shares[str(edge)] = round(within - below, 6)
            below = within
        if unit == "ms":
            shares[">=2000"] = round((100.0 if total else 0.0) - below, 6)
        found[f"latency_{unit}"] = shares
    return found

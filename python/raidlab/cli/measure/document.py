"""The result of ``raidlab measure --json``: one document with stable keys.

The keys are documented in docs/reference/results.md; a key is never renamed or removed within a version of the schema.
"""

from __future__ import annotations

import json
from typing import Any

from raidlab.analysis.checks import Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.metrics.result_rows import identity, result_rows, target_rows
from raidlab.study.expand import NULL


def measurement_json(analysis: Analysis, findings: list[Finding], *, kept: bool) -> str:
    """The document.

    Parameters
    ----------
    kept : bool
        Whether the run's folder outlives the command.
    """
    run = analysis.run
    facts = run.facts
    document = {
        "schema_version": facts["schema_version"],
        "raidlab": facts["raidlab"],
        "run": str(run.folder) if kept else None,
        "status": facts["status"],
        "failure": facts["failure"],
        "seed": facts["seed"],
        "argv": facts["argv"],
        "host": facts["host"],
        "times": facts["times"],
        "study": facts["study"]["text"],
        "measure": facts["measure"],
        "engine": facts["live_engine"],
        "targets": facts["live_members"],
        "machine": facts.get("machine"),
        "results": result_rows(run),
        "costs": [_costs(analysis, index, point) for index, point in enumerate(analysis.points)],
        "bound": _bound(analysis),
        "holds": run.holds.to_dicts(),
        "checks": [vars(finding) for finding in findings],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _costs(analysis: Analysis, index: int, point: Point) -> dict[str, Any]:
    """What a point cost, and what each of several targets did."""
    names = subject_targets(analysis, point.array)
    keys = ("subject", "workload", "load", "depth", "rate_per_s")
    return {
        **dict(zip(keys, identity(point), strict=True)),
        **{kind: analysis.values[index][kind] for kind in COSTS},
        "depth_mean": point.weighted_mean("depth_mean"),
        "targets": target_rows(analysis.run, point, names) if len(names) > 1 else [],
    }


COSTS = (
    "cpu_user_per_request_us",
    "cpu_system_per_request_us",
    "context_switches_per_request",
    "device_read_bytes_percent",
    "device_write_bytes_percent",
)


def subject_targets(analysis: Analysis, subject: str) -> list[str]:
    """The targets of a subject, in the user's words."""
    return [str(member.get("name")) for member in analysis.run.live_members(subject)]


def _bound(analysis: Analysis) -> list[dict[str, Any]]:
    """What raidlab itself can do with the same requests, to targets that complete at once."""
    return [
        {
            "subject": row["array"],
            "depth": row["depth"],
            "iops": row["all_requests"] * 1e9 / row["elapsed_ns"] if row["elapsed_ns"] else None,
        }
        for row in analysis.run.cells.iter_rows(named=True)
        if row["target"] == NULL
    ]

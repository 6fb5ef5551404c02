"""What whole files asked for, by name and a file: how often an inode, an indirect block, data, an update.

Reference: S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck?*, 1996, gives no block-level details of its file
system; so a model of it is these named accesses, which every report of whole files prints.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from raidlab.analysis.metrics import Analysis


@dataclass(frozen=True)
class AccessRow:
    """One kind of access of one workload on one target."""

    target: str
    workload: str
    access: str
    a_file: float
    """How often for a file."""
    found: float
    """How often it was found in memory instead, for a file."""
    kib: float
    """Its mean size."""
    mean_ms: float
    """Its mean time."""


def accesses_by_file(analysis: Analysis) -> list[AccessRow]:
    """Every access of every workload, over all its cells, in their order."""
    accesses = analysis.run.accesses
    if accesses.is_empty():
        return []
    cells = analysis.run.cells.filter(~pl.col("interrupted"))
    joined = accesses.join(cells.select("cell", "target", "workload", "all_requests"), on="cell")
    rows = []
    for (target, workload, access), part in joined.group_by(["target", "workload", "access"], maintain_order=True):
        files = float(part["all_requests"].sum())
        count = float(part["count"].sum())
        if not files or not (count or part["found"].sum()):
            continue
        time_ns = float((part["count"] * part["mean_ns"]).sum())
        rows.append(
            AccessRow(
                str(target),
                str(workload),
                str(access),
                count / files,
                float(part["found"].sum()) / files,
                float(part["bytes"].sum()) / count / 1024 if count else 0.0,
                time_ns / count / 1e6 if count else 0.0,
            )
        )
    return rows

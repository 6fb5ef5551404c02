"""What the engine found itself while it ran, such as short transfers: one line a check, however many cells.

The worst verdict stands for all cells of a target, with the evidence of the worst cell.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from raidlab.analysis.checks.finding import PASS, SEVERITY, Finding
from raidlab.analysis.metrics import Analysis

NAME = "engine"
# Checks of the engine that have a file here.
OF_THEIR_OWN = {"content", "data_loss", "lateness", "rebuild", "replay", "sat_out", "scrub", "unreadable"}


def check(analysis: Analysis) -> Iterator[Finding]:
    """The worst verdict of each check of the engine, with the evidence of the worst cell."""
    named = set(analysis.run.checks["check"]) - OF_THEIR_OWN
    yield from summed_up(analysis, named)


def summed_up(analysis: Analysis, names: set[str]) -> Iterator[Finding]:
    """One finding for each of these checks of the engine and each target."""
    checks = analysis.run.checks.filter(pl.col("check").is_in(sorted(names)))
    if checks.is_empty():
        return
    cells = analysis.run.cells
    target_of = dict(cells.select("cell", "target").iter_rows())
    grouped: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in checks.iter_rows(named=True):
        grouped.setdefault((row["check"], target_of[row["cell"]]), []).append(row)
    for (name, target), rows in grouped.items():
        worst = max(rows, key=lambda row: SEVERITY.get(row["verdict"], 0))
        verdict = worst["verdict"]
        known = len({row["cell"] for row in rows})
        if verdict == PASS:
            yield Finding(name, target, PASS, f"Passed in all {known} cells. {worst['evidence']}")
            continue
        affected = len({row["cell"] for row in rows if row["verdict"] == verdict})
        cell = cells.row(by_predicate=pl.col("cell") == worst["cell"], named=True)
        where = f"{cell['array']}, {cell['workload']}, {cell['load']} {cell['depth'] or ''}".rstrip()
        evidence = f"{affected} of {known} cells; for one, {where}: {worst['evidence'].removesuffix('.')}."
        yield Finding(name, target, verdict, evidence, worst["mend"] or "")

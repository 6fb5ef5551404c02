"""A run that is kept in memory: what a fit looks at, thousands of times.

Invariant: it has the tables that the folder of the same cells would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from raidlab.results.facts import BegunNow, Facts, complete_ending
from raidlab.results.folder import Ranks, cell_record, study_facts
from raidlab.results.load import Run
from raidlab.results.outcome import CellOutcome
from raidlab.results.tables import SCHEMA_VERSION, frames
from raidlab.study import LoadedStudy


def run_in_memory(loaded: LoadedStudy, outcomes: Sequence[CellOutcome]) -> Run:
    """A run of some cells of a study on a modelled target, without a folder."""
    ranks = Ranks(loaded)
    records = []
    for outcome in outcomes:
        model = loaded.geometry.device(outcome.cell.target, outcome.cell.array.name)
        records.append(cell_record(loaded, ranks, outcome, model.capacity_bytes, model.sector_bytes))
    now = "1970-01-01T00:00:00+00:00"
    begun: BegunNow = {
        "schema_version": SCHEMA_VERSION,
        "command": "fit",
        "seed": loaded.study.seed,
        "targets": list(dict.fromkeys(outcome.cell.target for outcome in outcomes)),
        "quick": False,
        "argv": [],
        # What is modelled depends on no machine and no time.
        "raidlab": {"version": "", "git_commit": None, "git_dirty": None},
        "host": {"cpu": None, "cpus": None, "memory_kib": None, "kernel": "", "machine": "", "python": ""},
        "times": {"started": now, "sessions": [{"started": now, "ended": now}]},
    }
    return Run(
        Path(),
        cast(Facts, {**study_facts(loaded), **begun, **complete_ending()}),
        tables=frames(sorted(records, key=lambda record: record["rank"]), []),
    )

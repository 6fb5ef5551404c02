"""A run that is kept in memory: what a fit looks at, thousands of times.

Invariant: it has the tables that the folder of the same cells would have.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from raidlab.results.folder import Ranks, cell_record, study_facts
from raidlab.results.load import Run
from raidlab.results.outcome import CellOutcome
from raidlab.results.tables import frames
from raidlab.study import LoadedStudy


def run_in_memory(loaded: LoadedStudy, outcomes: Iterable[CellOutcome]) -> Run:
    """A run of some cells of a study on a modelled target, without a folder.

    Parameters
    ----------
    loaded : LoadedStudy
    outcomes : iterable of CellOutcome
    """
    ranks = Ranks(loaded)
    records = []
    for outcome in outcomes:
        model = loaded.geometry.device(outcome.cell.target, outcome.cell.array.name)
        records.append(cell_record(loaded, ranks, outcome, model.capacity_bytes, model.sector_bytes))
    facts = {**study_facts(loaded), "status": "complete", "failure": None, "live_members": []}
    return Run(Path(), facts, tables=frames(records, []))

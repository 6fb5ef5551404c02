"""Measuring targets as they are: ``raidlab measure``.

Targets and flags become a small study (`plan`), the direct engine runs it (`execute`), and the result is an ordinary
run, which metrics, checks and reports read like any other.

Invariants:

- However a measurement ends, its folder is finished with what was measured; one in which nothing was measured leaves no
  folder.
- This package stands beside `api` on top: it joins running and writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raidlab.errors import RaidlabError
from raidlab.measure.asked import Asked, Budget, BudgetFlags, asked_of
from raidlab.measure.drive import Drive
from raidlab.measure.execute import Measurement
from raidlab.measure.places import wanted_targets
from raidlab.measure.plan import Subject, check_depths, check_drive, study_of, subjects_of, writes_at_all
from raidlab.measure.words import LoadFlags, WorkloadFlags
from raidlab.results import Run, RunWriter, load_run, new_folder
from raidlab.run.outcome import CellOutcome
from raidlab.run.progress import Progress, Silent


def measure(asked: Asked, out: Path, *, progress: Progress | None = None, argv: Sequence[str] = ()) -> Run:
    """Measure, and keep the result in a new folder below ``out``.

    Returns
    -------
    Run
        Its ``facts["status"]`` says whether it is complete, interrupted or failed.

    Raises
    ------
    RaidlabError
        Before anything is measured; then nothing is kept.
    """
    wanted = wanted_targets(
        asked.targets, asked.destroy, writes=writes_at_all(asked.workload), file_bytes=asked.file_bytes
    )
    subjects = subjects_of(wanted, each=asked.each)
    check_depths(subjects, asked.load)
    check_drive(subjects, asked.drive)
    loaded = study_of(
        subjects,
        words=asked.targets,
        seed=asked.seed,
        workload=asked.workload,
        load=asked.load,
        budget=asked.budget,
    )
    measurement = Measurement(loaded, subjects, asked.drive, asked.precision_percent, progress or Silent())
    for note in asked.notes:
        measurement.progress.note(note)
    folder = new_folder(out, loaded.study.name)
    words = list(asked.targets)
    writer = RunWriter(folder, loaded, seed=asked.seed, targets=words, quick=False, argv=list(argv))
    try:
        for outcome in measurement.outcomes():
            array = outcome.cell.array if isinstance(outcome, CellOutcome) else outcome.task.array
            writer.add(outcome, *measurement.member_shape(array.name))
    except RaidlabError as error:
        # Whoever stops before the first cell has the whole story in the error; later, the cells tell the rest.
        if writer.is_empty:
            writer.discard()
            raise
        measurement.status, measurement.failure = "failed", str(error)
    writer.finish(
        measurement.status, measurement.failure, measurement.live_members, _facts(asked, subjects, measurement)
    )
    return load_run(folder)


def _facts(asked: Asked, subjects: list[Subject], measurement: Measurement) -> dict[str, Any]:
    return {
        "command": "measure",
        "members_of": measurement.members_of,
        "measure": {
            "subjects": [
                {"name": subject.name, "engine": subject.engine, "targets": [place.word for place in subject.places]}
                for subject in subjects
            ],
            "budget": asdict(asked.budget),
            "drive": asdict(asked.drive),
            "precision_percent": asked.precision_percent,
        },
    }


__all__ = ["Asked", "Budget", "BudgetFlags", "Drive", "LoadFlags", "WorkloadFlags", "asked_of", "measure"]

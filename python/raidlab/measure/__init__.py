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
from contextlib import closing
from pathlib import Path

from raidlab.directory import Directory
from raidlab.errors import OutputError, RaidlabError
from raidlab.measure.asked import Asked, Budget, BudgetFlags, asked_of
from raidlab.measure.drive import Drive
from raidlab.measure.execute import Measurement
from raidlab.measure.plan import Subject, plan_of
from raidlab.measure.warm_up import wants_pilot
from raidlab.measure.words import LoadFlags, WorkloadFlags
from raidlab.results import Run, RunWriter, load_run, new_folder
from raidlab.results.facts import MeasureFacts, MoreFacts
from raidlab.results.outcome import CellOutcome
from raidlab.results.parts import PARTS, opened
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.machine_facts import MachineWatch
from raidlab.run.progress import Progress, Silent


def measure(
    asked: Asked,
    out: Path,
    *,
    progress: Progress | None = None,
    argv: Sequence[str] = (),
    stop: StopFlag | None = None,
    elsewhere: Path | None = None,
) -> Run:
    """Measure, and keep the result in a new folder below ``out``; ``stop`` ends it, as a signal does.

    Should ``out`` fill up meanwhile, what was measured is finished below ``elsewhere``, if that is given.

    Returns
    -------
    Run
        Its ``facts["status"]`` says whether it is complete, interrupted or failed.

    Raises
    ------
    RaidlabError
        Before anything is measured; then nothing is kept.
    """
    loaded, subjects = plan_of(asked)
    measurement = Measurement(
        loaded,
        subjects,
        asked.drive,
        asked.precision_percent,
        wants_pilot(asked.budget.warmup, asked.budget.runtime),
        asked.until_steady,
        progress or Silent(),
    )
    measurement.stop = stop or measurement.stop
    for note in asked.notes:
        measurement.progress.note(note)
    watch = MachineWatch()
    with catching_signals(measurement.stop):
        folder = new_folder(out, loaded.study.name)
        words = list(asked.targets)
        writer = RunWriter(
            folder, loaded, seed=asked.seed, targets=words, quick=False, argv=list(argv), command="measure"
        )
        try:
            _write_outcomes(measurement, writer)
        except RaidlabError as error:
            # Whoever stops before the first cell has the whole story in the error; later, the cells tell the rest.
            if writer.is_empty:
                writer.discard()
                raise
            measurement.status, measurement.failure = "failed", _said(error, is_kept=elsewhere is None)
        except BaseException:
            writer.close()
            raise
        facts: MoreFacts = {
            "members_of": measurement.members_of,
            "measure": _facts(asked, subjects, measurement),
            "machine": watch.facts(),
        }
        try:
            _finish(measurement, writer, facts)
        except OutputError as error:
            if elsewhere is None or not _moved(writer, elsewhere):
                raise
            failure = measurement.failure or _said(error, is_kept=False)
            measurement.status, measurement.failure = "failed", failure
            _finish(measurement, writer, facts)
    return load_run(writer.folder)


def _finish(measurement: Measurement, writer: RunWriter, facts: MoreFacts) -> None:
    writer.finish(
        measurement.status,
        measurement.failure,
        measurement.live_members,
        measurement.stop.signal_name if measurement.status == "interrupted" else None,
        facts,
    )


def _said(error: RaidlabError, *, is_kept: bool) -> str:
    """What went wrong; where parts lie until there is room is of no interest in a folder that goes."""
    return str(error).partition("; ")[0] if isinstance(error, OutputError) and not is_kept else str(error)


def _moved(writer: RunWriter, elsewhere: Path) -> bool:
    """Have the run finished from its parts in another place; False where that cannot be written either."""
    try:
        folder = new_folder(elsewhere, "measure")
        with opened(writer.folder / PARTS) as parts, Directory.open(folder) as place:
            place.replace(PARTS, parts.read())
        writer.move_to(folder)
    except (OSError, RaidlabError):
        return False
    return True


def _write_outcomes(measurement: Measurement, writer: RunWriter) -> None:
    """Measure, and write each outcome as it comes; whatever stops the writing ends the measurement too."""
    with closing(measurement.outcomes()) as outcomes:
        for outcome in outcomes:
            array = outcome.cell.array if isinstance(outcome, CellOutcome) else outcome.task.array
            writer.add(outcome, *measurement.member_shape(array.name))


def _facts(asked: Asked, subjects: list[Subject], measurement: Measurement) -> MeasureFacts:
    """What was asked for, and what was found before anything was measured."""
    budget, drive = asked.budget, asked.drive
    return {
        "subjects": [
            {"name": subject.name, "engine": subject.engine, "targets": [place.word for place in subject.places]}
            for subject in subjects
        ],
        "budget": {"warmup": budget.warmup, "runtime": budget.runtime, "repeats": budget.repeats},
        "drive": {
            "workers": drive.workers,
            "cpus": list(drive.cpus),
            "interface": drive.interface,
            "buffered": drive.buffered,
            "busy": drive.busy,
            "poll_completions": drive.poll_completions,
            "batch": drive.batch,
            "compressible_percent": drive.compressible_percent,
            "verify": drive.verify,
        },
        "warmups": [
            {
                "subject": name,
                "load": point.label,
                "warmup_ns": found.warmup_ns,
                "sentence": found.sentence,
                "settled": found.settled,
            }
            for (name, point), found in measurement.warmups.items()
        ],
        "steadied": measurement.steadied if asked.until_steady else None,
        "precision_percent": asked.precision_percent,
        "span_percent": [100 * share for share in asked.span],
    }


__all__ = ["Asked", "Budget", "BudgetFlags", "Drive", "LoadFlags", "WorkloadFlags", "asked_of", "measure"]

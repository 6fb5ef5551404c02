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
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.directory import Directory
from raidlab.errors import OutputError, RaidlabError
from raidlab.measure.execute import Measurement
from raidlab.measure.plan import plan_of
from raidlab.measure.request import BudgetFlags, MeasureRequest, RequestedTimes, request_of_flags
from raidlab.measure.words import LoadFlags, WorkloadFlags
from raidlab.results import Run, RunWriter, load_run, new_folder
from raidlab.results.facts import MoreFacts
from raidlab.results.parts import PARTS, opened
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.machine_facts import MachineWatch
from raidlab.run.progress import Progress, Silent
from raidlab.study.cell import Drive

if TYPE_CHECKING:
    from raidlab.measure.hosts import Hosts


def measure(
    asked: MeasureRequest,
    out: Path,
    *,
    progress: Progress | None = None,
    argv: Sequence[str] = (),
    stop: StopFlag | None = None,
    elsewhere: Path | None = None,
    hosts: Hosts | None = None,
) -> Run:
    """Measure, and keep the result in a new folder below ``out``; ``stop`` ends it, as a signal does.

    With ``hosts``, targets are looked at, and driven, by these machines together.

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
    loaded, subjects = plan_of(asked, hosts)
    measurement = Measurement(
        loaded, subjects, asked, hosts=hosts, seed=asked.seed, progress=progress or Silent(), stop=stop or StopFlag()
    )
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
            measurement.write_to(writer)
        except RaidlabError as error:
            # Whoever stops before the first cell has the whole story in the error; later, the cells tell the rest.
            if writer.is_empty:
                writer.discard()
                raise
            measurement.status, measurement.failure = "failed", _sentence(error, is_kept=elsewhere is None)
        except BaseException:
            writer.close()
            raise
        facts: MoreFacts = {**measurement.more_facts(), "machine": watch.facts()}
        try:
            measurement.finish(writer, facts)
        except OutputError as error:
            if elsewhere is None or not _moved(writer, elsewhere):
                raise
            failure = measurement.failure or _sentence(error, is_kept=False)
            measurement.status, measurement.failure = "failed", failure
            measurement.finish(writer, facts)
    return load_run(writer.folder)


def _sentence(error: RaidlabError, *, is_kept: bool) -> str:
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


__all__ = [
    "BudgetFlags",
    "Drive",
    "LoadFlags",
    "MeasureRequest",
    "RequestedTimes",
    "WorkloadFlags",
    "measure",
    "request_of_flags",
]

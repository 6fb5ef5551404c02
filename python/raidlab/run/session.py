"""A run of cells on targets: begun, handed out as it is measured, ended early, gone on with.

What the targets are is for whoever derives from it: those of a study (`execute`), or targets and flags
(`raidlab.measure.execute`).

Invariants:

- One set of cells after another: two on the clock at once would measure each other.
- Whatever ends a run early (the stop flag, a failing device), the outcomes yielded before stand, and those that finish
  while the workers stop are still yielded. When nobody takes outcomes any more, nothing goes on.
- A run that goes on (`known`) yields what is known like anything else, in its turn, and runs the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import CellFailedError
from raidlab.results.answer import CellAnswer
from raidlab.results.facts import Member, MoreFacts, Status
from raidlab.results.outcome import CellOutcome, Outcome
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.runner import Answer, InlineRunner, ResumeRunner, Runner, check_ended, run_request
from raidlab.run.schedule import Schedule, TextOf
from raidlab.study import Cell, Expansion, LoadedStudy

if TYPE_CHECKING:
    from raidlab.results import RunWriter


@dataclass
class Session(ABC):
    """A run under way."""

    loaded: LoadedStudy
    _: KW_ONLY
    seed: int
    """The root seed."""
    progress: Progress = field(default_factory=Silent)
    stop: StopFlag = field(default_factory=StopFlag)
    """Raised from outside, it ends the run."""
    known: Mapping[str, CellAnswer] = field(default_factory=dict)
    """The engine's answers to cells that are done already, by the cells' names."""
    records: Path | None = None
    """The run folder, where each request is to leave a row."""
    status: Status = "complete"
    """``complete``, ``interrupted`` or ``failed``, once the outcomes have been taken."""
    failure: str | None = None
    """Why a failed run failed."""
    lost: list[str] = field(default_factory=list)
    """What is to be said of each cell that killed its workers: a run without it is not complete, and goes on."""
    live_members: list[Member] = field(default_factory=list)
    """Facts of the live members or targets, as the engine found them, and the physical ``disks`` below each."""

    @abstractmethod
    def outcomes(self) -> Generator[Outcome, None, None]:
        """Run, and yield each outcome when it is there."""

    @abstractmethod
    def member_shape(self, target: str, array: str) -> tuple[int, int]:
        """Size and sector of an array's members on a target, in bytes."""

    def more_facts(self) -> MoreFacts:
        """What is known of the run beside its cells, once the outcomes have been taken."""
        return {}

    def write_to(self, writer: RunWriter) -> None:
        """Run, and have each outcome written as it comes; whatever stops the writing ends the run too."""
        with closing(self.outcomes()) as outcomes:
            for outcome in outcomes:
                asked = outcome.cell if isinstance(outcome, CellOutcome) else outcome.task
                writer.add(outcome, *self.member_shape(asked.target, asked.array.name))
                writer.note_members(self.live_members)
        if self.lost and self.status == "complete":
            self.status, self.failure = "failed", "; ".join(self.lost)

    def finish(self, writer: RunWriter, facts: MoreFacts) -> None:
        """Have what was written finished, with how the run ended."""
        signal_name = self.stop.signal_name if self.status == "interrupted" else None
        writer.finish(self.status, self.failure, self.live_members, signal_name, facts)

    def _first(self, request: str) -> Answer | None:
        """Run a request that has targets opened, claimed and filled; None where the run is to stop."""
        try:
            answer = run_request(request, lambda _share: not self.stop())
            check_ended(answer.get("stopped_by"), interrupted=bool(answer.get("interrupted")))
            return answer
        except KeyboardInterrupt:
            self.status = "interrupted"
            return None

    def _run(
        self, expansion: Expansion, text_of: TextOf, title: str, runner: Runner | None = None
    ) -> Iterator[Outcome]:
        """Run what an expansion lists, one cell at a time unless another runner is given."""
        runner = runner or InlineRunner(self.stop)
        schedule = Schedule(expansion, text_of, ResumeRunner(runner, self.known) if self.known else runner, self.seed)
        self.progress.begin(title, schedule.expected_cells())
        try:
            try:
                for outcome in schedule.outcomes():
                    yield outcome
                    if isinstance(outcome, CellOutcome):
                        self.progress.advance()
                        self._check_after(outcome.cell)
            except KeyboardInterrupt:
                self.status = "interrupted"
                self.progress.note(f"stopping ({self.stop.signal_name}): what was measured is kept")
            except CellFailedError as error:
                self.status, self.failure = "failed", self._failure_text(error)
            yield from schedule.leftovers()
            self.lost += schedule.lost
        finally:
            # Nobody may take the outcomes any more (a full disk): nothing goes on behind anybody's back then.
            runner.close()
            self.progress.end()

    def _check_after(self, cell: Cell) -> None:
        """Look, after a cell, whether its targets are still there."""
        del cell

    def _failure_text(self, error: CellFailedError) -> str:
        """The sentence of an error that ended the run."""
        return str(error)

"""Run a study on its targets and hand out what is measured, as it is measured.

Invariants:

- Targets are run one after another: a live run must not share the processors with the simulator.
- Whatever ends a run early (Ctrl-C, a failing device), the outcomes yielded before stand, and those that finish while
  the workers stop are still yielded.
- Files made for a live target are gone when the generator is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from raidlab.errors import CellFailedError
from raidlab.run.members import live_members
from raidlab.run.outcome import Outcome
from raidlab.run.physical import describe_member
from raidlab.run.progress import Progress, Silent
from raidlab.run.request import cell_request
from raidlab.run.runner import InlineRunner, PoolRunner, Runner
from raidlab.run.schedule import Schedule
from raidlab.run.targets import Target
from raidlab.study import Cell, LoadedStudy, expand
from raidlab.study.expand import derive_seed


@dataclass
class Execution:
    """A run of a study.

    Parameters
    ----------
    loaded : LoadedStudy
    targets : sequence of Target
    seed : int
        The root seed.
    quick : bool
    progress : Progress

    Attributes
    ----------
    status : str
        ``complete``, ``interrupted`` or ``failed``, once the outcomes have been taken.
    failure : str or None
        Why a failed run failed.
    member_facts : dict
        Facts of the live members, by target.
    """

    loaded: LoadedStudy
    targets: list[Target]
    seed: int
    quick: bool = False
    progress: Progress = field(default_factory=Silent)
    status: str = "complete"
    failure: str | None = None
    member_facts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def outcomes(self) -> Iterator[Outcome]:
        """Run, and yield each outcome when it is there."""
        for target in self.targets:
            if self.status != "complete":
                return
            yield from self._live(target) if target.is_live else self._simulated(target)

    def widest_array(self) -> int:
        """How many members the widest array has."""
        return max(self._leaves(array.name) for array in self.loaded.study.array)

    def _leaves(self, array: str) -> int:
        return int(self.loaded.geometry.facts(array, *self.member_shape("live"))["leaves"])

    def member_bytes(self) -> int:
        """The size of the live members raidlab makes."""
        live = self.loaded.study.live
        assert live is not None, "a study without [live] is refused before"
        return (live.quick.member_size or live.member_size) if self.quick else live.member_size

    def member_shape(self, target: str) -> tuple[int, int]:
        """Member size and sector of a target, in bytes."""
        if target != "live":
            model = self.loaded.geometry.devices[target]
            return model.capacity_bytes, model.sector_bytes
        live = self.loaded.study.live
        assert live is not None, "a study without [live] is refused before"
        return self.member_bytes(), live.sector

    def _simulated(self, target: Target) -> Iterator[Outcome]:
        model = self.loaded.geometry.devices[target.name]

        def text_of(cell: Cell, hold_target_ns: int | None) -> str:
            return cell_request(
                self.loaded,
                cell,
                members=[model.parameters],
                sector_bytes=model.sector_bytes,
                quick=self.quick,
                hold_target_ns=hold_target_ns,
            )

        yield from self._run(target, PoolRunner(), text_of, f"simulating {model.name}")

    def _live(self, target: Target) -> Iterator[Outcome]:
        live = self.loaded.study.live
        assert live is not None, "a study without [live] is refused before"
        fill_seed = derive_seed(self.seed, "fill")
        try:
            with live_members(
                target, self.widest_array(), self.member_bytes(), fill_seed, self.progress.note
            ) as members:
                self.member_facts[target.name] = [describe_member(member) for member in members]

                def text_of(cell: Cell, hold_target_ns: int | None) -> str:
                    return cell_request(
                        self.loaded,
                        cell,
                        members=members[: self._leaves(cell.array.name)],
                        sector_bytes=live.sector,
                        quick=self.quick,
                        hold_target_ns=hold_target_ns,
                    )

                places = ", ".join(str(place.path or place.kind) for place in target.places)
                yield from self._run(target, InlineRunner(), text_of, f"measuring on {places}")
        except KeyboardInterrupt:
            # While the files were being filled: nothing has been measured on this target.
            self.status = "interrupted"

    def _run(self, target: Target, runner: Runner, text_of: Any, title: str) -> Iterator[Outcome]:
        expansion = expand(self.loaded.study, target.name, seed=self.seed, quick=self.quick)
        schedule = Schedule(expansion, text_of, runner, self.seed)
        self.progress.begin(title, schedule.expected_cells())
        try:
            for outcome in schedule.outcomes():
                yield outcome
                if hasattr(outcome, "cell"):
                    self.progress.advance()
        except KeyboardInterrupt:
            self.status = "interrupted"
        except CellFailedError as error:
            self.status, self.failure = "failed", str(error)
        finally:
            self.progress.end()
        yield from schedule.leftovers()

"""Run a study on its targets and hand out what is measured, as it is measured.

Invariants:

- Targets are run one after another: a live run must not share the processors with the simulator.
- Whatever ends a run early (the stop flag, a failing device), the outcomes yielded before stand, and those that finish
  while the workers stop are still yielded. When nobody takes outcomes any more, nothing goes on.
- Files made for a live target are gone when the generator is.
- A run that goes on (`known`) yields what is known like anything else, in its turn, and runs the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from raidlab.errors import CellFailedError, InputError, Problem, RefusedError
from raidlab.results.answer import CellAnswer
from raidlab.results.facts import Member, SecondTool, Status
from raidlab.results.outcome import CellOutcome, Outcome
from raidlab.run.dry import dry_problems
from raidlab.run.emulated import EMULATED, check_emulated, emulated_members
from raidlab.run.far import FarMachine
from raidlab.run.groups import groups_of, laid_over, places_told, unused_member
from raidlab.run.interrupt import StopFlag
from raidlab.run.members import Members, check_devices, check_places, live_members
from raidlab.run.mounted import MountedFiles, mounted_files, on_live, runs_mounted, runs_raw
from raidlab.run.pool import PoolRunner
from raidlab.run.progress import Progress, Silent
from raidlab.run.remembered import Remembered
from raidlab.run.request import cell_request
from raidlab.run.runner import InlineRunner, Runner, run_request
from raidlab.run.schedule import Schedule, TextOf
from raidlab.run.second_tool import second_tool
from raidlab.run.stream_cells import needs_machine
from raidlab.run.target_facts import note_state_after, opened_member
from raidlab.run.targets import LivePlace, Target
from raidlab.study import Cell, Expansion, LoadedStudy, LoadPoint, expand, make_cell
from raidlab.study.check import count_leaves, engine_of, writes
from raidlab.study.expand import NULL, expand_null
from raidlab.study.grouped import members_of
from raidlab.study.schema import Array
from raidlab.study.target import Live
from raidlab.study.units import format_bytes

# A busy host makes emulated disks late; a cell that says nothing for that is run again, so often at most.
_TRIES = 3


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
    stop : StopFlag
        Raised from outside, it ends the run.
    machine : FarMachine, optional
        Another machine, for streams that go to one; without it cells that need it are left out, which is said.
    known : mapping
        The engine's answers to cells that are done already, by the cells' names.
    check_members : callable, optional
        Told the facts of the live members before anything is measured on them; raises where they will not do.

    Attributes
    ----------
    status : str
        ``complete``, ``interrupted`` or ``failed``, once the outcomes have been taken.
    failure : str or None
        Why a failed run failed.
    live_members : list of Member
        Facts of the live members, as the engine found them, and the physical ``disks`` below each.
    second_tool : list of SecondTool
        What another tool measured beside raidlab's engine, load by load.
    """

    loaded: LoadedStudy
    targets: list[Target]
    seed: int
    quick: bool = False
    progress: Progress = field(default_factory=Silent)
    status: Status = "complete"
    failure: str | None = None
    live_members: list[Member] = field(default_factory=list)
    second_tool: list[SecondTool] = field(default_factory=list)
    stop: StopFlag = field(default_factory=StopFlag)
    machine: FarMachine | None = None
    known: Mapping[str, CellAnswer] = field(default_factory=dict)
    check_members: Callable[[Sequence[Member]], None] | None = None
    _live_member_bytes: int = 0

    @cached_property
    def live_loaded(self) -> LoadedStudy:
        """The study as it is run on real members: whole files from directories if such are given."""
        live = next((target for target in self.targets if target.is_live), None)
        return on_live(self.loaded, len(live.places) if live is not None and live.kind == "directory" else 0)

    def outcomes(self) -> Generator[Outcome, None, None]:
        """Run, and yield each outcome when it is there."""
        with ExitStack() as made:
            live = next((target for target in self.targets if target.is_live), None)
            members: Members = []
            files: MountedFiles | None = None
            if live is not None and runs_raw(self.live_loaded):
                members = made.enter_context(live_members(live, self._member_count(), self._live_member_bytes))
                self._make_ready(members)
            if live is not None and runs_mounted(self.live_loaded) and self.status == "complete":
                directories = [place.path for place in live.places if place.path is not None]
                files = made.enter_context(
                    mounted_files(self.live_loaded, directories, self.seed, self._live_member_bytes, quick=self.quick)
                )
                self._fill(files)
            for target in self.targets:
                if self.status == "complete":
                    yield from self._on(target, members, files)
            note_state_after(self.live_members)
            if members and live is not None and live.kind != "memory" and self.status == "complete":
                yield from self._null()
            if members and self.status == "complete":
                self._witnessed(members)

    def _on(self, target: Target, members: Members, files: MountedFiles | None) -> Iterator[Outcome]:
        if target.is_live:
            return self._live(target, members, files)
        return self._emulated() if target.name == EMULATED else self._simulated(target)

    def _make_ready(self, members: Members) -> None:
        """Let the engine open, claim and fill all members, by one request to each array that has new ones.

        This comes before anything else is run: what is refused is refused at once, and no measurement waits for
        gibibytes to be written first.
        """
        if members[0]["kind"] == "file":
            self.progress.note(f"filling {len(members)} member files of {format_bytes(members[0]['size_bytes'])}")
        study = self.loaded.study
        # What writes asks more of a device than what reads; a workload that must not write never does.
        boldest = max(study.workloads_on("live"), key=writes)
        found: dict[int, Member] = {}
        for array in sorted(self._raw_arrays(), key=lambda array: -self._leaves(array.name)):
            positions = self._positions(array.name)
            if set(positions) <= set(found):
                continue
            cell = make_cell("live", array, boldest, LoadPoint("closed", depth=1), 0, self.seed, "ready")
            try:
                answer = run_request(self._live_text(cell, members, once=True), lambda _share: not self.stop())
            except RefusedError as error:
                raise RefusedError(_in_words_of_user(str(error))) from None
            except CellFailedError as error:
                self._give_up(error)
                return
            if answer.get("interrupted"):
                self.status = "interrupted"
                return
            for position, facts in zip(positions, answer["facts"]["targets"], strict=True):
                if facts is not None:
                    found[position] = opened_member(facts)
        known = [
            found.get(position) or unused_member(member["kind"], member.get("path"))
            for position, member in enumerate(members)
        ]
        self._refuse_small_requests(known)
        if self.check_members is not None:
            self.check_members(known)
        self.live_members = known

    def _give_up(self, error: CellFailedError) -> None:
        """What could not be made ready ends the run; what was asked for wrongly is the user's to mend."""
        said = _in_words_of_user(str(error))
        if error.kind == "bad_input":
            raise InputError([Problem("", "", said)]) from None
        self.status, self.failure = "failed", said

    def _refuse_small_requests(self, members: Sequence[Member]) -> None:
        """Refuse requests that are no whole sectors of members whose sectors only opening them has told."""
        sector_bytes = max((int(member.get("sector_bytes") or 0) for member in members), default=0)
        if sector_bytes <= self._live_section.sector:
            return
        anything = {"kind": "null", "size_bytes": self._live_member_bytes}
        problems = dry_problems(
            self.live_loaded, "live", members=[anything], sector_bytes=sector_bytes, seed=self.seed, quick=self.quick
        )
        if problems:
            raise InputError(problems)

    def _raw_arrays(self) -> list[Array]:
        """The arrays that real members make up; directories are nobody's members."""
        return [array for array in self.loaded.study.arrays_on("live") if not array.is_mounted]

    def _positions(self, array: str, target: str = "live") -> list[int]:
        """Which of the live members an array takes: the first, unless it lies over groups."""
        positions = members_of(self.loaded, target, array)
        return list(range(self._leaves(array))) if positions is None else positions

    def _member_count(self) -> int:
        """How many live members there are."""
        arrangement = self.loaded.arrangement
        return self._widest("live") if arrangement is None else sum(len(group.members) for group in arrangement.groups)

    def _fill(self, files: MountedFiles) -> None:
        """Write the whole files that are to be read from directories, and note how and where they lie."""
        try:
            for sentence in files.fill(lambda: bool(self.stop())):
                self.progress.note(sentence)
        except CellFailedError as error:
            self._give_up(error)
            return
        except KeyboardInterrupt:
            self.status = "interrupted"
            return
        found = [opened_member(facts) for facts in files.facts]
        if self.check_members is not None:
            self.check_members(found)
        self.live_members = [*self.live_members, *found]

    def member_shape(self, target: str, array: str) -> tuple[int, int]:
        """Size and sector of an array's members on a target, in bytes."""
        if target == NULL:
            return self._live_section.memory_member_size, self._live_section.sector
        if target != "live":
            model = self.loaded.geometry.device(target, array)
            return model.capacity_bytes, model.sector_bytes
        return self._live_member_bytes, self._live_section.sector

    def prepare(self) -> None:
        """Check, before anything is made, that the targets are fit for this study, and that the engine would run it.

        Raises
        ------
        InputError, RefusedError
        """
        for target in self.targets:
            self._check_asks(target)
            if target.name == EMULATED:
                check_emulated(self.loaded)
            if not target.is_live:
                continue
            live = self._live_section
            self._live_member_bytes = (live.quick.member_size if self.quick else None) or live.member_size
            if target.kind == "memory":
                self._live_member_bytes = live.memory_member_size
            if target.kind == "block":
                target.refuse_used()
                self._live_member_bytes = check_devices(target, 0 if groups_of(self.loaded, target) else self._widest())
                if any(writes(workload) for workload in self.loaded.study.workloads_on("live")):
                    target.refuse_writes()
            sample = self.loaded.sample_file()
            if sample is not None and not sample.is_file():
                problem = self.loaded.problem(("live", "data"), "is no file", "a file with data of your own")
                raise InputError([problem])
            groups = groups_of(self.loaded, target)
            if groups:
                self.loaded = laid_over(self.loaded, groups, self._live_member_bytes, self.progress.note)
                # What followed from the arrays as they were is to be found anew.
                self.__dict__.pop("live_loaded", None)
            if target.kind == "directory":
                raw = self._member_count() if runs_raw(self.live_loaded) else 0
                mounted = len(target.places) if runs_mounted(self.live_loaded) else 0
                check_places(target, raw + mounted, self._live_member_bytes, self.progress.note)
        found: dict[tuple[str, str], Problem] = {}
        for name, member, sector_bytes in self._tried():
            loaded = self.live_loaded if name in ("live", NULL) else self.loaded
            for problem in dry_problems(
                loaded, name, members=[member], sector_bytes=sector_bytes, seed=self.seed, quick=self.quick
            ):
                found.setdefault((problem.file, problem.where), problem)
        if found:
            raise InputError(sorted(found.values(), key=lambda problem: (problem.line or 0, problem.where)))
        self._say_formats()

    def _say_formats(self) -> None:
        """Name the format of every trace whose first lines have told it: a guess is said."""
        from raidlab import _core

        for workload in self.loaded.study.workload:
            if workload.trace is None or workload.trace.format is not None:
                continue
            # One that is not there would have been refused, if anything here replayed it.
            with suppress(_core.CellError):
                told = _core.trace_format(str(self.loaded.trace_file(workload.trace)))
                self.progress.note(f"{workload.trace.file} is read as {told}, which its first lines tell")

    def _check_asks(self, target: Target) -> None:
        """A target on which nothing of the study is run is refused."""
        engine, study = engine_of(target.name), self.loaded.study
        asks = bool(study.arrays_on(engine) and study.workloads_on(engine))
        if target.is_live:
            asks = bool(runs_raw(self.live_loaded)) or runs_mounted(self.live_loaded)
        if not asks:
            raise InputError.one(
                "--on",
                f"the study '{study.name}' has no array, or no workload, for it",
                value=f"'{target.name}'",
                accepted="a target that `on` of an array and of a workload names",
            )

    def _tried(self) -> Iterator[tuple[str, dict[str, Any], int]]:
        """Every target with a member that stands for all of its members and needs no opening, and their sector."""
        for target in self.targets:
            model = self.loaded.geometry.devices.get(target.name)
            if target.name == EMULATED and model is not None:
                yield EMULATED, {"kind": EMULATED, "device": model.parameters}, model.sector_bytes
            elif model is not None:
                yield target.name, model.parameters, model.sector_bytes
            elif target.is_live:
                memory = {"kind": "memory", "size_bytes": self._live_section.memory_member_size}
                anything = {"kind": "null", "size_bytes": self._live_member_bytes}
                yield "live", memory if target.kind == "memory" else anything, self._live_section.sector
                if target.kind != "memory":
                    yield NULL, memory, self._live_section.sector

    @property
    def _live_section(self) -> Live:
        return self.loaded.study.live

    def _leaves(self, array: str) -> int:
        return count_leaves(self.loaded.geometry.trees[array])

    def _widest(self, engine: str = "live") -> int:
        """Members of the widest array that is run there; directories are nobody's members."""
        arrays = self.loaded.study.arrays_on(engine)
        return max(self._leaves(array.name) for array in arrays if not array.is_mounted)

    def _simulated(self, target: Target) -> Iterator[Outcome]:
        geometry = self.loaded.geometry

        def text_of(cell: Cell, hold_target_ns: int | None) -> str:
            model = geometry.device(target.name, cell.array.name)
            return cell_request(
                self.loaded,
                cell,
                members=[model.parameters],
                sector_bytes=model.sector_bytes,
                quick=self.quick,
                hold_target_ns=hold_target_ns,
            )

        expansion = expand(self.loaded.study, target.name, seed=self.seed, quick=self.quick)
        yield from self._run(
            expansion, PoolRunner(self.stop), text_of, f"simulating {geometry.devices[target.name].name}"
        )

    def _emulated(self) -> Iterator[Outcome]:
        """Modelled disks on the real clock, one cell at a time: two would take the processor from each other."""
        model = check_emulated(self.loaded)
        with emulated_members(self.loaded, model, self._widest(EMULATED)) as members:

            def text_of(cell: Cell, hold_target_ns: int | None) -> str:
                return cell_request(
                    self.loaded,
                    cell,
                    members=members if len(members) == 1 else members[: self._leaves(cell.array.name)],
                    sector_bytes=model.sector_bytes,
                    quick=self.quick,
                    hold_target_ns=hold_target_ns,
                )

            title = f"emulating {model.name} at speed {self.loaded.study.emulated.speed:g}"
            runner = InlineRunner(self.stop, self.machine, _TRIES)
            yield from self._run(self._expanded(EMULATED), runner, text_of, title)
            if runner.again:
                cells = "1 cell was" if runner.again == 1 else f"{runner.again} cells were"
                self.progress.note(f"{cells} late and run again, each time at half the speed")

    def _live_text(self, cell: Cell, members: Members, hold_target_ns: int | None = None, *, once: bool = False) -> str:
        return cell_request(
            self.live_loaded,
            cell,
            members=[members[one] for one in self._positions(cell.array.name, cell.target)],
            sector_bytes=self._live_section.sector,
            quick=self.quick,
            hold_target_ns=hold_target_ns,
            once=once,
        )

    def _live(self, target: Target, members: Members, files: MountedFiles | None) -> Iterator[Outcome]:
        def text_of(cell: Cell, hold_target_ns: int | None) -> str:
            if files is not None and cell.array.is_mounted:
                return files.text(cell)
            return self._live_text(cell, members, hold_target_ns)

        places = ", ".join(places_told(target))
        runner = InlineRunner(self.stop, self.machine)
        return self._run(self._expanded("live"), runner, text_of, f"measuring on {places}")

    def _expanded(self, target: str) -> Expansion:
        """What is run on the clock: all, or all that needs no other machine where none is named."""
        loaded = self.live_loaded if target == "live" else self.loaded
        expansion = expand(loaded.study, target, seed=self.seed, quick=self.quick)
        if self.machine is not None:
            return expansion
        left_out = [cell for cell in expansion.cells if needs_machine(self.loaded, cell)]
        for name in dict.fromkeys(cell.workload.name for cell in left_out):
            self.progress.note(f"'{name}' is left out: it needs another machine (--machine)")
        return replace(expansion, cells=tuple(cell for cell in expansion.cells if cell not in left_out))

    def _witnessed(self, members: Members) -> None:
        """Let the study's second tool measure too."""
        arrays = [array.name for array in self._raw_arrays()]
        firsts = {name: members[self._positions(name)[0]] for name in arrays}
        found = second_tool(
            self.loaded,
            firsts,
            self._live_member_bytes,
            self._live_section.sector,
            seed=self.seed,
            quick=self.quick,
            progress=self.progress,
            stop=self.stop,
        )
        self.second_tool = list(found)
        if self.stop():
            self.status = "interrupted"

    def _null(self) -> Iterator[Outcome]:
        """The same requests over members in memory: what raidlab itself costs, to be set against what was measured."""
        memory: Members = [
            {"kind": "memory", "size_bytes": self._live_section.memory_member_size} for _ in range(self._widest("live"))
        ]
        expansion = expand_null(self.live_loaded.study, seed=self.seed, quick=self.quick)

        def text_of(cell: Cell, hold_target_ns: int | None) -> str:
            return self._live_text(cell, memory, hold_target_ns)

        yield from self._run(expansion, InlineRunner(self.stop), text_of, "bounding raidlab's own cost in memory")

    def _run(self, expansion: Expansion, runner: Runner, text_of: TextOf, title: str) -> Iterator[Outcome]:
        if self.known:
            runner = Remembered(runner, self.known)
        schedule = Schedule(expansion, text_of, runner, self.seed)
        self.progress.begin(title, schedule.expected_cells())
        try:
            for outcome in schedule.outcomes():
                yield outcome
                if isinstance(outcome, CellOutcome):
                    self.progress.advance()
            yield from schedule.leftovers()
        except KeyboardInterrupt:
            self.status = "interrupted"
            self.progress.note(f"stopping ({self.stop.signal_name}): what was measured is kept")
            yield from schedule.leftovers()
        except CellFailedError as error:
            self.status, self.failure = "failed", str(error)
            yield from schedule.leftovers()
        finally:
            # Nobody may take the outcomes any more (a full disk): nothing goes on behind anybody's back then.
            runner.close()
            self.progress.end()


def check_study(loaded: LoadedStudy) -> None:
    """Check that the engine would run all that a study says it can run on; nothing is opened or made.

    Raises
    ------
    InputError
    """
    study = loaded.study
    modelled = [Target(name) for name in ("sim", "original") if study.has_target(name)]
    # Every study has real members by default; only one that speaks of them is judged by them.
    is_live = "live" in study.model_fields_set or any(engine_of(word) == "live" for word in study.default_targets)
    live = [Target("live", (LivePlace("directory"),))] if is_live else []
    Execution(loaded, [*modelled, *live], study.seed).prepare()


def _in_words_of_user(message: str) -> str:
    """An error of the engine about a live member, with the option that named it in place of the engine's key."""
    return re.sub(r"^members(\[\d+\])?(\.\w+)?: ", "--on: ", message)

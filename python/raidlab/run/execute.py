"""Run a study on its targets and hand out what is measured, as it is measured.

Invariants:

- Targets are run one after another: a live run must not share the processors with the simulator.
- What is refused is refused before anything is measured: live members are opened, claimed and filled first.
- Files made for a live target are gone when the generator is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from raidlab.errors import CellFailedError, InputError, Problem, RefusedError
from raidlab.results.facts import Member, MoreFacts, SecondTool
from raidlab.results.outcome import Outcome
from raidlab.run.cached import CachedRunner, KeptCells
from raidlab.run.dask import Cluster, DaskRunner
from raidlab.run.dry import dry_problems
from raidlab.run.members import (
    EMULATED,
    Members,
    check_devices,
    check_emulated,
    check_places,
    emulated_members,
    live_members,
)
from raidlab.run.mounted import MountedFiles, mounted_files, on_live, runs_mounted, runs_raw
from raidlab.run.pool import PoolRunner
from raidlab.run.request import KnownParts, cell_request
from raidlab.run.runner import InlineRunner, Runner
from raidlab.run.session import Session
from raidlab.run.stream_cells import CopySink, needs_machine
from raidlab.run.target_facts import note_state_after, opened_member
from raidlab.run.targets import LivePlace, Target, groups_of, laid_over, place_names, refuse_write, standing
from raidlab.run.volumes import check_volumes, volume_bytes, volume_members
from raidlab.run.witness import second_tool
from raidlab.study import Cell, Expansion, LoadedStudy, LoadPoint, expand, make_cell
from raidlab.study.cell import Opaque
from raidlab.study.check import count_leaves, difference_of, engine_of, equal_accepted, writes
from raidlab.study.expand import NULL, expand_null, is_run
from raidlab.study.grouped import members_of
from raidlab.study.schema import Array
from raidlab.study.target import Live
from raidlab.study.units import format_bytes
from raidlab.study.words import OFF_LIVE, SIMULATED
from raidlab.study.workload import Workload

# A busy host makes emulated disks late; a cell that says nothing for that is run again, so often at most.
_TRIES = 3
# Where a problem is of a workload.
_OF_WORKLOAD = re.compile(r"workload\[(\d+)\]")


@dataclass
class Execution(Session):
    """A run of a study."""

    targets: list[Target]
    quick: bool = False
    """Use the study's quick budget."""
    machine: CopySink | None = None
    """Another machine, for streams that go to one; without it cells that need it are left out, which is said."""
    check_members: Callable[[Sequence[Member]], None] | None = None
    """Told the facts of the live members before anything is measured on them; raises where they will not do."""
    cache: KeptCells | None = None
    """What modelled cells gave before; None has all of them simulated."""
    cluster: Cluster | None = None
    """Where modelled cells are simulated in place of this machine's pool."""
    second_tool: list[SecondTool] = field(default_factory=list)
    """What another tool measured beside raidlab's engine, load by load."""
    _live_member_bytes: int = 0
    _volume_bytes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def live_loaded(self) -> LoadedStudy:
        """The study as it is run on real members: whole files from directories if such are given."""
        live = self._live_target
        return on_live(self.loaded, len(live.places) if live is not None and live.kind == "directory" else 0)

    @property
    def _live_target(self) -> Target | None:
        return next((target for target in self.targets if target.is_live), None)

    @property
    def _live_section(self) -> Live:
        return self.loaded.study.live

    def outcomes(self) -> Generator[Outcome, None, None]:
        """Run, and yield each outcome when it is there."""
        live = self._live_target
        with ExitStack() as made:
            members: Members = []
            files: MountedFiles | None = None
            if live is not None and runs_raw(self.live_loaded):
                if live.places:
                    members = made.enter_context(live_members(live, self._member_count(), self._live_member_bytes))
                members = [*members, *made.enter_context(volume_members(live.volumes, self._volume_bytes))]
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
                self._compare_with_second_tool(members)

    @property
    def is_repeatable(self) -> bool:
        """Whether the same study gives the same tables again: all is modelled, and no row of a request is kept."""
        return self.records is None and all(target.name in SIMULATED for target in self.targets)

    def member_shape(self, target: str, array: str) -> tuple[int, int]:
        """Size and sector of an array's members on a target, in bytes."""
        live = self._live_section
        if target in ("live", NULL):
            own = live.memory_member_size if target == NULL else self._live_member_bytes
            return own if target == NULL else self._volume_bytes.get(array, own), live.sector
        model = self.loaded.geometry.device(target, array)
        return model.capacity_bytes, model.sector_bytes

    def more_facts(self) -> MoreFacts:
        """What the second tool measured."""
        return {"second_tool": self.second_tool} if self.second_tool else {}

    def prepare(self, *, is_known: bool = False) -> None:
        """Check, before anything is made, that the targets are fit for this study, and that the engine would run it.

        Where it ``is_known`` what comes of it, the engine has run it.
        """
        for target in self.targets:
            self._check_asks(target)
            if target.name == EMULATED:
                check_emulated(self.loaded)
            if target.is_live:
                self._prepare_live(target)
                self._check_equal_capacity(target)
        found: dict[tuple[str, str], Problem] = {}
        for target in [] if is_known else self.targets:
            for name, member in self._stand_ins(target):
                for problem in self._dry_problems(name, member, self.member_shape(name, "")[1]):
                    found.setdefault((problem.file, problem.where), problem)
        if found:
            raise InputError(sorted(found.values(), key=lambda problem: (problem.line or 0, problem.where)))
        self._say_formats()

    def _prepare_live(self, target: Target) -> None:
        """Settle the size of live members, and refuse what will not do for them."""
        live = self._live_section
        self._live_member_bytes = self._live_file_bytes
        groups = groups_of(self.loaded, target)
        if target.kind == "memory":
            self._live_member_bytes = live.memory_member_size
        if target.kind == "block":
            target.refuse_used()
            self._live_member_bytes = check_devices(target, 0 if groups else self._widest("live", target))
            if any(writes(workload) for workload in self.loaded.study.workloads_on("live")):
                target.refuse_writes()
        sample = self.loaded.sample_file()
        if sample is not None and not sample.is_file():
            raise InputError([self.loaded.problem(("live", "data"), "is no file", "a file with data of your own")])
        if groups:
            self.loaded = laid_over(self.loaded, groups, self._live_member_bytes, self.progress.note)
            # What followed from the arrays as they were is to be found anew.
            self.__dict__.pop("live_loaded", None)
        if target.volumes:
            self._prepare_volumes(target)
        if target.kind == "directory":
            raw = self._member_count() if runs_raw(self.live_loaded) else 0
            mounted = len(target.places) if runs_mounted(self.live_loaded) else 0
            check_places(target, raw + mounted, self._live_member_bytes, self.progress.note)

    def _check_equal_capacity(self, target: Target) -> None:
        """Refuse arrays over real members that a table calls equal and that are not, now that the members are known."""
        loaded = self.live_loaded
        study, geometry = loaded.study, loaded.geometry
        for index, compare in enumerate(study.compare):
            if compare.equal != "user_capacity":
                continue
            # What a volume holds is the kernel's to say.
            names = [
                array.name
                for array in study.arrays_on("live")
                if array.group == compare.group and not array.is_mounted and array.volume is None
                if array.name not in target.volumes and any(is_run(array, one, "live") for one in study.workload)
            ]
            sizes = [geometry.facts(name, *self.member_shape("live", name))["user_bytes"] for name in names]
            difference = difference_of(compare, sizes, [geometry.trees[name] for name in names])
            if difference is not None:
                place, message = ("compare", index, "equal"), f"{difference} (on live)"
                raise InputError([loaded.problem(place, message, equal_accepted(compare))])

    def _prepare_volumes(self, target: Target) -> None:
        """Put arrays that stand already in the place of trees, and refuse those that will not do."""
        target.refuse_used()
        study = self.loaded.study
        for array in study.array:
            place = target.volumes.get(array.name)
            is_written = any(is_run(array, one, "live") and writes(one) for one in study.workload)
            if place is not None and is_written:
                refuse_write(place, f"the array '{array.name}'")
        file_bytes = self._live_member_bytes if target.kind == "directory" else self._live_file_bytes
        check_volumes(target, file_bytes)
        self._volume_bytes = volume_bytes(target.volumes, file_bytes)
        pool = self._member_count(target) if target.places else 0
        self.loaded = standing(self.loaded, target, pool, self.progress.note)
        self.__dict__.pop("live_loaded", None)
        if not target.places:
            self._live_member_bytes = min(self._volume_bytes.values())

    @property
    def _live_file_bytes(self) -> int:
        live = self._live_section
        return (live.quick.member_size if self.quick else None) or live.member_size

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
            asks = bool(target.volumes or runs_raw(self.live_loaded)) or runs_mounted(self.live_loaded)
        if not asks:
            raise InputError.one(
                "--on",
                f"the study '{study.name}' has no array, or no workload, for it",
                value=f"'{target.name}'",
                accepted="a target that `on` of an array and of a workload names (slow members, a device of its own "
                "and the rebuild of a member that is missing are for the simulator only)",
            )

    def _stand_ins(self, target: Target) -> Iterator[tuple[str, Opaque]]:
        """Where a target's cells are run, each with a member that stands for all and needs no opening."""
        model = self.loaded.geometry.devices.get(target.name)
        if model is not None:
            is_emulated = target.name == EMULATED
            yield target.name, {"kind": EMULATED, "device": model.parameters} if is_emulated else model.parameters
        elif target.is_live:
            memory = {"kind": "memory", "size_bytes": self._live_section.memory_member_size}
            yield "live", memory if target.kind == "memory" else self._any_member
            if target.kind != "memory":
                yield NULL, memory

    @property
    def _any_member(self) -> Opaque:
        """A live member that is never opened."""
        return {"kind": "null", "size_bytes": self._live_member_bytes}

    def _dry_problems(self, target: str, member: Opaque, sector_bytes: int) -> list[Problem]:
        loaded = self._loaded_on(target)
        return dry_problems(
            loaded, target, members=[member], sector_bytes=sector_bytes, seed=self.seed, quick=self.quick
        )

    def _loaded_on(self, target: str) -> LoadedStudy:
        return self.live_loaded if target in ("live", NULL) else self.loaded

    def _make_ready(self, members: Members) -> None:
        """Let the engine open, claim and fill all members, by one request to each array that has new ones.

        This comes before anything else is run: what is refused is refused at once, and no measurement waits for
        gibibytes to be written first.
        """
        files = [member for member in members if member["kind"] == "file" and not member.get("existing")]
        if files:
            self.progress.note(f"filling {len(files)} member files of {format_bytes(files[0]['size_bytes'])}")
        found: dict[int, Member] = {}
        for array in sorted(self._raw_arrays(), key=lambda array: -self._leaves(array.name)):
            positions = self._positions(array.name)
            if set(positions) <= set(found):
                continue
            cell = make_cell("live", array, self._boldest(array), LoadPoint("closed", depth=1), 0, self.seed, "ready")
            try:
                answer = self._first(self._request(cell, None, members, once=True))
            except RefusedError as error:
                raise (error.at(self._named_at(array)) if error.key.startswith("members") else error) from None
            except CellFailedError as error:
                self._give_up(error)
                return
            if answer is None:
                return
            for position, facts in zip(positions, answer["facts"]["targets"], strict=True):
                if facts is not None:
                    found[position] = opened_member(facts)
                    if array.volume is not None:
                        found[position]["subject"], found[position]["name"] = array.name, array.volume
        known = [
            found.get(position) or opened_member(None, member["kind"], member.get("path"))
            for position, member in enumerate(members)
        ]
        self._without_small_requests(known)
        self._note_members(known)

    def _named_at(self, array: Array) -> str:
        """The option or the key of the study that says what an array's members are."""
        live = self._live_target
        place = live.volumes.get(array.name) if live is not None else None
        return "--on" if place is None else place.named_at

    def _boldest(self, array: Array) -> Workload:
        """What asks most of an array's members: writing, then requests that are long, also the shortest of them.

        Long ones are whole sectors wherever any are.

        A workload that must not write never does. Members that arrays share are made ready for all of them.
        """
        study = self.live_loaded.study
        sharing = [array] if array.volume is not None else [one for one in self._raw_arrays() if one.volume is None]
        asked = [one for one in study.workload if any(is_run(other, one, "live") for other in sharing)]
        return max(
            asked or study.workloads_on("live"),
            key=lambda workload: (writes(workload), _shortest_bytes(workload)),
        )

    def _without_small_requests(self, members: Sequence[Member]) -> None:
        """Leave out workloads that are no whole sectors of members, whose sectors only opening them has told.

        Raises `InputError` where none is left, or where something else will not do.
        """
        sector_bytes = max((int(member.get("sector_bytes") or 0) for member in members), default=0)
        if sector_bytes <= self._live_section.sector:
            return
        problems = self._dry_problems("live", self._any_member, sector_bytes)
        small = {int(found[1]) for one in problems if (found := _OF_WORKLOAD.match(one.where))}
        study = self.loaded.study
        left = [
            one.model_copy(update={"on": [engine for engine in OFF_LIVE if one.runs_on(engine)]})
            if index in small
            else one
            for index, one in enumerate(study.workload)
        ]
        changed = study.model_copy(update={"workload": left})
        is_all_told = all(_OF_WORKLOAD.match(one.where) for one in problems)
        if problems and not (is_all_told and changed.workloads_on("live")):
            raise InputError(problems)
        if small:
            names = ", ".join(f"'{study.workload[index].name}'" for index in sorted(small))
            self.progress.note(f"left out, as their requests are no whole sectors of {sector_bytes} bytes: {names}")
        self.loaded = replace(self.loaded, study=changed)
        self.__dict__.pop("live_loaded", None)

    def _note_members(self, members: list[Member]) -> None:
        if self.check_members is not None:
            self.check_members(members)
        self.live_members = [*self.live_members, *members]

    def _give_up(self, error: CellFailedError) -> None:
        """What could not be made ready ends the run; what was asked for wrongly is for the user to put right."""
        told = str(error.at("--on") if error.key.startswith("members") else error)
        if error.kind == "bad_input":
            raise InputError([Problem("", "", told)]) from None
        self.status, self.failure = "failed", told

    def _fill(self, files: MountedFiles) -> None:
        """Write the whole files that are to be read from directories, and note how and where they lie."""
        try:
            for sentence in files.fill(self.stop):
                self.progress.note(sentence)
        except CellFailedError as error:
            self._give_up(error)
        except KeyboardInterrupt:
            self.status = "interrupted"
        else:
            self._note_members([opened_member(facts) for facts in files.facts])

    def _raw_arrays(self) -> list[Array]:
        """The arrays that real members make up; directories are nobody's members."""
        return [array for array in self.loaded.study.arrays_on("live") if not array.is_mounted]

    def _positions(self, array: str, target: str = "live") -> list[int]:
        """Which of the live members an array takes: the first, unless it lies over groups."""
        positions = members_of(self.loaded, target, array)
        return list(range(self._leaves(array))) if positions is None else positions

    def _member_count(self, target: Target | None = None) -> int:
        """How many live members raidlab's own arrays have."""
        arrangement = self.loaded.arrangement
        if arrangement is not None and arrangement.groups:
            return sum(len(group.members) for group in arrangement.groups)
        return self._widest("live", target or self._live_target)

    def _leaves(self, array: str) -> int:
        return count_leaves(self.loaded.geometry.trees[array])

    def _widest(self, engine: str, target: Target | None = None) -> int:
        """Members of the widest array that is run there; directories and volumes of ``target`` are nobody's members."""
        arrays = [array for array in self.loaded.study.arrays_on(engine) if not array.is_mounted]
        volumes = target.volumes if target is not None else {}
        return max((self._leaves(array.name) for array in arrays if array.name not in volumes), default=0)

    def _request(
        self,
        cell: Cell,
        hold_target_ns: int | None,
        members: Members,
        *,
        files: MountedFiles | None = None,
        once: bool = False,
        known: KnownParts | None = None,
    ) -> str:
        """The text of a cell over members, of which exactly one may stand for all."""
        if files is not None and cell.array.is_mounted:
            return files.text(cell)
        if cell.target in ("live", NULL):
            members = [members[one] for one in self._positions(cell.array.name, cell.target)]
        return cell_request(
            self._loaded_on(cell.target),
            cell,
            members=members if len(members) == 1 else members[: self._leaves(cell.array.name)],
            sector_bytes=self.member_shape(cell.target, cell.array.name)[1],
            quick=self.quick,
            hold_target_ns=hold_target_ns,
            once=once,
            known=known,
        )

    def _on(self, target: Target, members: Members, files: MountedFiles | None) -> Iterator[Outcome]:
        if target.is_live:
            text_of = partial(self._request, members=members, files=files)
            places = ", ".join(place_names(target))
            return self._run(
                self._expanded("live"),
                text_of,
                f"measuring on {places}",
                InlineRunner(self.stop, self.machine, records=self.records),
            )
        return self._emulated() if target.name == EMULATED else self._simulated(target)

    def _simulated(self, target: Target) -> Iterator[Outcome]:
        geometry, known = self.loaded.geometry, KnownParts()

        def text_of(cell: Cell, hold_target_ns: int | None) -> str:
            model = geometry.device(target.name, cell.array.name)
            return self._request(cell, hold_target_ns, [model.parameters], known=known)

        expansion = expand(self.loaded.study, target.name, seed=self.seed, quick=self.quick)
        title = f"simulating {geometry.devices[target.name].name}"
        runner: Runner = PoolRunner(self.stop, records=self.records, written=True)
        if self.cluster is not None:
            runner, title = DaskRunner(self.cluster, self.stop), f"{title} on {self.cluster.address}"
        # Of a cell that is kept no row of a single request could be written.
        cached = None if self.cache is None or self.records else CachedRunner(runner, self.cache, self.progress)
        yield from self._run(expansion, text_of, title, cached or runner)
        if cached is not None and cached.found:
            cells = "1 cell was" if cached.found == 1 else f"{cached.found} cells were"
            self.progress.note(f"{cells} simulated before (--no-cache has them simulated again)")

    def _emulated(self) -> Iterator[Outcome]:
        """Modelled disks on the real clock, one cell at a time: two would take the processor from each other."""
        model = check_emulated(self.loaded)
        with emulated_members(self.loaded, model, self._widest(EMULATED)) as members:
            runner = InlineRunner(self.stop, self.machine, _TRIES, self.records)
            title = f"emulating {model.name} at speed {self.loaded.study.emulated.speed:g}"
            yield from self._run(self._expanded(EMULATED), partial(self._request, members=members), title, runner)
            if runner.again:
                cells = "1 cell was" if runner.again == 1 else f"{runner.again} cells were"
                self.progress.note(f"{cells} late and run again, each time at half the speed")

    def _null(self) -> Iterator[Outcome]:
        """The same requests over members in memory: what raidlab itself costs, to be set against what was measured."""
        size_bytes = self._live_section.memory_member_size
        memory: Members = [{"kind": "memory", "size_bytes": size_bytes} for _ in range(self._widest("live"))]
        expansion = expand_null(self.live_loaded.study, seed=self.seed, quick=self.quick)
        return self._run(expansion, partial(self._request, members=memory), "bounding raidlab's own cost in memory")

    def _expanded(self, target: str) -> Expansion:
        """What is run on the clock: all, or all that needs no other machine where none is named."""
        expansion = expand(self._loaded_on(target).study, target, seed=self.seed, quick=self.quick)
        if self.machine is not None:
            return expansion
        left_out = [cell for cell in expansion.cells if needs_machine(self.loaded, cell)]
        for name in dict.fromkeys(cell.workload.name for cell in left_out):
            self.progress.note(f"'{name}' is left out: it needs another machine (--machine)")
        return replace(expansion, cells=tuple(cell for cell in expansion.cells if cell not in left_out))

    def _compare_with_second_tool(self, members: Members) -> None:
        """Let the study's second tool measure too."""
        # A volume is no member of an array of raidlab's, and each has its own size.
        own = [array for array in self._raw_arrays() if array.volume is None]
        firsts = {array.name: members[self._positions(array.name)[0]] for array in own}
        self.second_tool = list(
            second_tool(
                self.loaded,
                firsts,
                self._live_member_bytes,
                seed=self.seed,
                quick=self.quick,
                progress=self.progress,
                stop=self.stop,
            )
        )
        if self.stop():
            self.status = "interrupted"


def _shortest_bytes(workload: Workload) -> int:
    """What a workload asks for at least; of a distribution, which draws whole sectors whatever these are, its mean."""
    size = workload.size
    return min(size.bytes) if size.kind == "table" else size.typical_bytes


def check_study(loaded: LoadedStudy) -> None:
    """Check that the engine would run all that a study says it can run on; nothing is opened or made."""
    study = loaded.study
    modelled = [Target(name) for name in SIMULATED if study.has_target(name)]
    # Every study has real members by default; only one that speaks of them is judged by them.
    speaks_of_live = "live" in study.model_fields_set and study.arrays_on("live") and study.workloads_on("live")
    is_live = speaks_of_live or any(engine_of(word) == "live" for word in study.default_targets)
    live = [Target("live", (LivePlace("directory"),))] if is_live else []
    Execution(loaded, [*modelled, *live], seed=study.seed).prepare()

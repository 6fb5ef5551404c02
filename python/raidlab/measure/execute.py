"""Measure: make targets ready, bound the meter's own cost, run every subject in shuffled order, repeat until sure.

Invariants:

- What is refused is refused before anything is measured: every target is opened once beforehand.
- Files made for directories are gone when the generator is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.measure.places import WHOLE, Place
from raidlab.measure.plan import ARRAY, ARRAY_SECTOR_BYTES, DIRECT, ResultLine
from raidlab.measure.request import MeasureRequest
from raidlab.measure.warm_up import PilotWarmUp, found_by_pilot
from raidlab.results.facts import BudgetFacts, MeasureFacts, MeterFacts, MoreFacts, Pilot, WarmupRounds
from raidlab.results.outcome import CellOutcome, Outcome
from raidlab.run.members import Members, device_bytes, member_files
from raidlab.run.request import cell_limit, cell_policy, direct_request
from raidlab.run.runner import Answer, Runner
from raidlab.run.schedule import TextOf, bytes_per_s
from raidlab.run.session import Session
from raidlab.run.target_facts import note_state_after, opened_member
from raidlab.stats import MOST_REPEATS, wants_more
from raidlab.stats.steady_state import MOST_ROUNDS, WINDOW, steady_state
from raidlab.study import Cell, Expansion, LoadedStudy, LoadPoint, expand, make_cell
from raidlab.study.cell import ArrayCell, Drive, Opaque, Span, text_of
from raidlab.study.check import count_leaves
from raidlab.study.expand import NULL, PILOT, expand_null
from raidlab.study.target import Amount
from raidlab.study.tree import Tree
from raidlab.study.units import format_bytes

if TYPE_CHECKING:
    from raidlab.measure.hosts import Hosts

# Five rounds are a minute at least.
LEAST_ROUND_NS = 12_000_000_000
# Beyond every repeat, so that a pilot has a seed of its own.
_PILOT_REPEAT = 1_000_000

# A warm-up, and how much is measured.
Amounts = tuple[Amount, Amount]
# How long the meter is run against nothing, for the bound of its own cost.
_NULL_BUDGET = (Amount(duration="100ms"), Amount(duration="400ms"))


@dataclass
class Measurement(Session):
    """A measurement under way."""

    subjects: list[ResultLine]
    asked: MeasureRequest
    members_of: dict[str, list[int]] = field(default_factory=dict)
    """The positions of each subject's targets in `live_members`."""
    warmups: dict[tuple[str, LoadPoint], PilotWarmUp] = field(default_factory=dict)
    """What pilots found, by subject and load."""
    steadied: list[WarmupRounds] = field(default_factory=list)
    """What the rounds before measuring came to."""
    hosts: Hosts | None = None
    """The machines that measure together; None for this one."""
    _members: dict[str, Members] = field(default_factory=dict)

    def outcomes(self) -> Generator[Outcome, None, None]:
        """Measure, and yield each outcome when it is there."""
        with self._made_members() as members:
            self._members = members
            self._make_ready()
            for step in (self._null, self._pilots, self._until_steady, self._measure):
                if self.status == "complete":
                    yield from step()
            if self.hosts is None:
                note_state_after(self.live_members)
            else:
                self.lost += self.hosts.lost
                if self.status != "failed":
                    self.hosts.member_facts_after(self.live_members)

    @contextmanager
    def _made_members(self) -> Iterator[dict[str, Members]]:
        if self.hosts is None:
            with made_members(self.subjects, self.loaded.geometry.trees) as members:
                yield members
            return
        with self.hosts.made_members() as theirs:
            yield {self.subjects[0].name: theirs}

    def _run(
        self, expansion: Expansion, text_of: TextOf, title: str, runner: Runner | None = None
    ) -> Iterator[Outcome]:
        if self.hosts is not None:
            runner = self.hosts.runner()
        yield from super()._run(expansion, text_of, title, runner)

    def _first(self, request: str) -> Answer | None:
        return super()._first(request) if self.hosts is None else cast(Answer, self.hosts.run(request))

    def member_shape(self, target: str, array: str) -> tuple[int, int]:
        """The size of a subject's smallest target, and the sector its sizes are counted in."""
        sizes = [place.size_bytes for subject in self.subjects if subject.name == array for place in subject.places]
        return min(sizes), ARRAY_SECTOR_BYTES

    def more_facts(self) -> MoreFacts:
        """What was asked for, and what was found before anything was measured."""
        asked = self.asked
        measure: MeasureFacts = {
            "subjects": [
                {"name": subject.name, "engine": subject.engine, "targets": [place.word for place in subject.places]}
                for subject in self.subjects
            ],
            "budget": cast(BudgetFacts, asdict(asked.budget)),
            "drive": cast(MeterFacts, asked.drive.model_dump()),
            "warmups": [
                cast(Pilot, {"subject": name, "load": point.label, **asdict(found)})
                for (name, point), found in self.warmups.items()
            ],
            "steadied": self.steadied if asked.until_steady else None,
            "precision_percent": asked.precision_percent,
            "span_percent": [100 * share for share in asked.span],
        }
        if self.hosts is not None:
            measure["hosts"] = [host.facts for host in self.hosts.hosts]
        return {"members_of": self.members_of, "measure": measure}

    def _subject(self, cell: Cell) -> ResultLine:
        return next(subject for subject in self.subjects if subject.name == cell.array.name)

    def _request(self, cell: Cell, hold_target_ns: int | None, amounts: Amounts | None = None) -> str:
        """The text of a cell; ``amounts`` are the study's if left out."""
        subject = self._subject(cell)
        return measure_request(
            self.loaded,
            cell,
            subject,
            self._members[subject.name],
            self.asked.drive,
            hold_target_ns=hold_target_ns,
            amounts=amounts,
        )

    def _points(self) -> list[Cell]:
        """A cell of each point of the load."""
        return [cell for cell in expand(self.loaded.study, "live", seed=self.seed).cells if cell.repeat == 0]

    def _make_ready(self) -> None:
        """Have the engine open, claim and fill every target, by one request to each subject."""
        directories = [place for subject in self.subjects for place in subject.places if place.kind == "directory"]
        made = [member for members in self._members.values() for member in members if member["kind"] == "file"]
        if directories:
            what = "a file" if len(made) == 1 else f"{len(made)} files"
            self.progress.note(f"filling {what} of {format_bytes(directories[0].size_bytes)}")
        for array, subject in zip(self.loaded.study.array, self.subjects, strict=True):
            # Every worker and every target wants its share of the depth.
            point = LoadPoint("closed", depth=max(self.asked.drive.workers, len(subject.places)))
            cell = make_cell("live", array, self.loaded.study.workload[0], point, 0, 0, "ready")
            try:
                answer = self._first(self._request(cell, None, (Amount(), Amount(requests=1))))
            except RefusedError as error:
                raise subject.error_at_target(error) from None
            except CellFailedError as error:
                told = subject.error_at_target(error)
                if error.message.endswith(os.strerror(errno.EFBIG)):
                    raise CellFailedError(f"{told} (ulimit -f, or the file system's limit)", error.kind) from None
                if error.kind in ("unsupported", "stopped") or error.message.endswith(os.strerror(errno.ENOSPC)):
                    raise told from None
                # Nothing has been measured: a target that cannot be opened or filled is no target.
                raise InputError.one("", str(told)) from None
            if answer is None:
                return
            self._note_targets(subject, answer["facts"]["targets"])

    def _note_targets(self, subject: ResultLine, targets: list[Opaque | None]) -> None:
        first = len(self.live_members)
        self.members_of[subject.name] = list(range(first, first + len(targets)))
        places = [subject.places[number % len(subject.places)] for number in range(len(targets))]
        if self.hosts is None:
            members = [opened_member(facts, place.kind) for facts, place in zip(targets, places, strict=True)]
        else:
            members = self.hosts.member_facts(targets)
        for member, place in zip(members, places, strict=True):
            path = member.get("path")
            member["name"], member["subject"] = place.word, subject.name
            member["identity"] = identity_of(Path(path)) if path and self.hosts is None else None
            self.live_members.append(member)

    def _null(self) -> Iterator[Outcome]:
        """The same requests to targets that complete at once: what the meter itself can do, before anything else."""
        plain = {subject.name: subject for subject in self.subjects if subject.engine == DIRECT}
        cells = [
            cell
            for cell in expand_null(self.loaded.study, seed=self.seed).cells
            if cell.array.name in plain and any(place.kind != NULL for place in plain[cell.array.name].places)
        ]

        def text_of(cell: Cell, _hold_target_ns: int | None) -> str:
            subject = plain[cell.array.name]
            members: Members = [{"kind": "null", "size_bytes": place.size_bytes} for place in subject.places]
            closed = replace(cell, load=LoadPoint("closed", depth=max(cell.load.depth, 1)))
            return measure_request(self.loaded, closed, subject, members, self.asked.drive, amounts=_NULL_BUDGET)

        if cells:
            yield from self._run(Expansion(NULL, tuple(cells), ()), text_of, "bounding raidlab's own cost")

    def _pilots(self) -> Iterator[Outcome]:
        """One run of each point without warm-up, to find how long a warm-up it needs."""
        study = self.loaded.study
        if not self.asked.budget.wants_pilot:
            return
        cells = tuple(
            # Other addresses than any repeat will ask for: what a pilot leaves in a cache is of no use to them.
            replace(make_cell("live", cell.array, cell.workload, cell.load, _PILOT_REPEAT, self.seed, PILOT), repeat=0)
            for cell in self._points()
        )
        text_of = partial(self._request, amounts=(Amount(), study.live.measure))
        for outcome in self._run(Expansion("live", cells, ()), text_of, "finding how long a warm-up lasts"):
            if _is_whole(outcome):
                self.warmups[outcome.cell.array.name, outcome.cell.load] = found_by_pilot(outcome.answer)
            yield outcome

    def _until_steady(self) -> Iterator[Outcome]:
        """Rounds of each point, uncounted, until five in a row are steady: a burst on credit is over then."""
        if not self.asked.until_steady:
            return
        round_ns = max(self.loaded.study.live.measure.duration or 0, LEAST_ROUND_NS)
        text_of = partial(self._request, amounts=(Amount(), Amount(duration=f"{round_ns}ns")))
        for first in self._points():
            rates: list[float] = []
            while self.status == "complete" and len(rates) < MOST_ROUNDS and not _is_steady(rates):
                repeat = 1 + len(rates)
                cell = make_cell(
                    "live", first.array, first.workload, first.load, _PILOT_REPEAT + repeat, self.seed, PILOT
                )
                one = Expansion("live", (replace(cell, repeat=repeat),), ())
                for outcome in self._run(one, text_of, f"until {first.array.name} is steady, round {repeat}"):
                    if _is_whole(outcome):
                        rates.append(bytes_per_s(outcome.answer))
                    yield outcome
                if len(rates) < repeat:
                    break
            self.steadied.append(
                {
                    "subject": first.array.name,
                    "load": first.load.label,
                    "rounds": len(rates),
                    "seconds": len(rates) * round_ns / 1e9,
                    "steady": _is_steady(rates),
                }
            )

    def _warmed_up(self, cell: Cell, hold_target_ns: int | None) -> str:
        """A cell after the warm-up its pilot found; at depths of a search, the longest of its subject's."""
        found = self.warmups.get((cell.array.name, cell.load))
        mine = [pilot.warmup_ns for (name, _), pilot in self.warmups.items() if name == cell.array.name]
        if not mine:
            return self._request(cell, hold_target_ns)
        warmup = Amount(duration=f"{found.warmup_ns if found is not None else max(mine)}ns")
        return self._request(cell, hold_target_ns, (warmup, self.loaded.study.live.measure))

    def _measure(self) -> Iterator[Outcome]:
        expansion = expand(self.loaded.study, "live", seed=self.seed)
        title = "measuring " + ", ".join(subject.name for subject in self.subjects)
        rates: dict[tuple[str, LoadPoint], list[float]] = {}
        repeat = max((cell.repeat for cell in expansion.cells), default=0)
        while (expansion.cells or expansion.holds) and self.status == "complete":
            for outcome in self._run(expansion, self._warmed_up, title):
                if _is_whole(outcome):
                    key = (outcome.cell.array.name, outcome.cell.load)
                    rates.setdefault(key, []).append(bytes_per_s(outcome.answer))
                yield outcome
            repeat += 1
            expansion = Expansion("live", tuple(self._wanting(rates, repeat)), ())

    def _wanting(self, rates: dict[tuple[str, LoadPoint], list[float]], repeat: int) -> Iterator[Cell]:
        """One more repeat of each point whose interval is wider than asked."""
        percent = self.asked.precision_percent
        if percent is None or repeat >= MOST_REPEATS:
            return
        for cell in self._points():
            if wants_more(rates.get((cell.array.name, cell.load), []), percent):
                yield make_cell("live", cell.array, cell.workload, cell.load, repeat, self.seed)

    def _check_after(self, cell: Cell) -> None:
        if self.hosts is None and cell.target == "live" and (sentence := self._lost_target(cell.array.name)):
            raise CellFailedError(sentence)

    def _lost_target(self, subject: str) -> str | None:
        """What is to be said where a target of a subject is no longer there.

        A file that was removed can be read on by whoever has it open, and a loop device that was detached too, so the
        engine does not notice within a cell; and a file that it made itself it would make again at the next.
        """
        for position in self.members_of.get(subject, []):
            member = self.live_members[position]
            path = member.get("path")
            if path and identity_of(Path(path)) != member.get("identity"):
                return f"TARGET: '{member.get('name')}': was taken away or replaced while it was measured"
        return None

    def _failure_text(self, error: CellFailedError) -> str:
        for subject in self.subjects:
            if error.cell.startswith(f"live/{subject.name}/"):
                return self._lost_target(subject.name) or str(subject.error_at_target(error))
        return str(error)


def measure_request(
    loaded: LoadedStudy,
    cell: Cell,
    subject: ResultLine,
    members: Members,
    drive: Drive,
    *,
    hold_target_ns: int | None = None,
    amounts: Amounts | None = None,
) -> str:
    """The text of a cell as the engine takes it: a function of these alone, with sorted keys.

    ``members``: the targets, or the members of the array. ``hold_target_ns``: the target of a cell whose load is a held
    percentile. ``amounts``: warm-up and measuring; the study's if left out.
    """
    request = direct_request(loaded, cell, targets=members, quick=False, hold_target_ns=hold_target_ns)
    if amounts is not None:
        warmup, measure = (cell_limit(amount, 0) for amount in amounts)
        request = request.model_copy(update={"warmup": warmup, "measure": measure})
    if subject.engine == ARRAY:
        return text_of(
            ArrayCell(
                engine=ARRAY,
                seed=request.seed,
                sector_bytes=ARRAY_SECTOR_BYTES,
                tree=loaded.geometry.trees[subject.name],
                policy=cell_policy(loaded.study.policy),
                members=members,
                load=request.load,
                workload=request.workload,
                verify=drive.verify,
                warmup=request.warmup,
                measure=request.measure,
            )
        )
    parts = [place.span_bytes for place in subject.places]
    is_part = any(place.span != WHOLE for place in subject.places)
    spans = [Span(offset_bytes=offset, size_bytes=size) for offset, size in parts] if is_part else []
    return text_of(request.model_copy(update={**dict(drive), "spans": spans}))


def _is_whole(outcome: Outcome) -> TypeGuard[CellOutcome]:
    return isinstance(outcome, CellOutcome) and not outcome.answer.get("interrupted")


def _is_steady(rates: list[float]) -> bool:
    """Whether the last five rounds are steady."""
    last = rates[-WINDOW:]
    return len(last) == WINDOW and min(last) > 0 and steady_state(last).steady


def identity_of(path: Path) -> str | None:
    """What tells whether a path still leads to the same file or device: numbers, and of a device its size."""
    try:
        status = path.stat()
        if path.is_block_device():
            return f"{status.st_rdev}, {device_bytes('TARGET', path)} bytes"
        return f"{status.st_dev}, inode {status.st_ino}"
    except (OSError, InputError):
        return None


@contextmanager
def made_members(subjects: Sequence[ResultLine], trees: Mapping[str, Tree]) -> Iterator[dict[str, Members]]:
    """The targets of each subject as the engine takes them; files stand for directories while the context lasts.

    Plain targets have a place each; the members of an array are dealt over what is given.
    """
    places = {
        subject.name: [
            subject.places[number % len(subject.places)] for number in range(count_leaves(trees[subject.name]))
        ]
        for subject in subjects
    }
    with members_at([place for found in places.values() for place in found]) as members:
        unused = iter(members)
        yield {name: [next(unused) for _ in found] for name, found in places.items()}


@contextmanager
def members_at(places: Sequence[Place]) -> Iterator[Members]:
    """Places as the engine takes them; files stand for directories while the context lasts."""
    made = [place for place in places if place.kind == "directory"]
    with ExitStack() as files:
        unused: Iterator[Path] = iter(())
        if made:
            directories = [place.path for place in made if place.path is not None]
            words = ("TARGET", "a smaller --file-size")
            unused = iter(files.enter_context(member_files(directories, len(made), made[0].size_bytes, words)))
        yield [place.member(next(unused) if place.kind == "directory" else None) for place in places]

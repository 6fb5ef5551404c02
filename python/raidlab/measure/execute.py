"""Measure: make targets ready, bound the meter's own cost, run every subject in shuffled order, repeat until sure.

Invariants:

- What is refused is refused before anything is measured: every target is opened once beforehand.
- Only one cell runs at a time: two would measure each other.
- Whatever ends a measurement early (Ctrl-C, a target that vanishes), the outcomes yielded before stand, and the cell
  that was cut short is yielded too, marked as interrupted.
- Files made for directories are gone when the generator is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.measure.drive import Drive
from raidlab.measure.places import Place
from raidlab.measure.plan import ARRAY_SECTOR_BYTES, DIRECT, Subject
from raidlab.measure.request import NULL_BUDGET, Members, measure_request
from raidlab.measure.warm_up import Found, found_by_pilot
from raidlab.results.facts import Member, Status, Steadied
from raidlab.results.outcome import CellOutcome, Outcome
from raidlab.run.groups import unused_member
from raidlab.run.interrupt import StopFlag
from raidlab.run.members import device_bytes, member_files
from raidlab.run.progress import Progress, Silent
from raidlab.run.runner import InlineRunner, run_request
from raidlab.run.schedule import Schedule, bytes_per_s
from raidlab.run.target_facts import note_state_after, opened_member
from raidlab.stats import MOST_REPEATS, wants_more
from raidlab.stats.steady_state import MOST_ROUNDS, WINDOW, steady_state
from raidlab.study import Cell, Expansion, LoadedStudy, LoadPoint, expand, make_cell
from raidlab.study.check import count_leaves
from raidlab.study.expand import NULL, PILOT, expand_null
from raidlab.study.target import Amount
from raidlab.study.units import format_bytes

# Five rounds are a minute at least.
LEAST_ROUND_NS = 12_000_000_000
# Beyond every repeat, so that a pilot has a seed of its own.
_PILOT_REPEAT = 1_000_000


@dataclass
class Measurement:
    """A measurement under way.

    Parameters
    ----------
    loaded : LoadedStudy
        The study of the targets, from `raidlab.measure.plan`.
    subjects : list of Subject
    drive : Drive
    precision_percent : float or None
        Repeat until the 95 % interval of every throughput is narrower than this, to either side.
    with_pilot : bool
        Find the warm-up of each point by a pilot.
    until_steady : bool
        Load each point until five rounds in a row are steady, and measure then.
    progress : Progress
    stop : StopFlag
        Raised from outside, it ends the measurement.

    Attributes
    ----------
    status : str
        ``complete``, ``interrupted`` or ``failed``, once the outcomes have been taken.
    failure : str or None
    live_members : list of Member
        Facts of every target, subject by subject.
    members_of : dict
        The positions of each subject's targets in `live_members`.
    warmups : dict
        What pilots found, by subject and load.
    steadied : list of Steadied
        What the rounds before measuring came to.
    """

    loaded: LoadedStudy
    subjects: list[Subject]
    drive: Drive
    precision_percent: float | None = None
    with_pilot: bool = False
    until_steady: bool = False
    progress: Progress = field(default_factory=Silent)
    status: Status = "complete"
    failure: str | None = None
    live_members: list[Member] = field(default_factory=list)
    members_of: dict[str, list[int]] = field(default_factory=dict)
    stop: StopFlag = field(default_factory=StopFlag)
    warmups: dict[tuple[str, LoadPoint], Found] = field(default_factory=dict)
    steadied: list[Steadied] = field(default_factory=list)
    _members: dict[str, Members] = field(default_factory=dict)

    def outcomes(self) -> Generator[Outcome, None, None]:
        """Measure, and yield each outcome when it is there."""
        leaves = {name: count_leaves(tree) for name, tree in self.loaded.geometry.trees.items()}
        with made_members(self.subjects, leaves) as members:
            self._members = members
            self._make_ready()
            yield from self._null()
            yield from self._pilots()
            yield from self._steadied()
            yield from self._measure()
            note_state_after(self.live_members)

    def member_shape(self, array: str) -> tuple[int, int]:
        """The size of a subject's smallest target, and the sector its sizes are counted in."""
        sizes = [place.size_bytes for subject in self.subjects if subject.name == array for place in subject.places]
        return min(sizes), ARRAY_SECTOR_BYTES

    def _subject(self, cell: Cell) -> Subject:
        return next(subject for subject in self.subjects if subject.name == cell.array.name)

    def _make_ready(self) -> None:
        """Have the engine open, claim and fill every target, by one request to each subject."""
        directories = [place for subject in self.subjects for place in subject.places if place.kind == "directory"]
        made = [member for members in self._members.values() for member in members if member["kind"] == "file"]
        if directories:
            what = "a file" if len(made) == 1 else f"{len(made)} files"
            self.progress.note(f"filling {what} of {format_bytes(directories[0].size_bytes)}")
        for index, subject in enumerate(self.subjects):
            if self.status != "complete":
                return
            array = self.loaded.study.array[index]
            # Every worker and every target wants its share of the depth.
            point = LoadPoint("closed", depth=max(self.drive.workers, len(subject.places)))
            cell = make_cell("live", array, self.loaded.study.workload[0], point, 0, 0, "ready")
            once = (Amount(), Amount(requests=1))
            text = measure_request(self.loaded, cell, subject, self._members[subject.name], self.drive, amounts=once)
            answer = self._first(text, subject)
            if answer is not None:
                self._note_targets(subject, answer["facts"]["targets"])

    def _first(self, text: str, subject: Subject) -> dict[str, Any] | None:
        """The first request to a subject: what is wrong with its targets is the user's to know, in the user's words."""
        try:
            answer = run_request(text, lambda _share: not self.stop())
        except (CellFailedError, RefusedError) as error:
            said = in_words_of(subject, str(error))
            if isinstance(error, RefusedError):
                raise RefusedError(said) from None
            if error.kind == "unsupported":
                raise CellFailedError(said, error.kind, error.key) from None
            # Nothing has been measured: a target that cannot be opened or filled is no target.
            raise InputError.one("", said) from None
        if answer.get("stopped_by"):
            raise CellFailedError(in_words_of(subject, str(answer["stopped_by"])))
        if answer.get("interrupted"):
            self.status = "interrupted"
            return None
        return answer

    def _note_targets(self, subject: Subject, targets: list[dict[str, Any] | None]) -> None:
        first = len(self.live_members)
        self.members_of[subject.name] = list(range(first, first + len(targets)))
        for number, facts in enumerate(targets):
            place = subject.places[number % len(subject.places)]
            member = unused_member(place.kind, None) if facts is None else opened_member(facts)
            path = member.get("path")
            member["name"], member["subject"] = place.word, subject.name
            member["identity"] = identity_of(Path(path)) if path else None
            self.live_members.append(member)

    def _null(self) -> Iterator[Outcome]:
        """The same requests to targets that complete at once: what the meter itself can do, before anything else."""
        study = self.loaded.study
        plain = {subject.name: subject for subject in self.subjects if subject.engine == DIRECT}
        cells = [
            cell
            for cell in expand_null(study, seed=study.seed).cells
            if cell.array.name in plain and any(place.kind != NULL for place in plain[cell.array.name].places)
        ]
        if self.status != "complete" or not cells:
            return

        def text_of(cell: Cell, _hold_target_ns: int | None) -> str:
            subject = plain[cell.array.name]
            members = [{"kind": "null", "size_bytes": place.size_bytes} for place in subject.places]
            closed = replace(cell, load=LoadPoint("closed", depth=max(cell.load.depth, 1)))
            return measure_request(self.loaded, closed, subject, members, self.drive, amounts=NULL_BUDGET)

        yield from self._run(Expansion(NULL, tuple(cells), ()), text_of, "bounding raidlab's own cost")

    def _pilots(self) -> Iterator[Outcome]:
        """One run of each point without warm-up, to find how long a warm-up it needs."""
        study = self.loaded.study
        if self.status != "complete" or not self.with_pilot:
            return
        assert study.live is not None, "a measurement's study has [live]"
        amounts = (Amount(), study.live.measure)
        cells = tuple(
            # Other addresses than any repeat will ask for: what a pilot leaves in a cache is of no use to them.
            replace(make_cell("live", cell.array, cell.workload, cell.load, _PILOT_REPEAT, study.seed, PILOT), repeat=0)
            for cell in expand(study, "live", seed=study.seed).cells
            if cell.repeat == 0
        )

        def text_of(cell: Cell, _hold_target_ns: int | None) -> str:
            subject = self._subject(cell)
            members = self._members[subject.name]
            return measure_request(self.loaded, cell, subject, members, self.drive, amounts=amounts)

        for outcome in self._run(Expansion("live", cells, ()), text_of, "finding how long a warm-up lasts"):
            if isinstance(outcome, CellOutcome) and not outcome.answer.get("interrupted"):
                self.warmups[outcome.cell.array.name, outcome.cell.load] = found_by_pilot(outcome.answer)
            yield outcome

    def _steadied(self) -> Iterator[Outcome]:
        """Rounds of each point, uncounted, until five in a row are steady: a burst on credit is over then."""
        study = self.loaded.study
        if not self.until_steady or study.live is None:
            return
        round_ns = max(study.live.measure.duration or 0, LEAST_ROUND_NS)
        amounts = (Amount(), Amount(duration=f"{round_ns}ns"))
        for first in [cell for cell in expand(study, "live", seed=study.seed).cells if cell.repeat == 0]:
            rates: list[float] = []
            while self.status == "complete" and len(rates) < MOST_ROUNDS and not _is_steady(rates):
                seed_of = _PILOT_REPEAT + 1 + len(rates)
                cell = make_cell("live", first.array, first.workload, first.load, seed_of, study.seed, PILOT)
                cell = replace(cell, repeat=1 + len(rates))

                def text_of(cell: Cell, _hold_target_ns: int | None) -> str:
                    subject = self._subject(cell)
                    members = self._members[subject.name]
                    return measure_request(self.loaded, cell, subject, members, self.drive, amounts=amounts)

                title = f"until {first.array.name} is steady, round {len(rates) + 1}"
                done = 0
                for outcome in self._run(Expansion("live", (cell,), ()), text_of, title):
                    if isinstance(outcome, CellOutcome) and not outcome.answer.get("interrupted"):
                        rates.append(bytes_per_s(outcome.answer))
                        done += 1
                    yield outcome
                if not done:
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

    def _warmup_of(self, cell: Cell) -> Amount | None:
        """What the pilot of a point found; at depths without one, in a search, the longest of its subject's."""
        found = self.warmups.get((cell.array.name, cell.load))
        mine = [pilot.warmup_ns for (name, _), pilot in self.warmups.items() if name == cell.array.name]
        if found is None and not mine:
            return None
        return Amount(duration=f"{found.warmup_ns if found is not None else max(mine)}ns")

    def _measure(self) -> Iterator[Outcome]:
        study = self.loaded.study
        expansion = expand(study, "live", seed=study.seed)
        title = "measuring " + ", ".join(subject.name for subject in self.subjects)
        rates: dict[tuple[str, LoadPoint], list[float]] = {}
        repeat = max((cell.repeat for cell in expansion.cells), default=0)
        while expansion.cells or expansion.holds:
            if self.status != "complete":
                return
            for outcome in self._run(expansion, self._text_of, title):
                if isinstance(outcome, CellOutcome) and not outcome.answer.get("interrupted"):
                    key = (outcome.cell.array.name, outcome.cell.load)
                    rates.setdefault(key, []).append(bytes_per_s(outcome.answer))
                yield outcome
            repeat += 1
            expansion = Expansion("live", tuple(self._wanting(rates, repeat)), ())

    def _wanting(self, rates: dict[tuple[str, LoadPoint], list[float]], repeat: int) -> Iterator[Cell]:
        """One more repeat of each point whose interval is wider than asked."""
        if self.precision_percent is None or repeat >= MOST_REPEATS:
            return
        study = self.loaded.study
        for cell in expand(study, "live", seed=study.seed).cells:
            found = rates.get((cell.array.name, cell.load), [])
            if cell.repeat == 0 and wants_more(found, self.precision_percent):
                yield make_cell("live", cell.array, cell.workload, cell.load, repeat, study.seed)

    def _text_of(self, cell: Cell, hold_target_ns: int | None) -> str:
        subject = self._subject(cell)
        members = self._members[subject.name]
        live = self.loaded.study.live
        warmup = self._warmup_of(cell)
        amounts = None if warmup is None or live is None else (warmup, live.measure)
        return measure_request(
            self.loaded, cell, subject, members, self.drive, hold_target_ns=hold_target_ns, amounts=amounts
        )

    def _run(self, expansion: Expansion, text_of: Callable[[Cell, int | None], str], title: str) -> Iterator[Outcome]:
        schedule = Schedule(expansion, text_of, InlineRunner(self.stop), self.loaded.study.seed)
        self.progress.begin(title, schedule.expected_cells())
        try:
            for outcome in schedule.outcomes():
                yield outcome
                if isinstance(outcome, CellOutcome):
                    self.progress.advance()
                    self._check_still_there(outcome.cell)
        except KeyboardInterrupt:
            self.status = "interrupted"
        except CellFailedError as error:
            self.status, self.failure = "failed", self._failed(str(error))
        finally:
            self.progress.end()
        yield from schedule.leftovers()

    def _check_still_there(self, cell: Cell) -> None:
        """A file that was removed can be read on by whoever has it open, and a loop device that was detached too.

        So the engine does not notice within a cell; and a file that it made itself it would make again at the next.
        """
        for position in self.members_of.get(cell.array.name, []) if cell.target == "live" else []:
            member = self.live_members[position]
            path = member.get("path")
            if path and identity_of(Path(path)) != member.get("identity"):
                raise CellFailedError(
                    f"TARGET: '{member.get('name')}': was taken away or replaced while it was measured"
                )

    def _failed(self, message: str) -> str:
        for subject in self.subjects:
            if message.startswith(f"live/{subject.name}/"):
                return in_words_of(subject, message.partition(": ")[2])
        return message


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


def in_words_of(subject: Subject, message: str) -> str:
    """An error of the engine with the user's own name of the target in place of the engine's key.

    Examples
    --------
    >>> from raidlab.measure.places import Place
    >>> in_words_of(Subject("total", "direct", "", (Place("a", "file", 1), Place("b", "file", 1))), "targets[1]: gone")
    "TARGET: 'b': gone"
    >>> made = Subject("total", "direct", "", (Place("d", "directory", 1, path=Path("/d")),))
    >>> in_words_of(made, "targets[0].path: /d/raidlab-members-x/member-00.dat: was taken away: No such file")
    "TARGET: 'd': was taken away: No such file"
    """
    key, colon, rest = message.partition(": ")
    for name in ("targets[", "members["):
        if key.startswith(name) and colon:
            number = int(key.removeprefix(name).partition("]")[0])
            place = subject.places[number % len(subject.places)]
            return f"TARGET: '{place.word}': {_without_path(rest, place)}"
    return f"TARGET: '{subject.name}': {message}"


def _without_path(message: str, place: Place) -> str:
    """The engine names a target by its path; the user has just been told it."""
    for path in {str(place.path), str(place.path.resolve())} if place.path is not None else ():
        if place.kind == "directory" and message.startswith(f"{path}/"):
            # Of the files that raidlab made in it he knows nothing.
            message = message.partition(": ")[2] or message
        for start in (f"{path}: ", f"{path} "):
            message = message.removeprefix(start)
    return message


@contextmanager
def made_members(subjects: Sequence[Subject], leaves: dict[str, int]) -> Iterator[dict[str, Members]]:
    """The targets of each subject as the engine takes them; files stand for directories while the context lasts.

    Parameters
    ----------
    subjects : sequence of Subject
    leaves : dict
        How many members each subject has.
    """
    spots = {subject.name: _spots(subject, leaves[subject.name]) for subject in subjects}
    made = [place for found in spots.values() for place in found if place.kind == "directory"]
    if not made:
        yield {name: [place.member() for place in found] for name, found in spots.items()}
        return
    directories = [place.path for place in made if place.path is not None]
    words = ("TARGET", "a smaller --file-size")
    with member_files(directories, len(directories), made[0].size_bytes, words) as files:
        unused = iter(files)
        yield {
            name: [place.member(next(unused) if place.kind == "directory" else None) for place in found]
            for name, found in spots.items()
        }


def _spots(subject: Subject, leaves: int) -> list[Place]:
    """The place of each member: plain targets have their own, an array's members are dealt over what is given."""
    return [subject.places[number % len(subject.places)] for number in range(leaves)]

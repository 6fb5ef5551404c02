"""What can be found out about targets without a study: ``raidlab check``.

Facts are gathered as a measurement gathers them, and a few things are tried: the devices are watched while nothing is
asked of them, parts are read twice, and where writing is allowed, data of two kinds are written in turn. What it all
means is for `raidlab.analysis.checks` to say.

Adding a trial: a file with ``KEY`` and ``tried(target)``, a line in `TRIALS`, a test, and the check that reads it.

Invariants:

- Only reads, unless a block device is given up by name (``--destroy``); in a directory raidlab writes files of its own,
  which are gone afterwards. Files that are there already are only read.
- Devices are watched before anything is asked of them.
- A trial that cannot be made leaves out its facts and stops no other; one that is refused for safety ends it all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Protocol, cast

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.measure.places import Place, TargetSpec, wanted_targets
from raidlab.measure.trials import compressible_pair, flushed, read_again, read_twice, repeated_pair, watched
from raidlab.measure.trials.target import TrialTarget, read_only
from raidlab.results.facts import Machine, Member, Trials
from raidlab.run.machine_facts import MachineWatch
from raidlab.run.members import member_files
from raidlab.run.progress import Progress, Silent
from raidlab.run.runner import run_request
from raidlab.run.target_facts import opened_member
from raidlab.study.cell import ClosedLoad, DirectCell, Limit, Opaque, text_of
from raidlab.study.check import stripes_in
from raidlab.study.workload import DrawnRequests, FixedSize


class Trial(Protocol):
    """A module that tries something on a target."""

    KEY: str

    def tried(self, target: TrialTarget) -> Trials:
        """What came of it; nothing where it does not apply."""


TRIALS: tuple[Trial, ...] = (read_again, read_twice, compressible_pair, repeated_pair, flushed)


def examine(
    words: Sequence[str], destroy: Sequence[str], *, file_bytes: int, progress: Progress | None = None
) -> tuple[list[Member], Machine]:
    """Look at targets, and try what can be tried.

    ``words``: targets as ``raidlab measure`` takes them. ``destroy``: block devices that may be overwritten.
    ``file_bytes``: the size of the file made in each directory. Returns facts of each place, and of the machine before
    and after. Raises `InputError` or `RefusedError` for what is no target, or must not be touched.
    """
    told = progress or Silent()
    wanted = wanted_targets(words, destroy, writes=False, file_bytes=file_bytes)
    places = [(place, _striped_by(target)) for target in wanted for place in target.places]
    machine = MachineWatch()
    told.note("watching the devices for a second")
    idle = watched.watch([place.path for place, _ in places])
    found = []
    for (place, above), traffic in zip(places, idle, strict=True):
        told.note(f"looking at {place.word}")
        member = _examined(place)
        member["striped_by"] = above
        if place.path is not None:
            member["watched"] = traffic
        found.append(member)
    return found, machine.facts()


def _examined(place: Place) -> Member:
    with ExitStack() as made:
        file = place.path
        if place.kind == "directory" and place.path is not None:
            words = ("TARGET", "a smaller --file-size")
            file = made.enter_context(member_files([place.path], 1, place.size_bytes, words))[0]
        # The engine opens it first: what it refuses is refused before anything is tried.
        member = place.member(file if place.kind == "directory" else None)
        facts = _opened(place, member)
        facts["name"] = place.word
        if file is None:
            return facts
        is_writable = place.kind == "directory" or place.given_up
        probed = TrialTarget(file, member, place.size_bytes, facts["disks"], writable=is_writable)
        for trial in TRIALS:
            _note_outcome(trial, probed, place, facts)
        return facts


def _opened(place: Place, member: Opaque) -> Member:
    """Facts of a target, the engine's own from one request to it."""
    cell = DirectCell(
        seed=1,
        targets=[read_only(member)],
        load=ClosedLoad(depth=1),
        workload=DrawnRequests(read=1.0, size=FixedSize(bytes=4096)),
        measure=Limit(requests=1),
    )
    try:
        answer = run_request(text_of(cell))
    except RefusedError as error:
        raise error.at(f"TARGET: '{place.word}'") from None
    except CellFailedError as error:
        raise InputError.one("TARGET", error.message, value=f"'{place.word}'") from None
    if answer.get("stopped_by"):
        raise CellFailedError(f"TARGET: '{place.word}': {answer['stopped_by']}")
    return opened_member(answer["facts"]["targets"][0], place.kind)


def _note_outcome(trial: Trial, probed: TrialTarget, place: Place, facts: Member) -> None:
    try:
        facts.update(cast(Member, trial.tried(probed)))
    except RefusedError as error:
        raise error.at(f"TARGET: '{place.word}'") from None
    except (CellFailedError, OSError) as error:
        facts.setdefault("untried", {})[trial.KEY] = str(error)


def _striped_by(target: TargetSpec) -> str | None:
    """The array of a TREE@PLACE, if it stripes."""
    if target.tree is None:
        return None
    from raidlab import _core

    try:
        tree = json.loads(_core.parse_tree(target.tree))
    except _core.CellError as error:
        raise InputError.one("TARGET", str(error), value=f"'{target.word}'") from None
    return target.tree if stripes_in(tree) else None


__all__ = ["TRIALS", "examine"]

"""Which boxes a sheet is about: arrays of one run, or of several, for a buyer seldom has all boxes at once.

Invariants:

- A box is one array of one run, under a name that no other box of the sheet has.
- Runs that did not ask the same are set side by side with a warning that says what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raidlab.analysis.checks import Finding
from raidlab.analysis.metrics import Analysis
from raidlab.errors import InputError
from raidlab.results.facts import Facts

_CHECK = "side_by_side"


@dataclass(frozen=True)
class Box:
    """A box."""

    name: str
    """What the sheet calls it."""
    array: str
    """What its run calls it."""
    quiet: Analysis
    """The run that decides."""
    loaded: Analysis | None = None
    """A run while hosts and network were under load."""

    @property
    def target(self) -> str:
        """The target its run is judged on: the first."""
        return next((point.target for point in self.quiet.points if point.is_swept), "")

    @property
    def tree(self) -> str:
        """Its arrangement."""
        return next(array.volume or array.tree for array in self.quiet.run.study.array if array.name == self.array)


def boxes_of(quiet: Analysis, loaded: Analysis | None = None, *, name: str = "", array: str | None = None) -> list[Box]:
    """The boxes of a run: all its arrays, or the one that is named.

    ``name`` is what the run is of: its only array is called so, of several each with its own name behind it.
    """
    points = [point for point in quiet.points if point.is_swept]
    target = points[0].target if points else ""
    arrays = list(dict.fromkeys(point.array for point in points if point.target == target))
    if array is not None and array not in arrays:
        message = f"the run '{quiet.run.folder}' has no such array"
        raise InputError.one("--run", message, value=f"'{array}'", accepted=", ".join(arrays))
    chosen = arrays if array is None else [array]
    named = [one if not name else name if len(chosen) == 1 else f"{name}, {one}" for one in chosen]
    return [Box(called, one, quiet, loaded) for called, one in zip(named, chosen, strict=True)]


def refuse_twins(boxes: Sequence[Box]) -> None:
    """Refuse two boxes of one name."""
    names = [box.name for box in boxes]
    for name in names:
        if names.count(name) > 1:
            accepted = "NAME=RUN, each with a name of its own"
            raise InputError.one("--run", "two boxes are called so", value=f"'{name}'", accepted=accepted)


def not_alike(boxes: Sequence[Box]) -> Iterator[Finding]:
    """WARN where the runs of boxes that stand side by side did not ask the same, or not of the same machine."""
    first = boxes[0]
    for box in boxes[1:]:
        mine, other = first.quiet.run.facts, box.quiet.run.facts
        differences = [
            word
            for word, differs in (
                ("the study", mine["study"]["sha256"] != other["study"]["sha256"]),
                ("--quick", mine["quick"] != other["quick"]),
                ("the machine", _machine(mine) != _machine(other) and "live" in (first.target, box.target)),
                ("the target", first.target != box.target),
            )
            if differs
        ]
        if box.quiet is not first.quiet and differences:
            evidence = f"'{box.name}' was not asked what '{first.name}' was: {', '.join(differences)} differs."
            yield Finding(_CHECK, box.target, "WARN", evidence, "Run the same study on the same machine for each box.")


def _machine(facts: Facts) -> tuple[object, ...]:
    host = facts["host"]
    return host["cpu"], host["cpus"], host["kernel"], host["memory_kib"]

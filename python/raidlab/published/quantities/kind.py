"""What a kind of quantity is: a way to take one number from a run.

Invariants:

- A kind is a pure function of a run and of its own keys; it measures nothing.
- A reading has one value over all repeats together and one for each repeat, so that whatever is worked out from several
  readings has an interval.
- None means that the run does not tell; it is never replaced by a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from raidlab.analysis.metrics import Analysis, Point
from raidlab.results import Run
from raidlab.study import LoadPoint, Study
from raidlab.study.words import Table


class NotThereError(ValueError):
    """A measure names what the study or the run does not have."""


@dataclass(frozen=True)
class Reading:
    """A number taken from a run.

    Attributes
    ----------
    value : float
        Over all repeats together.
    each : tuple of float
        Of each repeat; empty where repeats have no value of their own.
    """

    value: float
    each: tuple[float, ...] = ()

    @classmethod
    def over(cls, value: float, each: Sequence[float | None]) -> Reading:
        """A value with those of its repeats, if every one of them has one: an interval of some would be of those."""
        known = tuple(one for one in each if one is not None)
        return cls(value, known if len(known) == len(each) else ())


# A cell that a quantity needs: array, workload, load.
Need = tuple[str, str, LoadPoint]


@dataclass(frozen=True)
class Source:
    """Where quantities are read.

    Attributes
    ----------
    analysis : Analysis
    target : str
        The target of the run.
    published : pathlib.Path
        What the study printed.
    """

    analysis: Analysis
    target: str
    published: Path

    @property
    def run(self) -> Run:
        """The run."""
        return self.analysis.run

    @cached_property
    def points(self) -> dict[tuple[str, str], list[Point]]:
        """The points of each array and workload."""
        found: dict[tuple[str, str], list[Point]] = {}
        for point in self.analysis.points:
            if point.target == self.target:
                found.setdefault((point.array, point.workload), []).append(point)
        return found

    def points_of(self, array: str, workload: str) -> list[Point]:
        """The points of an array under a workload.

        Raises
        ------
        NotThereError
            When the study has no such array or workload.
        """
        study = self.run.study
        for word, name, known in (("array", array, study.array), ("workload", workload, study.workload)):
            if name not in {part.name for part in known}:
                raise NotThereError(f"the study has no {word} '{name}'")
        return self.points.get((array, workload), [])


@dataclass(frozen=True)
class Kind:
    """A kind of quantity.

    Attributes
    ----------
    kind : str
        Its name in ``quantities.toml``, which is its file's.
    title : str
        What it takes, in a few words.
    keys : type
        What may be written beside ``kind``.
    is_run : bool
        Whether its value comes from what was simulated or measured.
    read : callable
        ``read(keys, source)``.
    needs : callable
        ``needs(keys, study)``: the cells it reads; None where that is only known once they have been run.
    """

    kind: str
    title: str
    keys: type[Table]
    is_run: bool
    read: Callable[[Any, Source], Reading | None]
    needs: Callable[[Any, Study], set[Need] | None] = lambda _keys, _study: set()

    def check(self, keys: Mapping[str, Any]) -> Table:
        """The keys of one measure, checked."""
        return self.keys.model_validate(keys)

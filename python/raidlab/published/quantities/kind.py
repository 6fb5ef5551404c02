"""What a kind of quantity is: a way to take one number from a run.

Invariants:

- A kind is a pure function of a run and of its own keys; it measures nothing.
- A reading has one value over all repeats together and one for each repeat, so that whatever is worked out from several
  readings has an interval. What each repeat has is what it adds to the whole (`stats/jackknife.py`), also of what is
  worked out: the extreme of one repeat is noise.
- None means that the run does not tell; it is never replaced by a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raidlab.analysis.metrics import METRICS, Analysis, Metric, Point
from raidlab.results import Run
from raidlab.stats.jackknife import pseudo_values
from raidlab.study import LoadPoint, Study
from raidlab.study.expression import Operand
from raidlab.study.words import Name, Table

if TYPE_CHECKING:
    from raidlab._core import DeviceFacts
    from raidlab.results.facts import Device

_METRICS = {metric.kind: metric for metric in METRICS}


class NotThereError(ValueError):
    """A measure names what the study or the run does not have."""


class WrongKeyError(NotThereError):
    """The keys of a measure are not those of its kind."""

    def __init__(self, kind: str, key: str, message: str) -> None:
        super().__init__(f"{kind}: {key}: {message}")
        self.key, self.message = key, message


class PointKeys(Table):
    """What a measure says that speaks of one array under one workload."""

    array: Name
    """Which array."""
    workload: Name
    """Which workload."""


@dataclass(frozen=True)
class Reading:
    """A number taken from a run."""

    value: float
    """Over all repeats together."""
    each: tuple[float, ...] = ()
    """As each repeat adds to it, so that their mean has an interval; empty where repeats have no value of their own."""
    is_served: bool = True
    """Whether something completed in every repeat."""

    def times(self, factor: float) -> Reading:
        """It in another unit."""
        return replace(self, value=factor * self.value, each=tuple(factor * one for one in self.each))

    @classmethod
    def over(cls, value: float, each: Sequence[float | None]) -> Reading:
        """A value with those of its repeats, if every one of them has one: an interval of some would be of those."""
        known = tuple(one for one in each if one is not None)
        return cls(value, known if len(known) == len(each) else ())


# A cell that a quantity needs: array, workload, load.
Need = tuple[str, str, LoadPoint]


@dataclass(frozen=True)
class Source:
    """Where quantities are read."""

    analysis: Analysis
    target: str
    """The target of the run."""
    published: Path
    """What the study printed."""

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

    def device_facts(self, device: Device) -> DeviceFacts:
        """What the engine says of a modelled device of the run."""
        from raidlab import _core

        try:
            return _core.device_facts(json.dumps(device))
        except _core.CellError as error:
            raise NotThereError(f"the run's device is none that this engine knows: {error}") from None

    def points_of(self, array: str, workload: str) -> list[Point]:
        """The points of an array under a workload, both of the study."""
        study = self.run.study
        for word, name, known in (("array", array, study.array), ("workload", workload, study.workload)):
            if name not in {part.name for part in known}:
                raise NotThereError(f"the study has no {word} '{name}'")
        return self.points.get((array, workload), [])


def metric_named(kind: str) -> Metric:
    """A metric, if there is one of that name."""
    if kind not in _METRICS:
        raise NotThereError(f"there is no metric '{kind}'")
    return _METRICS[kind]


def over_repeats(points: Sequence[Point], take: Callable[[Sequence[Point]], float | None]) -> Reading | None:
    """A number of some points, of all repeats together and as each adds to it; None where there is no such number."""
    value = take(points)
    if value is None:
        return None
    repeats = min(len(point.rows) for point in points)
    found = Reading.over(value, pseudo_values(repeats, lambda kept: take([point.of_repeats(kept) for point in points])))
    return replace(found, is_served=all(point.is_served for point in points))


def each_of(repeats: Sequence[Mapping[str, Operand]], take: Callable[[Mapping[str, Operand]], float]) -> list[float]:
    """What is worked out from numbers, as each repeat adds to it, given what the numbers are in each."""
    found = pseudo_values(len(repeats), lambda kept: float(take(_together([repeats[one] for one in kept]))))
    return [one for one in found if one is not None]


def _together(repeats: Sequence[Mapping[str, Operand]]) -> dict[str, Operand]:
    """Every number's mean over some repeats; a text is the same in all."""
    return {
        name: one if isinstance(one, str) else math.fsum(float(each[name]) for each in repeats) / len(repeats)
        for name, one in repeats[0].items()
    }


def repeats_of(readings: Mapping[str, Reading]) -> list[dict[str, float]]:
    """What readings are in each repeat; empty where not every one of them that varies has as many repeats."""
    counts = {len(reading.each) for reading in readings.values() if reading.each}
    if len(counts) != 1:
        return []
    return [
        {name: reading.each[index] if reading.each else reading.value for name, reading in readings.items()}
        for index in range(counts.pop())
    ]


@dataclass(frozen=True)
class Kind:
    """A kind of quantity."""

    kind: str
    """Its name in ``quantities.toml``, which is its file's."""
    title: str
    """What it takes, in a few words."""
    keys: type[Table]
    """What may be written beside ``kind``."""
    read: Callable[[Any, Source], Reading | None]
    """``read(keys, source)``."""
    needs: Callable[[Any, Study], set[Need] | None] = lambda _keys, _study: set()
    """``needs(keys, study)``: the cells it reads; None where that is only known once they have been run."""
    is_run: bool = True
    """Whether its value comes from what was simulated or measured."""
    is_of_requests: bool = True
    """Whether it tells nothing of a repeat in which no request completed: that was too short for a rate."""
    metric_key: str = "metric"
    """The key that says which metric it takes."""
    metric: str = ""
    """The metric that it reckons in another way: whatever was fitted to either was fitted to both."""

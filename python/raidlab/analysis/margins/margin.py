"""What a margin is: how far one thing may move before another array is first.

Invariant: a margin names where the order turns, who is first beyond, and how that is known. Where nothing turns within
what was looked at, there is no margin; none is made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from raidlab.study.units import format_bytes, format_number

Axis = Literal["read", "size", "depth", "rate", "response", "chunk", "price", "seeds"]
How = Literal["swept", "reckoned", "simulated", "chance"]
AXES: tuple[Axis, ...] = get_args(Axis)
WAYS: tuple[How, ...] = get_args(How)
# Where two ways tell of one axis, the one that assumes least is shown: it was run, or it was run between what was run.
_SUREST: tuple[How, ...] = ("simulated", "swept", "reckoned", "chance")
SHOWN = 2
# What chance reverses less often than that is not told at first sight.
_LIKELY_PERCENT = 1.0


@dataclass(frozen=True)
class Margin:
    """Along one axis, from where on another array is first."""

    axis: Axis
    """``read`` in percent, ``size`` and ``chunk`` in bytes, ``depth`` in requests, ``rate`` in requests a second,
    ``response`` in ms at the percentile that is held, ``price`` as a multiple; ``seeds`` is moved by running again."""
    now: float | None
    """Where the answer holds; None of ``seeds``."""
    turns_at: float
    """From where on it does not. Of ``seeds`` the probability, in percent, that a new run reverses first and second."""
    low: float | None
    high: float | None
    """The 95 % interval of that place; None of single runs."""
    instead: str
    """Who is first beyond."""
    how: How
    percentile: float | None = None
    """Of ``response``: the percentile that is held."""

    @property
    def is_above(self) -> bool:
        """Whether the order turns above where it is now."""
        return self.now is None or self.turns_at > self.now

    @property
    def distance(self) -> float:
        """How far off it is, to be set beside margins of other axes: as a share of what there is, or by its ratio."""
        if self.now is None:
            return math.inf
        if self.axis == "read":
            return abs(self.turns_at - self.now) / 100
        return abs(math.log(self.turns_at / self.now)) if min(self.turns_at, self.now) > 0 else math.inf

    def condition(self, its: str = "its") -> str:
        """What would have to be so, and how that is known, for a sentence that begins with "unless"."""
        told: list[str] = [self.how]
        if self.low is not None and self.high is not None:
            low, high = _number(self.axis, self.low), _number(self.axis, self.high)
            told += [f"{low} to {high}"] if low != high else []
        if self.axis not in ("price", "seeds"):
            told.append(f"then {self.instead}")
        return f"{self._said(its)} ({', '.join(told)})"

    def _said(self, its: str) -> str:
        at, above = _with_unit(self.axis, self.turns_at), self.is_above
        match self.axis:
            case "read":
                return f"reads {'exceed' if above else 'fall below'} {at}"
            case "size":
                return f"requests are {'larger' if above else 'smaller'} than {at}"
            case "depth":
                return f"the queue is {'deeper' if above else 'shallower'} than {at}"
            case "rate":
                return f"{'more' if above else 'fewer'} than {at} arrive"
            case "response":
                which = f"p{self.percentile:g}" if self.percentile is not None else "the response time"
                return f"{which} {'may exceed' if above else 'must stay below'} {at}"
            case "chunk":
                return f"chunks are {'larger' if above else 'smaller'} than {at}"
            case "price":
                return f"{its} disks cost {at} times those of {self.instead}"
            case "seeds":
                return f"chance puts {self.instead} first, as in {_chance(self.turns_at)} new runs"


@dataclass(frozen=True)
class BestMargins:
    """The margins of one best: of who is first under a workload on a target."""

    target: str
    workload: str
    first: str
    second: str
    """The nearest behind it."""
    turns: tuple[Margin, ...]
    """The nearest first; what chance may do comes last."""
    level: tuple[str, ...] = ()
    """Who is level with it; empty where it is best alone."""
    beside: str = ""
    """The reference, where the best is that of the others; empty where it is one of those that the best is before."""

    @property
    def sentence(self) -> str:
        """The nearest margins in a sentence; empty where there are none."""
        return self._sentence(self._shown)

    @property
    def more(self) -> str:
        """Those that the sentence leaves out; empty where it has all."""
        return self._sentence([turn for turn in self.turns if turn not in self._shown])

    @property
    def _shown(self) -> list[Margin]:
        """The nearest; what chance does only where it does it."""
        telling = [turn for turn in self.turns if turn.axis != "seeds" or turn.turns_at >= _LIKELY_PERCENT]
        return telling[:SHOWN]

    def _sentence(self, turns: Sequence[Margin]) -> str:
        if not turns:
            return ""
        said = [turn.condition("their" if self.level else "its") for turn in turns]
        ored = said[0] if len(said) == 1 else f"{', '.join(said[:-1])}, or {said[-1]}"
        place = f"best beside {self.beside}" if self.beside else "first"
        if not self.level:
            return f"{self.first} stays {place} unless {ored}."
        return f"{', '.join((self.first, *self.level[:-1]))} and {self.level[-1]} stay {place} unless {ored}."


def nearest_first(turns: Iterable[Margin]) -> tuple[Margin, ...]:
    """One margin for each axis and side: the surest way, then the nearest. Those of chance come last."""
    best: dict[tuple[str, bool], Margin] = {}
    for turn in turns:
        key = (turn.axis, turn.is_above)
        if key not in best or _rank(turn) < _rank(best[key]):
            best[key] = turn
    return tuple(sorted(best.values(), key=lambda turn: turn.distance))


def _rank(turn: Margin) -> tuple[int, float]:
    return _SUREST.index(turn.how), turn.distance


def _number(axis: Axis, value: float) -> str:
    match axis:
        case "read":
            return f"{value:.0f}" if 1 <= value <= 99 else f"{value:.1f}"
        case "size" | "chunk":
            return format_bytes(round(value)) if value >= 1 else f"{value:g} B"
        case "depth":
            return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
        case _:
            return format_number(value)


_UNITS = {"read": " %", "rate": " requests/s", "response": " ms"}


def _with_unit(axis: Axis, value: float) -> str:
    return f"{_number(axis, value)}{_UNITS.get(axis, '')}"


def _chance(percent: float) -> str:
    if percent < 0.1:
        return "fewer than 1 of 1,000"
    return f"{percent:.0f} of 100" if percent >= 1 else f"{percent * 10:.0f} of 1,000"

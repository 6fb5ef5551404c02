"""What a closed form is: a formula with its source, where it applies, its parameters, a simulation to hold it against.

Invariants:

- A form is a pure function of numbers. It refuses parameters outside its range with a sentence; it never extrapolates
  silently.
- `cases` say where a form is compared with the simulator: parameters of the form beside the cell that means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from raidlab.results.answer import CellAnswer
from raidlab.study.cell import Opaque


@dataclass(frozen=True)
class Argument:
    """One argument of a form."""

    name: str
    """With its unit at the end."""
    meaning: str
    default: float | None = None
    """None where it must be given."""


@dataclass(frozen=True)
class Case:
    """One point of the grid on which a form is held against the simulator."""

    label: str
    parameters: dict[str, float]
    """Of the form."""
    cell: Opaque
    """The simulator's cell that means the same."""
    observe: Callable[[CellAnswer], float]
    """Takes the engine's answer, gives the figure that the form predicts."""


@dataclass(frozen=True)
class Form:
    """A closed form."""

    kind: str
    """Its name, which is its key on the command line."""
    title: str
    """What it says."""
    unit: str
    """Of its value."""
    source: str
    """Paper and section."""
    applies: str
    """Where it may be used, in a sentence."""
    parameters: tuple[Argument, ...]
    compute: Callable[..., float]
    """Takes the parameters by name, gives the value. Raises ValueError with a sentence outside its range."""
    cases: Callable[[], Iterable[Case]] = tuple
    """The grid on which it is held against the simulator; empty for rules."""

    def value(self, **given: float) -> float:
        """The form's value; an unknown or missing parameter, or one outside the form's range, is a `ValueError`."""
        known = {parameter.name: parameter.default for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise ValueError(f"'{name}' is no parameter of {self.kind}; accepted: {', '.join(known)}")
        merged = {**known, **given}
        missing = [name for name, value in merged.items() if value is None]
        if missing:
            raise ValueError(f"{self.kind} needs {', '.join(missing)}")
        return float(self.compute(**merged))

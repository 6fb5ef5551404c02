"""Parameters of a study's original hardware, each with where it comes from: read, and put into the study's target.

``devices/original/NAME.parameters.toml`` holds them; ``"$name"`` in ``[original]`` stands for one.

Invariants:

- Every parameter says whether it is published, fitted or assumed, and why; a fitted one says to what.
- A study with its parameters put in is an ordinary study: nothing behind this file knows of ``$``.
- A time is rounded to whole nanoseconds and a size to whole bytes, as everywhere in a study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from raidlab.reading import Plain
from raidlab.study.explain import truths_for_numbers
from raidlab.study.find import did_you_mean, find_parameters, parameter_names
from raidlab.study.places import Place, written
from raidlab.study.table_file import read_named
from raidlab.study.words import Line, Prose, Table, is_simulated

Unit = Literal["ns", "us", "ms", "s", "bytes", "KiB", "MiB", "MB/s", "1"]
_NS_OF = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_BYTES_OF = {"bytes": 1, "KiB": 1024, "MiB": 1024**2}
# Nanoseconds and bytes are counted in 64 bits.
_BEYOND = 2.0**63
MARK = "$"


class Parameter(Table):
    """One parameter."""

    value: float
    unit: Unit
    status: Literal["published", "fitted", "assumed"]
    why: Prose
    to: list[Line] = Field(default=[])
    """What a fitted one was fitted to: ids of claims, names of tables."""

    @model_validator(mode="after")
    def _is_a_quantity(self) -> Self:
        # Written so that what is no number at all is refused too.
        if not abs(self.value * self._factor) < _BEYOND:
            raise ValueError(f"{self.value:g} {self.unit} is more than raidlab counts to")
        return self

    @property
    def _factor(self) -> int:
        """How many ns or bytes the unit has; 1 of what is neither."""
        return (_NS_OF | _BYTES_OF).get(self.unit, 1)

    @property
    def text(self) -> str | float:
        """What stands in the study in its place: a time or size with its unit, else the number, whole if it is."""
        if self.unit in _NS_OF:
            whole = round(self.value * self._factor)
            return f"{whole}ns" if whole else 0
        if self.unit in _BYTES_OF:
            return round(self.value * self._factor)
        return int(self.value) if self.unit == "1" and self.value.is_integer() else self.value


class ParameterFile(Table):
    """The file."""

    name: Line
    description: Prose = ""
    parameter: dict[str, Parameter]


@dataclass(frozen=True)
class Hardware:
    """The parameters of one target."""

    name: str = ""
    """What the hardware is called."""
    file: Path | None = None
    """Where they were read; None where the study names no file."""
    parameters: dict[str, Parameter] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str | float]:
        """What each stands for."""
        return {name: parameter.text for name, parameter in self.parameters.items()}

    def moved(self, values: Mapping[str, float]) -> Hardware:
        """The same with other values for some parameters."""
        moved = {
            name: parameter.model_copy(update={"value": values[name]}) if name in values else parameter
            for name, parameter in self.parameters.items()
        }
        return replace(self, parameters=moved)


def load_parameters(name: str, beside: Path) -> Hardware:
    """Read a file of parameters by name or by path relative to the study file; a `ValueError` has a sentence."""
    file = find_parameters(name, beside)
    if file is None:
        raise ValueError(f"there is no such file of parameters{did_you_mean(name, parameter_names())}")
    document = read_named(file)
    try:
        read = ParameterFile.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{file.name}: {place}: {first['msg']}") from None
    for mistake in truths_for_numbers(ParameterFile, document):
        raise ValueError(f"{file.name}: {written(mistake.place)}: {mistake.message}; accepted: {mistake.accepted}")
    lacking = [name for name, one in read.parameter.items() if (one.status == "fitted") != bool(one.to)]
    if lacking:
        raise ValueError(f"{file.name}: parameter.{lacking[0]}: `to` goes with status = 'fitted', and only with it")
    return Hardware(read.name, file, dict(read.parameter))


def put_in(document: Mapping[str, Plain], texts: Mapping[str, Mapping[str, str | float]]) -> Any:
    """A copy of a study's document with what each target's parameters stand for in the place of their names."""
    return {key: _put(value, texts.get(key, {})) if is_simulated(key) else value for key, value in document.items()}


def names_in(value: Plain, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every ``$name`` in a document, with its place."""
    if isinstance(value, str) and value.startswith(MARK):
        yield place, value[1:]
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from names_in(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from names_in(item, (*place, index))


def _put(value: Plain, texts: Mapping[str, str | float]) -> Plain:
    if isinstance(value, str) and value.startswith(MARK):
        return texts.get(value[1:], value)
    if isinstance(value, dict):
        return {key: _put(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_put(item, texts) for item in value]
    return value

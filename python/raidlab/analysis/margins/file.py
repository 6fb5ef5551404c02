"""``margins.json`` of a run folder: all margins, as shown, and those that were simulated for it.

Invariants:

- What is simulated is kept; all else is worked out anew from the run whenever the file is written.
- A file that somebody else may have written is held to its types before anything of it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from raidlab.analysis.margins.margin import Axis, BestMargins, How, Margin, nearest_first
from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.reading import json_value
from raidlab.results import Run

FILE = "margins.json"
_VERSION = 1
_MOST_BYTES = 1 << 22
_Text = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Number = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Turn(_Strict):
    axis: Axis
    now: _Number | None
    turns_at: _Number
    low: _Number | None
    high: _Number | None
    instead: _Text
    how: How
    percentile: Annotated[float, Field(ge=0, le=100)] | None = None


class _Best(_Strict):
    target: _Text
    workload: _Text
    first: _Text
    second: _Text
    level: Annotated[list[_Text], Field(max_length=1000)]
    beside: _Text
    turns: Annotated[list[_Turn], Field(max_length=1000)]


class _File(_Strict):
    version: int
    margins: Annotated[list[_Best], Field(max_length=10_000)]


def kept_margins(run: Run) -> list[BestMargins]:
    """What the run's folder has; nothing where there is no such file."""
    path = run.folder / FILE
    try:
        with run.directory() as folder:
            text = folder.read(FILE, _MOST_BYTES)
        found = _File.model_validate(json_value(text))
    except FileNotFoundError:
        return []
    except (OSError, ValidationError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else _first_mistake(error)
        message = f"is no file of margins: {said}"
        accepted = "what 'raidlab margins' wrote, or none"
        raise InputError.one(FILE, message, value=f"'{path}'", accepted=accepted) from None
    if found.version != _VERSION:
        raise InputError.one(FILE, "is of another version", value=f"{found.version}", accepted=f"{_VERSION}")
    return [
        BestMargins(
            one.target,
            one.workload,
            one.first,
            one.second,
            tuple(Margin(**dict(turn)) for turn in one.turns),
            tuple(one.level),
            one.beside,
        )
        for one in found.margins
    ]


def _first_mistake(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error)


def with_simulated(found: Sequence[BestMargins], kept: Sequence[BestMargins]) -> list[BestMargins]:
    """Margins of a run, with those that were simulated for the same first array."""
    simulated = {
        (one.target, one.workload, one.first): [turn for turn in one.turns if turn.how == "simulated"] for one in kept
    }
    return [
        replace(one, turns=nearest_first([*simulated.get((one.target, one.workload, one.first), ()), *one.turns]))
        for one in found
    ]


def keep_margins(margins: Sequence[BestMargins], folder: Directory) -> None:
    """Write the file; an `OSError` is the caller's to explain."""
    folder.replace(FILE, f"{margins_json(margins)}\n".encode())


def margins_json(margins: Sequence[BestMargins]) -> str:
    """The file's text."""
    return json.dumps({"version": _VERSION, "margins": [asdict(one) for one in margins]}, indent=2)

"""The ground the study schema stands on: strict tables, sizes, times, names.

Invariants:

- Unknown keys are errors, so that a misspelt key never silently leaves its default in force.
- Values never change after validation.
- Every key carries its meaning as a docstring, from which the reference page is made.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from raidlab.study.units import parse_bytes, parse_time_ns

Bytes = Annotated[int, BeforeValidator(parse_bytes)]
TimeNs = Annotated[int, BeforeValidator(parse_time_ns)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=60)]


class Table(BaseModel):
    """A table of the study file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def kind_from_text(value: Any) -> Any:
    """Let ``address = "uniform"`` stand for ``address = { kind = "uniform" }``."""
    return {"kind": value} if isinstance(value, str) else value


def size_from_text(value: Any) -> Any:
    """Let ``size = "8KiB"`` stand for ``size = { kind = "fixed", bytes = "8KiB" }``."""
    return {"kind": "fixed", "bytes": value} if isinstance(value, str | int | float) else value

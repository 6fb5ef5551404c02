"""The ground the study schema stands on: strict tables, sizes, times, names.

Invariants:

- Unknown keys are errors, so that a misspelt key never silently leaves its default in force.
- Numbers are finite, and counts have bounds far beyond what makes sense: what could only exhaust the machine is
  refused in the file.
- Text goes to terminals, pages and figures as it is, so it holds no control characters.
- Values never change after validation.
- Every key carries its meaning as a docstring, from which the reference page is made.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from raidlab.study.units import parse_bytes, parse_moment_ns, parse_time_ns

# As many requests as the engine has in flight at once (`raidlab_load::MOST_IN_FLIGHT`).
MOST_IN_FLIGHT = 2**16
# Days of simulation, and weeks of measuring.
MOST_REQUESTS = 10**12
MOST_REPEATS = 1000
# Direction marks reorder what stands around them; the last two are line breaks.
_UNSEEN = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029}


def without_control(text: str, allowed: str = "") -> str:
    """Refuse text with characters that act on a terminal instead of showing.

    Examples
    --------
    >>> without_control("RAID 5, 64 KiB")
    'RAID 5, 64 KiB'
    """
    for character in text:
        code = ord(character)
        if character not in allowed and (code < 0x20 or 0x7F <= code < 0xA0 or code in _UNSEEN):
            raise ValueError(f"has a control character (U+{code:04X})")
    return text


def _prose(text: str) -> str:
    return without_control(text, "\n\t")


Bytes = Annotated[int, BeforeValidator(parse_bytes)]
TimeNs = Annotated[int, BeforeValidator(parse_time_ns)]
# A time after something else, which may be none.
MomentNs = Annotated[int, BeforeValidator(parse_moment_ns)]
Share = Annotated[float, Field(ge=0, le=1)]
# Of money, watts and rates: far beyond what any machine costs.
Positive = Annotated[float, Field(gt=0, le=1e12)]
Depth = Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT, strict=True)]
Requests = Annotated[int, Field(ge=1, le=MOST_REQUESTS, strict=True)]
Repeats = Annotated[int, Field(ge=1, le=MOST_REPEATS, strict=True)]
Few = Annotated[int, Field(ge=1, le=2**16, strict=True)]
# A member of an array, in the order of its tree.
Leaf = Annotated[int, Field(ge=0, lt=2**16, strict=True)]
Rate = Annotated[float, Field(gt=0, le=1e9)]
Line = Annotated[str, AfterValidator(without_control)]
Prose = Annotated[str, AfterValidator(_prose)]
# A device's name or file, or its keys, which are the engine's to judge.
DeviceOf = Line | dict[str, Any]
ENGINES = ("sim", "original", "emulated", "live")
# Those whose time is the machine's, and the others, which are simulated.
ON_THE_CLOCK = ("emulated", "live")
SIMULATED = ("sim", "original")
OFF_LIVE = (*SIMULATED, "emulated")
Engines = Annotated[list[Literal["sim", "original", "emulated", "live"]], Field(min_length=1)]
Name = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(without_control)]


class Table(BaseModel):
    """A table of the study file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


def kind_from_text(value: Any) -> Any:
    """Let ``address = "uniform"`` stand for ``address = { kind = "uniform" }``."""
    return {"kind": value} if isinstance(value, str) else value


def list_from_one(value: Any) -> Any:
    """Let one table stand for a list with nothing else in it."""
    return [value] if isinstance(value, dict) else value


def size_from_text(value: Any) -> Any:
    """Let ``size = "8KiB"`` stand for ``size = { kind = "fixed", bytes = "8KiB" }``."""
    return {"kind": "fixed", "bytes": value} if isinstance(value, str | int | float) else value


def is_simulated(target: str) -> bool:
    """Whether a target runs on the virtual clock, so that its figures depend on no machine."""
    return target in SIMULATED

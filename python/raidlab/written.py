"""What is written as JSON: records of a run, and answers of which most are only put into a file.

Invariants:

- What a `WrittenAnswer` holds is put into files as it is, and read only by who asks for what is in it.
- Importing this costs next to nothing: the simulator's workers write their answers with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def json_text(record: Mapping[str, object], *, indent: int | None = None) -> str:
    """A record as JSON: on one line, or indented with its keys in order."""
    if indent is None:
        return _LINE.encode(record)
    return json.dumps(record, default=_plain, indent=indent, sort_keys=True)


@dataclass(frozen=True)
class WrittenAnswer:
    """An answer to a cell that ran to its end, as whoever simulated it wrote it."""

    text: bytes

    @classmethod
    def of(cls, answer: Mapping[str, object]) -> WrittenAnswer:
        """Write an answer."""
        return cls(json_text(answer).encode())


def _plain(value: Any) -> Any:
    """NumPy values as plain ones, for JSON; the library is not imported to ask whether they are."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"cannot be written to JSON: {type(value)}")
    return value.tolist()


# Made once: `json.dumps` makes one a call, which takes half of the time of a short record.
_LINE = json.JSONEncoder(default=_plain, separators=(",", ":"))

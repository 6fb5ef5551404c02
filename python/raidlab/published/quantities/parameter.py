"""A parameter of the hardware, as its file gives it."""

from __future__ import annotations

from raidlab.published.quantities.kind import Kind, NotThereError, Reading, Source
from raidlab.study.words import Line, Table


class Keys(Table):
    """What a measure of this kind says."""

    name: Line
    """Which parameter; its value is in the file's unit."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The number."""
    known = source.run.facts.get("hardware", {}).get(source.target, {})
    if not known:
        # Real members have no parameters.
        return None
    if keys.name not in known:
        raise NotThereError(f"the hardware has no parameter '{keys.name}'")
    return Reading(float(known[keys.name]["value"]))


KIND = Kind("parameter", "a parameter of the hardware", Keys, read, is_run=False)

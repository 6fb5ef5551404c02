"""Quantities: numbers taken from a run for comparison with what a study published, one file a kind.

Adding one: a file named after its kind with a `KIND`, a line in `KINDS`, a test.

Invariants:

- Kinds belong to no study: what is particular to a study stands in its ``quantities.toml`` and ``columns.toml``.
- A kind reads a run and never measures.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from raidlab.errors import InputError
from raidlab.published.quantities import (
    access_count,
    device,
    equal_amounts,
    file_size_line,
    held,
    metric,
    parameter,
    plan,
    printed,
    rebuild,
    regression,
    runs,
    second_tool,
    settles,
    sizes,
    stage,
    stream_rate,
    sweep,
    synchronisation,
    tree,
    where,
)
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source, WrongKeyError
from raidlab.study.explain import truths_for_numbers
from raidlab.study.find import nearest
from raidlab.study.mapping import QUANTITIES, Quantities
from raidlab.study.table_file import read_table
from raidlab.study.words import Table

_ROOMS = (
    metric,
    sweep,
    where,
    regression,
    file_size_line,
    stream_rate,
    equal_amounts,
    stage,
    held,
    rebuild,
    access_count,
    plan,
    tree,
    device,
    synchronisation,
    parameter,
    printed,
    sizes,
    runs,
    settles,
    second_tool,
)
KINDS: dict[str, Kind] = {room.KIND.kind: room.KIND for room in _ROOMS}


def checked_measure(measure: Mapping[str, object]) -> tuple[Kind, Table]:
    """The kind of a measure, and its keys as that kind knows them."""
    # What it is called (`as`) is the reader's, and no kind's.
    keys = {key: value for key, value in measure.items() if key != "as"}
    kind = KINDS.get(str(keys.pop("kind", "")))
    if kind is None:
        named = str(measure.get("kind"))
        raise NotThereError(f"a measure's kind is '{named}'; accepted: {nearest(named, KINDS)}")
    try:
        found = kind.keys.model_validate(keys)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise WrongKeyError(kind.kind, ".".join(map(str, first["loc"])), first["msg"]) from None
    for mistake in truths_for_numbers(kind.keys, keys):
        raise WrongKeyError(kind.kind, ".".join(map(str, mistake.place)), mistake.message)
    return kind, found


def check_measures(folder: Path) -> None:
    """Refuse a ``quantities.toml`` with a measure of no kind, or with keys that its kind has not, by its line."""
    quantities, reporter = read_table(folder / QUANTITIES, Quantities)
    for name, measure in quantities.measure.items():
        try:
            checked_measure(measure)
        except WrongKeyError as error:
            reporter.add(("measure", name, *error.key.split(".")), error.message)
        except NotThereError as error:
            reporter.add(("measure", name), str(error))
    reporter.complain()


def read_measure(measure: Mapping[str, object], source: Source) -> Reading | None:
    """A measure's number; None where the run does not tell, a `NotThereError` where it names what is not there."""
    kind, keys = checked_measure(measure)
    found = kind.read(keys, source)
    return found if found is not None and (found.is_served or not kind.is_of_requests) else None


def read_planned(place: str, measure: Mapping[str, object], source: Source) -> Reading | None:
    """The number of a measure that stands in a file of the user's; None also where what it names is not there.

    A kind that is none, and a key that its kind has not, are errors with their place in the file.
    """
    if str(measure.get("kind", "")) not in KINDS:
        wrong, accepted = "is no kind of measure", nearest(str(measure.get("kind")), KINDS)
        raise InputError.one(place, wrong, value=f"'{measure.get('kind')}'", accepted=accepted)
    try:
        return read_measure(measure, source)
    except WrongKeyError as error:
        raise InputError.one(f"{place}.{error.key}", error.message) from None
    except NotThereError:
        return None


__all__ = [
    "KINDS",
    "Need",
    "NotThereError",
    "Reading",
    "Source",
    "check_measures",
    "checked_measure",
    "read_measure",
    "read_planned",
]

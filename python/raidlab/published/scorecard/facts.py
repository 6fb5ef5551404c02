"""What a sheet is given besides runs: what is entered by hand, and what machines on a network measured.

Invariant: nothing here is measured or guessed; what is not entered is shown as not entered.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from raidlab.errors import InputError
from raidlab.reading import json_value, read_text
from raidlab.study.table_file import read_table
from raidlab.study.words import Line, Name, Positive, Table

# What a sheet asks for, in its order, with what is meant.
ASKED = {
    "configuration": "configuration as found",
    "set_up": "ease and time of set-up",
    "format": "time to format and to make file systems",
    "administration": "administration, such as quotas",
    "capacity_gb": "usable capacity, GB",
    "price": "price",
    "priced_on": "date of the price",
    "currency": "currency of the price",
    "notes": "notes",
}


class BoxFacts(Table):
    """One box: ``[box.NAME]``."""

    configuration: Line | None = None
    """As found: controllers, cache, disks, settings away from their defaults."""
    set_up: Line | None = None
    """How easy it was, and how long it took."""
    format: Line | None = None
    """How long formatting and making file systems took."""
    administration: Line | None = None
    """How it is administered: quotas, monitoring."""
    capacity_gb: Positive | None = None
    """Usable, in GB of 10^9 bytes."""
    price: Positive | None = None
    """What it costs."""
    priced_on: Line | None = None
    """When the price held, such as ``2026-11-21``."""
    currency: Line | None = None
    """What the price is in."""
    notes: Line | None = None
    """Anything else."""
    published: dict[Name, Positive] = {}
    """The seller's own figure for each test, in the sheet's unit."""


class FactsFile(Table):
    """The file."""

    box: dict[Name, BoxFacts]
    """By the name that the study gives the box."""


def load_facts(file: Path) -> dict[str, BoxFacts]:
    """Read what was entered by hand."""
    read, _ = read_table(file, FactsFile)
    return dict(read.box)


@with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False))
class NetworkFacts(TypedDict):
    """A row of ``raidlab measure network --json``, as far as a sheet reads it."""

    test: str
    work: str
    total_mb_s: float
    low: float | None
    high: float | None


def load_network(text: str) -> tuple[str, list[NetworkFacts]]:
    """A box and the rows of ``raidlab measure network --json``, from ``BOX=FILE``."""
    box, equals, name = text.rpartition("=")
    accepted = "BOX=FILE, the file as `raidlab measure network --json` printed it"
    if not equals or not box:
        raise InputError.one("--network", "names no box", value=f"'{text}'", accepted=accepted)
    try:
        return box, TypeAdapter(list[NetworkFacts]).validate_python(json_value(read_text(Path(name)))["results"])
    except OSError as error:
        raise InputError.one("--network", f"cannot be read: {error.strerror}", value=f"'{name}'") from None
    except (KeyError, TypeError, ValueError):
        raise InputError.one("--network", "holds no such results", value=f"'{name}'", accepted=accepted) from None

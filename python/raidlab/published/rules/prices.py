"""The user's prices: a TOML file with the names that ``choice.toml`` of the study has under ``[price]``.

Invariants:

- A price that the file does not name stays the study's, and is told to be.
- They are kept in the run's folder (``prices.toml``), so that a report can be written again with them.
"""

from __future__ import annotations

import os
from pathlib import Path

from raidlab.directory import Directory
from raidlab.errors import InputError, OutputError
from raidlab.published.rules.plan import ChoicePlan
from raidlab.reading import read_bytes
from raidlab.study.find import did_you_mean
from raidlab.study.table_file import read_table
from raidlab.study.words import Line, Positive, Table

PRICES = "prices.toml"


class Prices(Table):
    """The file."""

    currency: Line = ""
    """What they are in; the study's when left out."""
    dated: Line
    """When they held, such as ``2026-11``: prices without a date say nothing."""
    price: dict[str, Positive]
    """By the names of the study's own."""


def load_prices(file: Path, plan: ChoicePlan) -> Prices:
    """Read a file of prices."""
    prices, reporter = read_table(file, Prices)
    for name in prices.price:
        if name not in plan.price:
            message = f"is no price of the study{did_you_mean(name, plan.price)}"
            reporter.add(("price", name), message, accepted=", ".join(plan.price))
    reporter.complain()
    return prices


def keep_prices(folder: Path, file: Path) -> None:
    """Keep a file of prices with a run."""
    content = read_bytes(file)
    try:
        with Directory.open(folder) as run:
            run.replace(PRICES, content)
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def kept_prices(folder: Path, plan: ChoicePlan) -> Prices | None:
    """The prices that a run's folder keeps; None where it keeps none."""
    try:
        with Directory.open(folder) as run:
            os.close(run.open_file(PRICES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError.one(PRICES, str(error.strerror), value=f"'{folder / PRICES}'", accepted="a file") from None
    return load_prices(folder / PRICES, plan)

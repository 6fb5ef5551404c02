"""What figures would have been predicted as without their table: written by the fit, shown beside the fitted values.

``left-out.toml`` in the study's folder has a value for each figure by its id. A figure that was fitted to says
little of a model; as the parameters of the other tables have it, it is a prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path

from raidlab.directory import Directory
from raidlab.errors import InputError, OutputError
from raidlab.published.compare.row import PublishedRow
from raidlab.reading import read_text, toml

FILE = "left-out.toml"
_HEAD = "# Written by `raidlab study fit --leave-one-out --write`: each fitted figure as the rest alone predicts it.\n"


def read_left_out(folder: Path) -> Mapping[str, float]:
    """The values by id; none where the fit has left no table out."""
    file = folder / FILE
    if not file.is_file():
        return {}
    try:
        found = toml(read_text(file))
    except (OSError, ValueError) as error:
        raise InputError.one(str(file), f"cannot be read: {error}", accepted="what raidlab study fit wrote") from None
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float) and isfinite(value)}


def write_left_out(rows: Iterable[PublishedRow], folder: Path) -> Path:
    """Write what came out of each figure when its group was left out."""
    text = _HEAD + "".join(f'"{row.id}" = {row.value:.4g}\n' for row in rows if row.value is not None)
    try:
        with Directory.open(folder) as opened:
            return opened.replace(FILE, text.encode())
    except OSError as error:
        raise OutputError(f"{folder / FILE}: cannot be written: {error.strerror}") from None

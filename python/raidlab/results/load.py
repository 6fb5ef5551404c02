"""Read a run folder back: frames, facts, and the study it ran.

Invariants:

- Reading changes nothing, except that a run that was killed is finished first from its parts.
- Frames have the columns of `tables`, in their order.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.results.tables import SCHEMA_VERSION, TABLES
from raidlab.study import Study


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    folder : pathlib.Path
    facts : dict
        What ``run.json`` says: study text and hash, seed, host, version, command, times.
    """

    folder: Path
    facts: dict[str, Any]

    @cached_property
    def cells(self) -> pl.DataFrame:
        """One row a cell."""
        return self._frame("cells")

    @cached_property
    def histograms(self) -> pl.DataFrame:
        """One row a histogram bucket."""
        return self._frame("histograms")

    @cached_property
    def members(self) -> pl.DataFrame:
        """One row a cell and member."""
        return self._frame("members")

    @cached_property
    def devices(self) -> pl.DataFrame:
        """One row a cell and device below its targets, by the kernel's counters."""
        return self._frame("devices")

    @cached_property
    def stations(self) -> pl.DataFrame:
        """One row a cell and station of the simulator."""
        return self._frame("stations")

    @cached_property
    def snapshots(self) -> pl.DataFrame:
        """One row a cell and second of the run's clock."""
        return self._frame("snapshots")

    @cached_property
    def holds(self) -> pl.DataFrame:
        """One row a response-time target and repeat."""
        return self._frame("holds")

    @cached_property
    def checks(self) -> pl.DataFrame:
        """One row a cell and check the engine made itself."""
        return self._frame("checks")

    @cached_property
    def study(self) -> Study:
        """The study, as it was when it ran."""
        return Study.model_validate(tomllib.loads(self.facts["study"]["text"]))

    def live_members(self, array: str | None = None) -> list[dict[str, Any]]:
        """Facts of the live members, or of those that one array runs on.

        The arrays of a study share their members, from the first; the targets of a measurement may have their own.
        """
        members: list[dict[str, Any]] = self.facts["live_members"]
        positions = self.facts.get("members_of", {}).get(array)
        return members if positions is None else [members[position] for position in positions]

    def tree(self, array: str) -> dict[str, Any]:
        """The tree of an array."""
        return dict(self.facts["trees"][array])

    def histogram(self, cells: list[int], operation: str = "all", time: str = "response") -> Histogram:
        """The merged histogram of some cells.

        Parameters
        ----------
        cells : list of int
            Their numbers.
        operation : str
            ``all``, ``read`` or ``write``.
        time : str
            ``response`` or ``service``.
        """
        operations = ("read", "write") if operation == "all" else (operation,)
        keys = [(cell, part, time) for cell in cells for part in operations]
        return Histogram.merged(self._by_cell[key] for key in keys if key in self._by_cell)

    @cached_property
    def _by_cell(self) -> dict[tuple[int, str, str], Histogram]:
        return dict(self._histograms())

    def _histograms(self) -> Iterator[tuple[tuple[int, str, str], Histogram]]:
        parts = self.histograms.partition_by(["cell", "operation", "time"], as_dict=True, maintain_order=True)
        for (cell, operation, time), part in parts.items():
            histogram = Histogram(part["value_ns"].to_numpy(), part["count"].to_numpy())
            yield (int(cell), str(operation), str(time)), histogram

    def sql(self, query: str) -> pl.DataFrame:
        """Ask the run's tables with SQL: ``cells``, ``histograms``, ``members``, ``holds`` and the others are views.

        Parameters
        ----------
        query : str
            DuckDB's SQL, such as ``SELECT "array", sum(all_bytes) FROM cells GROUP BY "array"`` (``array`` and
            ``group`` are words of SQL and want quotes).
        """
        import duckdb

        with duckdb.connect() as connection:
            for name in TABLES:
                file = str(self.folder / f"{name}.parquet").replace("'", "''")
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{file}')")
            cursor = connection.execute(query)
            names = [column[0] for column in cursor.description or []]
            return pl.DataFrame(cursor.fetchall(), schema=names, orient="row")

    def _frame(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.folder / f"{name}.parquet")


def load_run(folder: str | Path) -> Run:
    """Open a run folder.

    Parameters
    ----------
    folder : str or pathlib.Path

    Returns
    -------
    Run

    Raises
    ------
    InputError
        When it is no run folder, or one of another version.
    """
    path = Path(folder)
    file = path / "run.json"
    if not file.is_file():
        raise InputError.one(
            "run", "is not a run folder (no run.json)", value=f"'{path}'", accepted="a folder in runs/"
        )
    facts = json.loads(file.read_text(encoding="utf-8"))
    if facts.get("schema_version") != SCHEMA_VERSION:
        raise InputError.one(
            "run",
            f"was written with result schema {facts.get('schema_version')}",
            value=f"'{path}'",
            accepted=f"schema {SCHEMA_VERSION}",
        )
    missing = [name for name in TABLES if not (path / f"{name}.parquet").is_file()]
    if missing:
        raise InputError.one("run", f"lacks {missing[0]}.parquet", value=f"'{path}'", accepted="a complete run folder")
    return Run(path, facts)

"""Read a run folder back: frames, facts, and the study it ran.

Invariants:

- Reading changes nothing: a run that was killed is shown from its parts, in memory (``--resume`` finishes it).
- A folder may be a stranger's: in it no link is followed, and only regular files are read.
- A table is what `run.json` says was written; where it says nothing (older folders), what is there is believed.
- Frames have the columns of `tables`, in their order, whatever version wrote them (`migrate`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import polars as pl

from raidlab.directory import Directory, Identity
from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.reading import json_value, toml
from raidlab.results.answer import HoldRow
from raidlab.results.damage import MOST_TABLE_BYTES, StoredTable, check_parts, check_rows, damaged, first_line
from raidlab.results.facts import Facts, Member, WrongFactError, checked
from raidlab.results.finish import unfinished_run
from raidlab.results.foreign import ForeignRow, kept_foreign
from raidlab.results.histograms import Histograms
from raidlab.results.migrate import (
    OLDEST_VERSION,
    added_since,
    is_known,
    is_younger,
    migrated_facts,
    with_nulls,
)
from raidlab.results.parts import MOST_FACTS_BYTES, PARTS
from raidlab.results.query import answer, may_ask_for
from raidlab.results.records import RECORDS, frame_of, opened_records, view_of
from raidlab.results.tables import SCHEMA_VERSION, TABLES
from raidlab.study import Study
from raidlab.study.parameters import put_in
from raidlab.study.schema import Array
from raidlab.study.tree import Tree
from raidlab.written import json_text

# The counts of a row by column; None where they were not made.
Counts = dict[str, int | None]


def _table(meaning: str) -> cached_property[pl.DataFrame]:
    """One of a run's tables, as an attribute of its name that is read when it is first asked for."""

    def frame(run: Run) -> pl.DataFrame:
        return run._frame(str(table.attrname))

    frame.__doc__ = meaning
    table = cached_property(frame)
    return table


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    facts : Facts
        What ``run.json`` says: study text and hash, seed, host, version, command, times.
    identity : tuple of int, optional
        What tells its folder from others; None for a run that has none.
    tables : mapping of polars.DataFrame, optional
        Its tables, where they are not in the folder.
    """

    folder: Path
    facts: Facts
    identity: Identity | None = None
    tables: Mapping[str, pl.DataFrame] | None = None

    def directory(self) -> Directory:
        """Its folder, open; the one that was read, whatever may have taken its place meanwhile.

        Raises
        ------
        OSError
        """
        return Directory.open(self.folder, self.identity)

    cells = _table("One row a cell.")
    histograms = _table("One row a histogram bucket.")
    members = _table("One row a cell and member.")
    devices = _table("One row a cell and device below its targets, by the kernel's counters.")
    kernel_threads = _table("One row a cell and name of the kernel's own threads: their time on a processor. Live.")
    stations = _table("One row a cell and station of the simulator.")
    snapshots = _table("One row a cell and second of the run's clock.")
    snapshot_histograms = _table(
        "One row a cell, second and bucket of the response times of that second; live, and where members fail."
    )
    holds = _table("One row a response-time target and repeat.")
    accesses = _table(
        "One row a cell of whole files and name of an access: how many, and how long they took; simulator only."
    )
    file_sizes = _table(
        "One row a cell of whole files and size of a file: how many were read, and their time; simulator only."
    )
    streams = _table("One row a cell and stream: what it moved, in what time, how often its tape stopped.")
    records = _table("One row a cell whose requests were kept: which file holds them, and how many.")
    rebuilds = _table("One row a cell and member that failed or was rebuilt: when, and how far.")
    scrubs = _table("One row a cell and scrub: when, and what it found.")
    checks = _table("One row a cell and check the engine made itself.")

    @cached_property
    def foreign(self) -> tuple[ForeignRow, ...]:
        """Results of others that are kept beside this run's."""
        return tuple(kept_foreign(self.folder))

    @cached_property
    def study(self) -> Study:
        """The study, as it was when it ran, with the parameters that its hardware had then."""
        hardware = self.facts.get("hardware", {})
        texts = {target: {name: one["text"] for name, one in known.items()} for target, known in hardware.items()}
        document = put_in(toml(self.facts["study"]["text"]), texts)
        trees = self.facts.get("array_trees", {})
        volumes = self.facts.get("volumes", {})
        for array in document["array"]:
            # An array that stands already has no tree of the study's.
            if array["name"] in trees:
                array["tree"] = trees[array["name"]]
            if array["name"] in volumes:
                array["volume"] = volumes[array["name"]]
        return Study.model_validate(document)

    @cached_property
    def standing(self) -> dict[str, Array]:
        """The arrays that stand already, by name."""
        return {array.name: array for array in self.study.array if array.volume is not None}

    def live_members(self, array: str | None = None) -> list[Member]:
        """Facts of the live members, or of those that one array runs on.

        The arrays of a study share their members, from the first, unless they lie over groups; the targets of a
        measurement may have their own.

        Parameters
        ----------
        array : str, optional
            The array's name; all members without it.
        """
        members = self.facts["live_members"]
        positions = self.facts.get("members_of", {}).get(array or "")
        # A run that was cut short may have got no further than to say which members its arrays would have.
        return members if positions is None else [members[one] for one in positions if one < len(members)]

    def tree(self, array: str) -> Tree:
        """The tree of an array.

        Parameters
        ----------
        array : str
            The array's name in the study.
        """
        return self.facts["trees"][array]

    def histogram(self, cells: list[int], operation: str = "all", time: str = "response") -> Histogram:
        """The merged histogram of some cells.

        Parameters
        ----------
        cells : list of int
            Their numbers.
        operation : str
            ``all``, ``read`` or ``write``.
        time : str
            ``response``, ``service``, or ``gap`` (of all operations together).
        """
        operations = ("all", "read", "write") if operation == "all" else (operation,)
        return self._histograms.merged(tuple(cells), operations, time)

    @cached_property
    def station_rows(self) -> dict[tuple[int, str], Counts]:
        """What each station of each cell did."""
        return {(row["cell"], row.pop("station")): row for row in self.stations.iter_rows(named=True)}

    def hold_rows(self, target: str, workload: str) -> list[HoldRow]:
        """The response-time targets under a workload, of all arrays and repeats.

        Parameters
        ----------
        target : str
            Where the load ran: ``sim``, ``live`` or ``emulated``.
        workload : str
            The workload's name in the study.
        """
        mine = self.holds.filter((pl.col("target") == target) & (pl.col("workload") == workload))
        return cast(list[HoldRow], mine.to_dicts())

    def of_cells(self, table: str, cells: Sequence[int]) -> pl.DataFrame:
        """The rows of a table that are of some cells, without going through those of all others.

        Parameters
        ----------
        table : str
            Its name, as in `raidlab.results.tables.TABLES`.
        cells : sequence of int
            Their numbers.
        """
        rows: pl.DataFrame = getattr(self, table)
        if table not in self._stretches:
            # The rows of a cell lie together, unless somebody has put them otherwise.
            of_table = self._stretches[table] = {}
            lengths = rows["cell"].rle().struct.unnest()
            begin = 0
            for length, cell in lengths.select("len", "value").iter_rows():
                of_table.setdefault(cell, []).append((begin, length))
                begin += length
        known = self._stretches[table]
        parts = [rows.slice(*one) for one in sorted(one for cell in set(cells) for one in known.get(cell, ()))]
        return parts[0] if len(parts) == 1 else pl.concat(parts) if parts else rows.clear()

    @cached_property
    def _stretches(self) -> dict[str, dict[int, list[tuple[int, int]]]]:
        """By table and cell: where its rows begin, and how many they are."""
        return {}

    @cached_property
    def _histograms(self) -> Histograms:
        """The histograms by what they are of, without the table as a whole: a sweep has tens of millions of rows."""
        name = "histograms"
        table = None if self.tables is not None else self._stored(name, in_parts=True)
        if table is None:
            return Histograms([self.histograms], lambda _number: self.histograms)
        file, parts = self._file(name), map(table.part, range(table.parts))
        return Histograms(check_parts(file, name, parts, self.study, [*self.facts["devices"]], self.cells), table.part)

    def requests(self, cells: Sequence[int] | None = None) -> pl.DataFrame:
        """The rows of single requests, in the order in which they ended in their cell.

        Parameters
        ----------
        cells : sequence of int, optional
            Numbers of cells; all whose requests were kept without it.

        Returns
        -------
        polars.DataFrame
            ``cell``, ``arrival_ns``, ``start_ns``, ``end_ns`` (from the beginning of the cell), ``volume``,
            ``operation``, ``offset_bytes``, ``bytes``, ``failed`` and ``measured``: whether it ended in the measuring
            window, so that the figures of its cell count it. No row where the run kept none.

        Raises
        ------
        InputError
            For a file that is missing or was changed.
        """
        listed = self.records if cells is None else self.records.filter(pl.col("cell").is_in(list(cells)))
        with self._opened_records(listed) as files:
            return frame_of(self.folder / RECORDS, files)

    @contextmanager
    def _opened_records(self, listed: pl.DataFrame) -> Iterator[dict[int, Path]]:
        folder = self.folder / RECORDS
        with ExitStack() as opened:
            try:
                files = {}
                if not listed.is_empty():
                    files = opened.enter_context(opened_records(opened.enter_context(self.directory()), listed))
            except OSError as error:
                raise damaged(folder, f"cannot be read: {error.strerror}") from None
            except ValueError as error:
                raise damaged(folder, str(error)) from None
            yield files

    def sql(self, query: str) -> pl.DataFrame:
        """Ask the run's tables with SQL: ``cells``, ``histograms``, ``members``, ``holds`` and the others are views.

        The rows of single requests are one more, ``requests``.

        Parameters
        ----------
        query : str
            One SELECT in DuckDB's SQL, such as ``SELECT "array", sum(all_bytes) FROM cells GROUP BY "array"``
            (``array`` and ``group`` are words of SQL and want quotes).

        Raises
        ------
        InputError
            For anything but a SELECT, and for a table that is damaged.
        duckdb.Error
            For SQL that DuckDB refuses.
        """
        # A sweep has tens of millions of rows in a table that few ask for.
        frames = {
            name: getattr(self, name) if may_ask_for(name, query) else pl.DataFrame(schema=schema)
            for name, schema in TABLES.items()
        }
        frames |= {name: frame.cast(pl.String) for name, frame in self._worked_out(query).items()}
        # Only who asks for them has the files of requests opened and held against their digests.
        listed = self.records if may_ask_for("requests", query) else self.records.clear()
        with self._opened_records(listed) as files:
            return answer(query, frames, view_of(files), [*files.values()])

    def _worked_out(self, query: str) -> Mapping[str, pl.DataFrame]:
        """Tables of words that are not in the folder but follow from it, as far as a query may ask for them; here none.

        Whoever knows more of a run than its tables (`checks.run_with_findings`) adds them.
        """
        return {}

    def _frame(self, name: str) -> pl.DataFrame:
        if self.tables is not None:
            return self.tables[name]
        table = self._stored(name)
        if table is None:
            return pl.DataFrame(schema=TABLES[name])
        frame = table.whole()
        self._check_rows(self._file(name), name, frame)
        return with_nulls(frame, name)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def _stored(self, name: str, *, in_parts: bool = False) -> StoredTable | None:
        """A table of the folder, not decoded yet; None where the version that wrote had none."""
        content = self._content(name)
        later = added_since(self.facts["schema_version"])[name]
        return None if content is None else StoredTable(self._file(name), name, content, later, in_parts=in_parts)

    def _check_rows(self, file: Path, name: str, frame: pl.DataFrame) -> None:
        check_rows(file, name, frame, self.study, [*self.facts["devices"]], None if name == "cells" else self.cells)

    def _content(self, name: str) -> bytes | None:
        """The bytes of a table, which are those that were written; None where the version that wrote had none."""
        file = self._file(name)
        written = self.facts.get("tables", {}).get(name)
        try:
            with self.directory() as place:
                if is_younger(name, self.facts["schema_version"]) and not place.has(file.name):
                    return None
                content = place.read(file.name, MOST_TABLE_BYTES)
        except OSError as error:
            raise damaged(file, f"cannot be read: {error.strerror}") from None
        if written is not None and hashlib.sha256(content).hexdigest() != written["sha256"]:
            raise damaged(file, "was changed since it was written (its SHA-256 is not that of run.json)")
        return content


def load_run(folder: str | Path) -> Run:
    """Open a run folder."""
    if not isinstance(folder, str | os.PathLike):
        raise InputError.one("run", "is no path", value=f"{folder!r}", accepted="the folder of a run")
    path = Path(folder)
    try:
        with Directory.open(path) as place:
            # Parts beside `run.json` are those of a run that could go on.
            is_unfinished = place.has(PARTS) and not place.has("run.json")
            run = _unfinished(place) if is_unfinished else _finished(place)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_run(path) from None
    except OSError as error:
        raise InputError.one("run", f"cannot be read: {error.strerror}", value=f"'{path}'") from None
    _check_study(path / "run.json", run)
    return run


def _check_study(file: Path, run: Run) -> None:
    """Refuse a folder whose study is not the one that ran, here and not in the midst of a page."""
    facts = run.facts
    if hashlib.sha256(facts["study"]["text"].encode()).hexdigest() != facts["study"]["sha256"]:
        raise damaged(file, "holds another study than the one that ran (its SHA-256 differs)")
    try:
        study = run.study
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(file, f"has no study that can be read: {first_line(error)}") from None
    for array in study.array:
        if array.name not in facts["trees"]:
            raise damaged(file, f"has no tree of the array '{array.name}'")


def _unfinished(place: Directory) -> Run:
    """A run that was killed, with its tables in memory; its folder stays as it is."""
    facts, tables = unfinished_run(place.path)
    file = place.path / PARTS
    run = Run(place.path, _checked(file, json.loads(json_text(facts))), place.identity, tables)
    _check_study(file, run)
    for name, frame in tables.items():
        run._check_rows(file, name, frame)
    return run


def _finished(place: Directory) -> Run:
    if not str(place.path) or not place.has("run.json"):
        raise _no_run(place.path)
    facts = facts_in(place)
    version = facts["schema_version"]
    missing = [name for name in TABLES if not place.has(f"{name}.parquet") and not is_younger(name, version)]
    if missing:
        accepted = "a complete run folder"
        raise InputError.one("run", f"lacks {missing[0]}.parquet", value=f"'{place.path}'", accepted=accepted)
    return Run(place.path, facts, place.identity)


def facts_in(place: Directory) -> Facts:
    """What ``run.json`` of a run folder says."""
    file = place.path / "run.json"
    try:
        return _checked(file, json_value(place.read(file.name, MOST_FACTS_BYTES).decode()))
    except OSError as error:
        raise damaged(file, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise damaged(file, f"is not JSON: {first_line(error)}") from None


def _no_run(folder: Path) -> InputError:
    return InputError.one(
        "run", "is not a run folder (no run.json)", value=f"'{folder}'", accepted="the folder of a run"
    )


def _checked(file: Path, read: object) -> Facts:
    """The facts of a run, if they are those of a run; with those that its version did not have."""
    if not isinstance(read, dict):
        raise damaged(file, "is not a table of facts")
    version = read.get("schema_version")
    if not is_known(version):
        raise InputError.one(
            "run",
            f"was written with result schema {version}",
            value=f"'{file.parent}'",
            accepted=f"schema {OLDEST_VERSION} to {SCHEMA_VERSION}",
        )
    try:
        return checked(migrated_facts(read, version))
    except WrongFactError as error:
        raise damaged(file, str(error)) from None

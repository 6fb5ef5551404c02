"""Histograms of a long table: read part by part, they are what the whole table has, and no less is looked at."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from raidlab.api import write_report
from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.results import Run, damage, histograms, load_run
from raidlab.results.histograms import Histograms
from raidlab.results.rows import rows_of
from raidlab.results.tables import TABLES, TIMES

ROWS = 50
OPERATIONS = ("all", "read", "write")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "ROWS_A_GROUP", ROWS)


@pytest.fixture
def run(small_run: Run, tmp_path: Path) -> Run:
    return load_run(shutil.copytree(small_run.folder, tmp_path / "run"))


def _expected(table: pl.DataFrame, cells: list[int], operation: str, time: str) -> list[tuple[int, int]]:
    """The rows of all of it, added up by Polars."""
    mine = table.filter(
        pl.col("cell").is_in(cells)
        & (pl.col("time") == time)
        & (pl.lit(operation == "all") | (pl.col("operation") == operation))
    )
    return mine.group_by("value_ns").agg(pl.col("count").sum()).sort("value_ns").rows()


def _rows(histogram: Histogram) -> list[tuple[int, int]]:
    return list(zip(histogram.value_ns.tolist(), histogram.count.tolist(), strict=True))


@pytest.mark.usefixtures("small_parts")
def test_they_are_those_of_the_whole_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "_PARTS_AT_HAND", 2)
    table, cells = run.histograms, run.cells["cell"].to_list()
    assert table.height > 5 * ROWS
    for asked in ([cells[0]], [cells[-1]], cells, cells[::-2], []):
        for operation in OPERATIONS:
            for time in (*TIMES, "gap"):
                found = _rows(run.histogram(asked, operation, time))
                assert found == _expected(table, asked, operation, time), (asked, operation, time)


def test_rows_that_lie_apart_are_one_histogram() -> None:
    drawn = np.random.default_rng(7)
    rows = 400
    columns = {
        "cell": drawn.integers(3, size=rows),
        "operation": drawn.choice(OPERATIONS, rows),
        "time": drawn.choice([*TIMES, "gap"], rows),
        "value_ns": drawn.integers(50, size=rows),
        "count": drawn.integers(1, 9, size=rows),
    }
    table = pl.DataFrame(columns).cast(dict(TABLES["histograms"]))
    parts = [table.slice(begin, ROWS) for begin in range(0, rows, ROWS)]
    read = Histograms(parts, parts.__getitem__)
    for time in (*TIMES, "gap"):
        assert _rows(read.merged((0, 2), ("read", "all", "write"), time)) == _expected(table, [0, 2], "all", time)


@pytest.mark.usefixtures("small_parts")
def test_what_memory_has_no_room_for_at_once_is_reported_all_the_same(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_report(run).read_bytes()
    monkeypatch.setattr(damage, "_MEMORY_SHARE", 10**9)
    monkeypatch.setattr(damage, "_LEAST_DECODED_BYTES", 50 * run.histograms.height)
    again = load_run(run.folder)
    with pytest.raises(InputError, match="is too large"):
        _ = again.histograms
    # A part is a group of rows, and raidlab wrote this small table as one.
    _write(run.folder, run.histograms)
    assert write_report(load_run(run.folder)).read_bytes() == page


def _write(folder: Path, table: pl.DataFrame) -> None:
    """Put a table in the place of a folder's, in groups of as many rows as a part has."""
    table.write_parquet(folder / "histograms.parquet", row_group_size=ROWS)
    facts = (folder / "run.json").read_text(encoding="utf-8")
    (folder / "run.json").write_text(facts.replace('"tables"', '"tables_before"'), encoding="utf-8")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("row", [ROWS - 1, ROWS, 2 * ROWS + 7])
def test_values_ascend_from_part_to_part_too(run: Run, row: int) -> None:
    same = pl.lit(1, dtype=pl.UInt32).alias("cell"), pl.lit("read").alias("operation"), pl.lit("gap").alias("time")
    values = pl.int_range(pl.len()).cast(pl.UInt64) * 10
    table = run.histograms.with_columns(*same, values.alias("value_ns"))
    _write(run.folder, table)
    assert load_run(run.folder).histogram([1], "read", "gap").value_ns.size == table.height
    index = pl.int_range(pl.len())
    changed = pl.when(index == row + 1).then(pl.lit(row * 10)).otherwise(pl.col("value_ns")).alias("value_ns")
    _write(run.folder, table.with_columns(changed.cast(pl.UInt64)))
    with pytest.raises(InputError, match="do not ascend"):
        load_run(run.folder).histogram([0])


@pytest.mark.usefixtures("small_parts")
def test_counts_are_held_to_what_can_be_over_all_parts(run: Run) -> None:
    most = pl.lit((1 << 63) // (2 * ROWS), dtype=pl.UInt64).alias("count")
    _write(run.folder, run.histograms.with_columns(most))
    with pytest.raises(InputError, match="counts more requests than there can be"):
        load_run(run.folder).histogram([0])


def test_a_row_has_what_its_dictionary_would(run: Run) -> None:
    rows = rows_of(run.cells)
    assert [dict(row) for row in rows] == run.cells.to_dicts()
    assert {type(value) for row in rows for value in row.values()} <= {int, float, str, bool, type(None)}
    assert rows[0].get("no such column") is None

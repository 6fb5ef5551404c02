"""Tables that are put together part by part: the same bytes however they came, within bounded memory."""

from __future__ import annotations

import io
import os
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from raidlab.directory import Directory
from raidlab.results import growing
from raidlab.results.growing import GrowingTable, parquet_of
from raidlab.results.tables import TABLES


def _rows(count: int) -> pl.DataFrame:
    columns = {"cell": range(count), "thread": [f"kworker {one % 7}" for one in range(count)], "cpu_ns": [5] * count}
    return pl.DataFrame(columns, schema=TABLES["kernel_threads"])


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "ROWS_A_GROUP", 100)


@pytest.mark.parametrize("count", [0, 1, 100, 101, 1234])
@pytest.mark.parametrize("part", [1, 70, 100, 450])
def test_the_bytes_do_not_depend_on_the_parts(tmp_path: Path, count: int, part: int) -> None:
    rows = _rows(count)
    with Directory.open(tmp_path) as place:
        table = GrowingTable(place, "kernel_threads")
        for begin in range(0, count, part):
            table.add(rows.slice(begin, part))
        assert table._rows.height <= 100, "the others wait on disk"
        with place.replacing("table.parquet") as file:
            table.write_to(file)
        table.close()
    assert [file.name for file in tmp_path.iterdir()] == ["table.parquet"]
    content = (tmp_path / "table.parquet").read_bytes()
    assert_frame_equal(pl.read_parquet(io.BytesIO(content)), rows)
    assert content == parquet_of(rows)


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path) -> None:
    with Directory.open(tmp_path) as place, Path("/dev/full").open("wb", buffering=0) as full:
        table = GrowingTable(place, "kernel_threads")
        table.add(_rows(1000))
        with pytest.raises(OSError, match=os.strerror(28)):
            table.write_to(full)
        table.close()

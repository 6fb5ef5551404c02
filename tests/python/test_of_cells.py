"""The rows of some cells: those that a search through the whole table finds, in any order that somebody gave them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from raidlab.api import run_study
from raidlab.results import Run


@pytest.mark.parametrize("is_shuffled", [False, True], ids=["as written", "shuffled"])
def test_they_are_what_a_search_finds(is_shuffled: bool, small_study: Path, tmp_path: Path) -> None:
    run = run_study(small_study, quick=True, out=tmp_path / "runs")
    members = run.members.sample(fraction=1, shuffle=True, seed=1) if is_shuffled else run.members
    known: Run = replace(run)
    known.__dict__["members"] = members
    numbers = run.cells["cell"].to_list()
    for cells in ([numbers[0]], [numbers[-1], numbers[0], numbers[1]], numbers, [], [max(numbers) + 1]):
        found = known.of_cells("members", cells)
        assert found.equals(members.filter(pl.col("cell").is_in(cells)))
        assert found.height == sum(run.members["cell"].is_in(cells))
    assert known.of_cells("streams", numbers).is_empty()


def test_the_table_is_gone_through_once(small_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_study(small_study, quick=True, out=tmp_path / "runs")
    counted: list[int] = []
    monkeypatch.setattr(pl.Series, "rle", lambda self, whole=pl.Series.rle: counted.append(1) or whole(self))
    for cell in run.cells["cell"]:
        run.of_cells("members", [cell])
    assert run.cells.height > 1 and len(counted) == 1

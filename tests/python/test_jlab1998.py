"""The acceptance test of Jefferson Lab: its claims and its sheet are judged alike, and what it concludes can fail."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from raidlab.api import analyse, run_study
from raidlab.published.compare import compare_run
from raidlab.published.scorecard import boxes_of, load_plan, make_sheet
from raidlab.results import Run
from raidlab.results.tables import TABLES
from raidlab.study import load_study
from raidlab.study.expression import read
from raidlab.study.mapping import load_mapping

WINNER, BASELINE = "UltraSCSI winner", "software RAID"
BOXES = (WINNER, "SCSI II box", "write-through box", "write-first box")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A quick run of its boxes."""
    return run_study(load_study("jlab1998"), on=["original"], out=tmp_path_factory.mktemp("runs"), quick=True)


def _measures(ids: list[str], array: str) -> list[dict[str, object]]:
    """What the claims take of an array, without naming it."""
    quantities = load_mapping(load_study("jlab1998").file).quantities
    names = {name for one in ids for name in read(quantities.claim[one].holds or "").names}
    found = [dict(quantities.measure[name]) for name in sorted(names)]
    return [{**one, "array": "", "as": ""} for one in found if one["array"] == array]


def test_what_the_sheet_requires_is_what_the_claims_require() -> None:
    """A headline of claims that hold cannot stand above a sheet that disqualifies."""
    plan = load_plan(load_study("jlab1998").file)
    required = [{**test.measure, "array": "", "as": ""} for test in plan.test if test.kind == "qualifying"]
    claimed = _measures(["j98-staging-rate", "j98-qualifying-rate"], WINNER)
    assert sorted(map(str, map(_sorted, required))) == sorted(map(str, map(_sorted, claimed)))
    assert {test.at_least for test in plan.test if test.kind == "qualifying"} == {10}
    # The baseline has no file server, so the tests over a network are not asked of it.
    shared = [
        {**one.measure, "array": "", "as": ""} for one in plan.test if one.kind != "beside" and one.network is None
    ]
    for array in (*BOXES, BASELINE):
        claimed = _measures(["j98-baseline-software-raid"], array)
        assert sorted(map(str, map(_sorted, shared))) == sorted(map(str, map(_sorted, claimed)))


def _sorted(measure: dict[str, object]) -> list[tuple[str, object]]:
    return sorted(measure.items())


@pytest.mark.slow
def test_claims_and_sheet_say_the_same(run: Run) -> None:
    analysis, loaded = analyse(run), load_study("jlab1998")
    found = compare_run(analysis, load_mapping(loaded.file))
    rows = {row.id: row for row in found.rows}
    assert not [f"{row.id}: {row.note}" for row in rows.values() if row.verdict == "error"]
    sheet = make_sheet(load_plan(loaded.file), boxes_of(analysis))
    winner = next(box for box in sheet.boxes if box.box == WINNER)
    held = rows["j98-staging-rate"].verdict == rows["j98-qualifying-rate"].verdict == "holds"
    assert (winner.qualifies == "passes") == held
    # The conclusion asks both, and counts; it is fitted, as the winner's limits are apart because it qualified.
    assert {rows[name].kind for name in ("j98-staging-rate", "j98-qualifying-rate")} == {"given"}
    assert [row.kind for row in found.conclusions if row.id == "winner-qualifies"] == ["fitted"]
    behind = {box.box: (box.against_baseline or ([], 0))[0] for box in sheet.boxes if box.box in BOXES}
    assert set(behind) == set(BOXES) and not behind[WINNER]
    assert (rows["j98-baseline-software-raid"].verdict == "holds") == (not any(behind.values()))


@pytest.mark.slow
def test_no_conclusion_holds_of_the_opposite(run: Run, tmp_path: Path) -> None:
    """Every rate r becomes 100 / r: what was ahead is behind, what passed 10 MB/s fails, what was alike is not."""
    mapping = load_mapping(load_study("jlab1998").file)
    found = {row.id: row.verdict for row in compare_run(analyse(run), mapping).conclusions}
    assert "holds" in found.values()
    rate = pl.col("bytes") * 1000 / pl.col("elapsed_ns")
    streams = run.streams.with_columns((pl.col("bytes") * 10 * rate).cast(pl.UInt64).alias("elapsed_ns"))
    tables = {name: getattr(run, name) for name in TABLES}
    planted = Run(run.folder, run.facts, run.identity, {**tables, "streams": streams})
    opposite = {row.id: row.verdict for row in compare_run(analyse(planted), mapping).conclusions}
    held = [name for name, verdict in found.items() if verdict == "holds"]
    assert [name for name in held if opposite[name] != "fails"] == []

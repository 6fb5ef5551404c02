"""Evaluation sheets: verdicts, ranks, what is left beside others, what is entered by hand, what is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from raidlab.api import analyse, run_study
from raidlab.cli.sheet_runs import boxes_named
from raidlab.errors import InputError
from raidlab.published.scorecard import (
    boxes_of,
    load_facts,
    load_network,
    load_plan,
    make_sheet,
    sheet_json,
    sheet_markdown,
    side_table,
)
from raidlab.published.scorecard.make import BoxSheet, SheetRow, is_ahead
from raidlab.published.scorecard.plan import PlannedTest
from raidlab.report.page import render
from raidlab.report.sheet import shown_sheet
from raidlab.results import Run

STUDY = """
name = "boxes"
title = "Boxes"
on = ["sim"]

[[array]]
name = "slow"
tree = "concat(1)"

[[array]]
name = "fast"
tree = "raid0(4, chunk=64KiB)"

[[workload]]
name = "write"
read = 0.0
size = "256KiB"
streams = [{ name = "write", source = "memory", sink = "array", bytes = "16MiB" }]
load = { depths = [1, 2] }

[load]
depths = [1]

[sim]
device = { kind = "fixed", capacity_bytes = 104857600, read_us = 1000.0, write_us = 1000.0, write_ns_per_byte = 15.0 }
file_system = { cluster = "256KiB", write_behind_clusters = 2 }
"""
PLAN = """
title = "Sheet of boxes"
baseline = "slow"

[[test]]
name = "one"
measure = { kind = "stream_rate", workload = "write" }
kind = "discriminating"

[[test]]
name = "two, each"
measure = { kind = "stream_rate", workload = "write", copies = 2 }
kind = "qualifying"
at_least = 40
alone = "one"

[[test]]
name = "not run"
measure = { kind = "stream_rate", workload = "write", copies = 9 }
network = { test = "3 write", work = "write" }
kind = "beside"
"""
FACTS = """
[box.fast]
set_up = "easy; two hours"
capacity_gb = 100
price = 5000
currency = "USD"
priced_on = "1998-03-01"
published = { one = 400 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a plan."""
    made = tmp_path_factory.mktemp("boxes")
    (made / "study.toml").write_text(STUDY, encoding="utf-8")
    (made / "sheet.toml").write_text(PLAN, encoding="utf-8")
    (made / "facts.toml").write_text(FACTS, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """A run of it."""
    return run_study(folder / "study.toml", out=folder / "runs")


def test_verdicts_ranks_and_what_is_left(folder: Path, run: Run) -> None:
    sheet = make_sheet(
        load_plan(folder / "study.toml"), boxes_of(analyse(run), analyse(run)), load_facts(folder / "facts.toml")
    )
    slow, fast = sheet.boxes
    assert [box.box for box in sheet.boxes] == ["slow", "fast"]
    # 4.93 ms for 256 KiB: 53 MB/s for one disk, half for each of two; four disks write four chunks side by side.
    assert slow.rows[0].value == pytest.approx(53, rel=0.05) and slow.rows[0].rank == 2
    assert fast.rows[0].rank == 1 and fast.rows[0].published == 400
    assert slow.rows[1].verdict == "fails" and slow.qualifies == "fails"
    assert slow.rows[1].left_percent == pytest.approx(50, abs=5)
    assert slow.rows[0].baseline_percent is None and fast.rows[0].baseline_percent is not None
    assert slow.rows[2].value is None and slow.rows[2].verdict == ""
    assert fast.rows[0].loaded == fast.rows[0].value, "the same run stands in for a loaded one"


def test_a_sheet_shows_what_is_there_and_what_is_not(folder: Path, run: Run) -> None:
    sheet = make_sheet(load_plan(folder / "study.toml"), boxes_of(analyse(run)), load_facts(folder / "facts.toml"))
    text = sheet_markdown(sheet)
    for part in (
        "## slow",
        "## Side by side",
        "easy; two hours",
        "at least 40",
        "single run",
        "- price: -",
        "- price: 5000\n",
        "50 USD a GB",
    ):
        assert part in text, part
    document = json.loads(sheet_json(sheet))
    assert document["boxes"][1]["tests"][2]["value"] is None
    assert document["boxes"][1]["entered"]["price"] == 5000


def test_a_box_is_held_against_the_baseline_in_every_test(folder: Path, run: Run) -> None:
    plan = load_plan(folder / "study.toml")
    slow, fast = make_sheet(plan, boxes_of(analyse(run))).boxes
    assert slow.against_baseline is None and fast.against_baseline == ([], 2)
    text = sheet_markdown(make_sheet(plan, boxes_of(analyse(run))))
    assert "The baseline, slow: matched in all 2." in text and "| matches slow |  | - | yes |" in text
    turned = plan.model_copy(update={"baseline": "fast"})
    assert make_sheet(turned, boxes_of(analyse(run))).boxes[0].against_baseline == (["one", "two, each"], 2)
    patient = turned.model_copy(update={"baseline_within": 0.9})
    assert make_sheet(patient, boxes_of(analyse(run))).boxes[0].against_baseline == ([], 2)


def test_boxes_whose_intervals_meet_share_a_place() -> None:
    test = PlannedTest(name="one", measure={}, kind="discriminating")
    rows = {
        "best": SheetRow(test, 20.0, 18.0, 22.0),
        "alike": SheetRow(test, 19.0, 17.0, 21.0),
        "last": SheetRow(test, 10.0, 9.0, 11.0),
        "single": SheetRow(test, 15.0),
    }
    ahead = {(a, b) for a in rows for b in rows if is_ahead(rows[a], rows[b])}
    assert ahead == {
        *((one, "last") for one in ("best", "alike")),
        *((one, "single") for one in ("best", "alike")),
        ("single", "last"),
    }


def test_boxes_of_several_runs_stand_side_by_side(folder: Path, run: Run) -> None:
    other = folder / "other"
    other.mkdir()
    (other / "study.toml").write_text(STUDY.replace("write_us = 1000.0", "write_us = 500.0"), encoding="utf-8")
    quicker = run_study(other / "study.toml", out=other / "runs")
    boxes = boxes_named([f"A={run.folder}:slow", f"B={quicker.folder}"], [f"A={run.folder}"])
    assert [(box.name, box.array) for box in boxes] == [("A", "slow"), ("B, slow", "slow"), ("B, fast", "fast")]
    sheet = make_sheet(load_plan(folder / "study.toml"), boxes)
    assert [box.rows[0].rank for box in sheet.boxes] == [3, 2, 1]
    assert sheet.boxes[0].rows[0].loaded is not None and sheet.boxes[1].rows[0].loaded is None
    warned = [finding for finding in sheet.findings if finding.check == "side_by_side"]
    assert [finding.verdict for finding in warned] == ["WARN", "WARN"] and "the study differs" in warned[0].evidence
    assert {"A", "B, slow, B, fast"} <= {finding.evidence.partition(": ")[0] for finding in sheet.findings}
    for runs, loaded, told in (
        ([f"A={run.folder}:none"], [], "has no such array"),
        ([f"A={run.folder}:slow", f"A={quicker.folder}:slow"], [], "two boxes are called so"),
        ([str(run.folder)], [f"B={run.folder}"], "is of none of the runs"),
    ):
        with pytest.raises(InputError, match=told):
            make_sheet(load_plan(folder / "study.toml"), boxes_named(runs, loaded))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("at_least = 40\n", "", "goes with kind = 'qualifying'"),
        ('alone = "one"', 'alone = "none"', "alone: .none.: is no test"),
        ('kind = "beside"', 'kind = "odd"', "qualifying"),
    ],
)
def test_mistakes_of_a_plan_are_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "sheet.toml").write_text(PLAN.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        load_plan(tmp_path / "study.toml")


def test_a_box_that_was_not_measured_has_no_facts(folder: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "facts.toml"
    file.write_text(FACTS.replace("box.fast", "box.other"), encoding="utf-8")
    with pytest.raises(InputError, match="no box of the sheet is called so"):
        make_sheet(load_plan(folder / "study.toml"), boxes_of(analyse(run)), load_facts(file))


def test_what_machines_measured_stands_where_the_run_has_nothing(folder: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "network.json"
    row = {"test": "3 write", "work": "write", "total_mb_s": 11.5, "low": 11.0, "high": 12.0}
    file.write_text(json.dumps({"results": [{**row, "work": "read", "total_mb_s": 1.0}, row]}), encoding="utf-8")
    plan = load_plan(folder / "study.toml")
    sheet = make_sheet(plan, boxes_of(analyse(run)), network=dict([load_network(f"fast={file}")]))
    assert [box.rows[2].value for box in sheet.boxes] == [None, 11.5]
    assert (sheet.boxes[1].rows[2].low, sheet.boxes[1].rows[2].high) == (11.0, 12.0)
    with pytest.raises(InputError, match="no box of the sheet is called so"):
        make_sheet(plan, boxes_of(analyse(run)), network=dict([load_network(f"other={file}")]))
    for text, told in ((str(file), "names no box"), (f"fast={tmp_path / 'none'}", "cannot be read")):
        with pytest.raises(InputError, match=told):
            load_network(text)
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="holds no such results"):
        load_network(f"fast={file}")


def test_the_page_has_the_sheet_and_who_comes_first(folder: Path, run: Run) -> None:
    made = make_sheet(load_plan(folder / "study.toml"), boxes_of(analyse(run)))
    shown = shown_sheet(made)
    assert shown.headline == "fast passes all qualifying tests; slow fails at least one."
    assert shown.places[0] == ("fast", "first in 1 of 1 tests that rank")
    ranked = [replace(box, rows=[replace(row, rank=row.rank and 1) for row in box.rows]) for box in made.boxes]
    [shared] = shown_sheet(replace(made, boxes=ranked)).places
    assert shared == ("slow and fast", "share the first place in all tests that rank: their intervals meet")
    # Both first in a second test: one is first in two tests, of which it shares one.
    alike = [replace(box, rows=[box.rows[0], replace(box.rows[1], rank=1), *box.rows[2:]]) for box in made.boxes]
    assert shown_sheet(replace(made, boxes=alike)).places == [
        ("fast", "first in 2 of 2 tests that rank, 1 of them shared"),
        ("slow", "first in 1 of 2 tests that rank, 1 of them shared"),
    ]
    judged, beside = shown.side
    cells = {row[0].text: row[1:] for row in judged.rows}
    assert [cell.style for cell in cells["qualifying tests"]] == ["", "fails", "holds"]
    assert not {row[0].text for row in beside.rows} & set(cells)
    page = render(analyse(run), [], [], sheet=made)
    assert 'id="sheet"' in page and "first in 1 of 1" in page
    # A narrow page names each box beside its figure.
    assert '<table class="sheet stacked">' in page and 'data-label="slow">' in page and 'data-label="fast">' in page


def test_a_box_that_was_not_asked_is_no_case_of_doubt(folder: Path, run: Run) -> None:
    made = make_sheet(load_plan(folder / "study.toml"), boxes_of(analyse(run)))

    def said(box: BoxSheet) -> str:
        _, rows = side_table(replace(made, boxes=[box]))
        return next(row[2] for row in rows if row[0] == "qualifying tests")

    for box in made.boxes:
        asked = [row.test.kind == "qualifying" for row in box.rows]
        none_run = [
            replace(row, value=None, verdict="") if one else row for row, one in zip(box.rows, asked, strict=True)
        ]
        assert said(box) == box.qualifies
        assert said(replace(box, rows=none_run)) == "not run"


def test_what_is_no_box_is_left_out_and_ranks_nobody(folder: Path, run: Run) -> None:
    plan = load_plan(folder / "study.toml").model_copy(update={"leave_out": ["fast"]})
    [alone] = make_sheet(plan, boxes_of(analyse(run))).boxes
    assert alone.box == "slow" and alone.rows[0].rank is None, "where there is one box nobody is first"

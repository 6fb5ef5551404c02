"""Run folders as earlier versions wrote them, kept in `fixtures/`: they are read as if this version had written them.

A folder of this version is made, when the schema changes, by `python tests/python/fixtures/make.py`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, resume_run, write_report
from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.report.export import EXPORTS
from raidlab.results import SCHEMA_VERSION, load_run
from raidlab.results import migrate as migration
from raidlab.results.migrate import OLDEST_VERSION, added_since
from raidlab.results.tables import TABLES

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = range(OLDEST_VERSION, SCHEMA_VERSION + 1)


def test_there_is_a_folder_of_every_version() -> None:
    assert {int(folder.name.rpartition("-")[2]) for folder in FIXTURES.glob("run-schema-*") if folder.is_dir()} == set(
        VERSIONS
    )


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the fixture: a report is written into it."""
    copy = tmp_path / f"run-schema-{request.param}"
    shutil.copytree(FIXTURES / copy.name, copy)
    return copy


def test_a_folder_of_any_version_has_all_tables(folder: Path) -> None:
    written = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert f"run-schema-{written['schema_version']}" == folder.name
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    run = load_run(folder)
    for name, columns in TABLES.items():
        frame = getattr(run, name)
        assert dict(frame.schema) == columns, name
        assert run.sql(f"SELECT * FROM {name}").columns == list(columns)
        for column in added_since(written["schema_version"])[name]:
            assert frame[column].null_count() == frame.height, "what was not recorded is not made up"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before, "reading changes nothing"


def test_the_figures_of_any_version_are_those_that_it_measured(folder: Path) -> None:
    expected = json.loads((FIXTURES / f"{folder.name}.json").read_text(encoding="utf-8"))
    run = load_run(folder)
    assert run.facts["status"] == "complete" and run.facts["command"] == "run"
    assert run.facts["times"]["sessions"]
    assert run.cells.select("array", "workload", "depth", "all_requests", "elapsed_ns").rows() == [
        tuple(row) for row in expected["cells"]
    ]
    assert [run.histogram([cell]).percentile_ns(90) for cell in run.cells["cell"]] == expected["p90_ns"]
    assert run.holds["bound"].to_list() == expected["bounds"]


def test_everything_that_reads_runs_reads_any_version(folder: Path, tmp_path: Path) -> None:
    analysis = analyse(folder)
    assert len(analysis.points) > 0 and analysis.comparisons
    assert run_checks(analysis)
    assert write_report(folder).read_text(encoding="utf-8").startswith("<!doctype html>")
    for kind, export in EXPORTS.items():
        (tmp_path / kind).mkdir()
        with Directory.open(tmp_path / kind) as place:
            assert export(analysis, place)
    # A complete run needs nothing more, whoever ran it.
    assert resume_run(folder).facts == load_run(folder).facts


@pytest.mark.parametrize("version", [OLDEST_VERSION - 1, SCHEMA_VERSION + 1, None, "2"])
def test_a_version_that_is_not_known_is_refused(version: object, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(FIXTURES / f"run-schema-{SCHEMA_VERSION}", copy)
    facts = json.loads((copy / "run.json").read_text(encoding="utf-8"))
    (copy / "run.json").write_text(json.dumps({**facts, "schema_version": version}), encoding="utf-8")
    accepted = f"accepted: schema {OLDEST_VERSION} to {SCHEMA_VERSION}"
    with pytest.raises(InputError, match=f"was written with result schema {version}; {accepted}"):
        load_run(copy)


def test_what_an_old_version_had_must_be_there(tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(FIXTURES / f"run-schema-{OLDEST_VERSION}", copy)
    (copy / "histograms.parquet").unlink()
    with pytest.raises(InputError, match=r"lacks histograms\.parquet"):
        load_run(copy)
    shutil.copy(copy / "members.parquet", copy / "histograms.parquet")
    with pytest.raises(InputError, match=r"histograms.parquet': lacks the column 'operation'"):
        _ = load_run(copy).histograms


def test_parts_of_another_version_are_refused(tmp_path: Path) -> None:
    facts = json.loads((FIXTURES / "run-schema-2" / "run.json").read_text(encoding="utf-8"))
    (tmp_path / "parts.jsonl").write_text(json.dumps({"facts": facts}) + "\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"was killed, and its parts are of result schema 2; accepted: parts of schema"
    ):
        load_run(tmp_path)


def test_every_version_says_what_it_added() -> None:
    assert set(migration._ADDED) == set(range(OLDEST_VERSION + 1, SCHEMA_VERSION + 1))
    assert set(migration._FACTS) <= set(range(OLDEST_VERSION, SCHEMA_VERSION))
    for tables in migration._ADDED.values():
        for name, columns in tables.items():
            assert set(columns) <= set(TABLES[name])

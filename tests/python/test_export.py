"""Exports, each read by the tool it is for."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import raidlab
from conftest import unmount
from raidlab.analysis.checks import run_checks
from raidlab.analysis.metrics import Analysis
from raidlab.api import analyse, run_study
from raidlab.cli.app import app
from raidlab.directory import Directory
from raidlab.errors import EXIT_INVALID_RESULT, InputError, OutputError
from raidlab.formats.hlog import LONGEST_NS, bucket_of, encoded
from raidlab.histogram import Histogram
from raidlab.report.export import EXPORTS
from raidlab.results import Run

STUDY = """
name = "exports"
title = "Two arrays, for other tools"
array = [{ name = "raid0", tree = "raid0(4, chunk=64KiB)" }, { name = "raid 10", tree = "raid10(4, chunk=64KiB)" }]
workload = [{ name = "reads", read = 1.0, size = "4KiB" }, { name = "mix", read = 0.5, size = "8KiB" }]
load = { depths = [1, 8] }
compare = [{ group = "all", title = "Both", reference = "raid0", equal = "members" }]
sim = { device = "hdd-7200-bare", measure = { requests = 2000 }, repeats = 2 }
"""


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = tmp_path_factory.mktemp("exports")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return analyse(run_study(folder / "study.toml", out=folder / "runs"))


def _export(kind: str, analysis: Analysis, folder: Path) -> list[Path]:
    with Directory.open(folder) as place:
        return EXPORTS[kind](analysis, place)


@pytest.mark.parametrize("kind", EXPORTS)
def test_every_export_writes_what_it_says(analysis: Analysis, kind: str, tmp_path: Path) -> None:
    written = _export(kind, analysis, tmp_path)
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert all(file.stat().st_size for file in written)


def test_csv_has_a_row_a_point(analysis: Analysis, tmp_path: Path) -> None:
    file, _ = _export("csv", analysis, tmp_path)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(analysis.points) == 8
    assert float(rows[0]["iops"]) == pytest.approx(analysis.values[0]["iops"])


def test_parquet_is_read_by_duckdb(analysis: Analysis, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file, _ = _export("parquet", analysis, tmp_path)
    found = duckdb.sql(f"SELECT count(*), min(iops) > 0 FROM '{file}'").fetchall()
    assert found == [(8, True)]


def test_fio_shaped_json_is_read_by_our_own_reader_of_fio_results(analysis: Analysis, tmp_path: Path) -> None:
    written = _export("fio_json", analysis, tmp_path)
    assert len(written) == 8
    for file, point in zip(written, analysis.points, strict=True):
        (job,) = json.loads(file.read_text(encoding="utf-8"))["jobs"]
        assert job["job options"]["iodepth"] == str(point.depth)
        assert job["job options"]["rw"] == ("randread" if point.workload == "reads" else "randrw")
        total = job["read"]["total_ios"] + job["write"]["total_ios"]
        assert total == point.total("all_requests")
        assert job["read"]["lat_ns"]["N"] == job["read"]["total_ios"]
        assert job["read"]["clat_ns"]["percentile"]["50.000000"] > 0
        shares = [share for unit in ("ns", "us", "ms") for share in job[f"latency_{unit}"].values()]
        assert sum(shares) == pytest.approx(100, abs=1e-3)


def test_hlog_is_read_by_hdrhistogram_with_equal_percentiles(analysis: Analysis, tmp_path: Path) -> None:
    log = pytest.importorskip("hdrh.log", reason="hdrhistogram (PyPI) is not installed")
    histogram = pytest.importorskip("hdrh.histogram")
    for file, point in zip(_export("hlog", analysis, tmp_path), analysis.points, strict=True):
        reader = log.HistogramLogReader(str(file), histogram.HdrHistogram(1, LONGEST_NS, 3))
        merged = histogram.HdrHistogram(1, LONGEST_NS, 3)
        while (one := reader.get_next_interval_histogram()) is not None:
            merged.add(one)
        assert merged.get_total_count() == point.response.total
        for percentile in (1, 50, 90, 99, 99.9, 100):
            ours = point.response.percentile_ns(percentile)
            assert ours is not None
            assert merged.get_value_at_percentile(percentile) == pytest.approx(ours, rel=0.001)


def test_a_histogram_is_encoded_as_hdrhistogram_encodes_it() -> None:
    histogram = pytest.importorskip("hdrh.histogram", reason="hdrhistogram (PyPI) is not installed")
    values = {0: 1, 1: 2, 2047: 3, 2048: 4, 1_000_000: 200, 123_456_789: 1, LONGEST_NS: 5}
    theirs = histogram.HdrHistogram(1, LONGEST_NS, 3)
    for value, count in values.items():
        theirs.record_value(value, count)
    ours = encoded(Histogram.of({"value_ns": list(values), "count": list(values.values())}))
    decoded = histogram.HdrHistogram.decode(ours)
    assert decoded.get_total_count() == theirs.get_total_count()
    for percentile in (0, 1, 25, 50, 75, 99, 100):
        assert decoded.get_value_at_percentile(percentile) == theirs.get_value_at_percentile(percentile)
    assert [bucket_of(value) for value in (0, 2047, 2048, 2049, 4096)] == [0, 2047, 2048, 2048, 3072]


def test_prometheus_text_is_well_formed(analysis: Analysis, tmp_path: Path) -> None:
    (file,) = _export("prometheus", analysis, tmp_path)
    lines = file.read_text(encoding="utf-8").splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert len({line.rsplit(" ", 1)[0] for line in samples}) == len(samples)
    assert any(line.startswith('raidlab_iops{study="exports",target="sim",array="raid 10"') for line in samples)
    promtool = shutil.which("promtool")
    if promtool:
        subprocess.run([promtool, "check", "metrics"], input=file.read_bytes(), check=True)


@pytest.fixture
def judged(analysis: Analysis, tmp_path: Path, as_invalid: Callable[[Run, Path], Path]) -> Analysis:
    """The same run, had the engine found that its figures must not be used."""
    return analyse(as_invalid(analysis.run, tmp_path / "judged"))


def test_no_export_lets_a_verdict_get_lost(judged: Analysis, analysis: Analysis, tmp_path: Path) -> None:
    for kind in EXPORTS:
        (tmp_path / kind).mkdir()
    findings = [finding.row() for finding in run_checks(judged)]
    assert findings[0]["verdict"] == "INVALID" and findings[0]["check"] == "made_up"
    _, table = _export("csv", judged, tmp_path / "csv")
    with table.open(encoding="utf-8", newline="") as lines:
        assert list(csv.DictReader(lines)) == findings
    _, table = _export("parquet", judged, tmp_path / "parquet")
    assert pl.read_parquet(table).to_dicts() == findings
    (file,) = _export("prometheus", judged, tmp_path / "prometheus")
    label = 'raidlab_findings{study="exports",target="sim",check="made_up",verdict="INVALID"} 1'
    assert label in file.read_text(encoding="utf-8").splitlines()
    for file in _export("fio_json", judged, tmp_path / "fio_json"):
        (job,) = json.loads(file.read_text(encoding="utf-8"))["jobs"]
        assert job["desc"] == job["job options"]["description"] and job["desc"].startswith("INVALID made_up (sim)")
    for file in _export("hlog", judged, tmp_path / "hlog"):
        assert "INVALID made_up (sim)" in file.read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "sound").mkdir()
    assert all("INVALID" not in file.read_text() for file in _export("fio_json", analysis, tmp_path / "sound"))


def test_findings_are_a_table_of_a_run(judged: Analysis, analysis: Analysis) -> None:
    run = raidlab.load_run(judged.run.folder)
    assert run.findings.to_dicts() == [finding.row() for finding in run_checks(judged)]
    asked = run.sql("SELECT \"check\", target, evidence FROM findings WHERE verdict = 'INVALID'")
    assert asked.rows() == [("made_up", "sim", run.findings["evidence"][0])]
    assert run.sql("SELECT count(*) FROM checks").item() == 1 < run.findings.height
    assert raidlab.load_run(analysis.run.folder).sql("SELECT count(*) FROM Findings").item() == run.findings.height - 1


def test_an_invalid_run_is_shown_with_the_code_of_the_run(judged: Analysis, analysis: Analysis) -> None:
    runner = CliRunner()
    for words in ([], ["--json"]):
        shown = runner.invoke(app, ["results", "show", str(judged.run.folder), *words])
        assert shown.exit_code == EXIT_INVALID_RESULT and "made_up" in shown.stdout
        assert runner.invoke(app, ["results", "show", str(analysis.run.folder), *words]).exit_code == 0
    words = ["query", str(judged.run.folder), "SELECT verdict FROM findings LIMIT 1"]
    assert runner.invoke(app, ["results", *words]).stdout.split() == ["verdict", "INVALID"]


def test_fio_plot_draws_from_the_export(analysis: Analysis, tmp_path: Path) -> None:
    # It needs libraries that raidlab does not, so it lives in an environment of its own.
    fio_plot = os.environ.get("RAIDLAB_FIO_PLOT") or shutil.which("fio-plot")
    if not fio_plot:
        pytest.skip("fio-plot (PyPI) is not installed; RAIDLAB_FIO_PLOT names it where it is")
    _export("fio_json", analysis, tmp_path)
    # fio-plot takes all jobs of a folder for one system under test: one array's.
    for file in tmp_path.glob("*raid-10*"):
        file.unlink()
    words = ["-i", str(tmp_path), "-T", "raid0", "-l", "-d", "1", "8", "-n", "1", "-r", "randread", "-o", "drawn.png"]
    done = subprocess.run([fio_plot, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("drawn*.png"))


def test_results_on_the_command_line(analysis: Analysis, tmp_path: Path) -> None:
    out = str(analysis.run.folder.parent)
    runner = CliRunner()

    def said(*words: str) -> str:
        return runner.invoke(app, ["results", *words, "--out", out], catch_exceptions=False).stdout

    assert analysis.run.folder.name in said("list")
    assert "raid 10" in said("show", "last")
    rows = json.loads(said("query", "last", 'SELECT "array", count(*) AS n FROM cells GROUP BY ALL', "--json"))
    assert {row["n"] for row in rows} == {8}
    query = "SELECT 'nan'::DOUBLE AS a, 'inf'::FLOAT AS b, 1.5 AS c, 'text' AS d"
    assert json.loads(said("query", "last", query, "--json")) == [{"a": None, "b": None, "c": 1.5, "d": "text"}]
    query = "SELECT [1.0, 'nan'::DOUBLE] AS a, {'x': ['inf'::FLOAT]} AS b, array_value('-inf'::DOUBLE) AS c"
    assert json.loads(said("query", "last", query, "--json")) == [{"a": [1, None], "b": {"x": [None]}, "c": [None]}]
    assert said("query", analysis.run.folder.name, "SELECT 1 AS one").split() == ["one", "1"]
    assert str(tmp_path / "points.csv") in said("export", "last", "--to", str(tmp_path))
    for words in (["query", "last", "SELEKT"], ["show", "nosuch"], ["export", "last", "--format", "xls"]):
        assert isinstance(runner.invoke(app, ["results", *words, "--out", out]).exception, InputError)
    for query, told in (("SELECT * FROM cell", 'Did you mean "cells"'), ("SELECT array, 1 FROM cells", "want quotes")):
        refused = runner.invoke(app, ["results", "query", "last", query, "--out", out])
        assert told in str(refused.exception) and "LINE 1" not in str(refused.exception)


@pytest.mark.parametrize("words", [["--to", "elsewhere"], []], ids=["--to", "the run's folder"])
def test_a_full_disk_is_no_mistake_of_an_option(analysis: Analysis, words: list[str], tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        shutil.copytree(analysis.run.folder, small / "run")
        with suppress(OSError), (small / "all").open("wb") as file:
            file.write(bytes(16 << 20))
        to = [word if word == "--to" else str(small / word) for word in words]
        with pytest.raises(OutputError, match="cannot be written: No space left on device"):
            CliRunner().invoke(app, ["results", "export", str(small / "run"), *to], catch_exceptions=False)
    finally:
        unmount(small)

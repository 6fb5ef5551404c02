"""Runs of the small study in the simulator: what theory says, determinism, results, report, command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from raidlab.analysis.checks import CHECKS, run_checks
from raidlab.analysis.metrics import METRICS
from raidlab.api import analyse, run_study
from raidlab.directory import Directory
from raidlab.report import answers, render, write_page
from raidlab.report.figures import FIGURES, make_figures
from raidlab.results import Run, load_run
from raidlab.results.tables import TABLES
from raidlab.stats import mean_interval

CLI = [sys.executable, "-c", "from raidlab.cli import main\nif __name__ == '__main__': main()"]


def _cli(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CLI, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=600)


def test_relative_throughput_is_what_theory_says(small_run: Run) -> None:
    found = {
        (comparison.workload, row.array): row.values["relative_throughput_percent"] or 0.0
        for comparison in analyse(small_run).comparisons
        for row in comparison.rows
    }
    assert 18 <= found["writes", "raid5"] <= 30
    assert found["writes", "raid10"] == pytest.approx(50, abs=5)
    assert found["reads", "raid5"] == pytest.approx(100, abs=8)
    assert found["reads", "raid10"] >= 95


def test_two_runs_with_one_seed_are_the_same_bytes(small_study: Path, small_run: Run, tmp_path: Path) -> None:
    again = run_study(small_study, out=tmp_path / "runs", seed=1)
    for name in TABLES:
        first, second = ((run.folder / f"{name}.parquet").read_bytes() for run in (small_run, again))
        assert first == second, name
    facts = [{key: value for key, value in run.facts.items() if key != "times"} for run in (small_run, again)]
    assert json.dumps(facts[0], sort_keys=True) == json.dumps(facts[1], sort_keys=True)


def test_another_seed_differs(small_study: Path, small_run: Run, tmp_path: Path) -> None:
    other = run_study(small_study, out=tmp_path / "runs", seed=2)
    assert not other.cells["elapsed_ns"].equals(small_run.cells["elapsed_ns"])


def test_tables_have_their_columns_and_agree(small_run: Run) -> None:
    for name, columns in TABLES.items():
        frame = getattr(small_run, name)
        assert dict(frame.schema) == {
            key: kind() if isinstance(kind, type) else kind for key, kind in columns.items()
        }, name
    counted = small_run.histograms.filter(pl.col("time") == "response").group_by("cell").agg(pl.col("count").sum())
    joined = small_run.cells.join(counted, on="cell")
    assert joined.height == small_run.cells.height
    assert (joined["count"] == joined["all_requests"]).all()
    assert not (small_run.folder / "parts.jsonl").exists()


def test_a_held_percentile_is_met_at_the_depth_below_and_missed_above(small_run: Run) -> None:
    analysis = analyse(small_run)
    p90 = {
        (point.array, point.workload, point.depth): analysis.values[index]["response_time_ms_p90"] or 0.0
        for index, point in enumerate(analysis.points)
    }
    between = [row for row in small_run.holds.iter_rows(named=True) if row["bound"] == "between"]
    assert between
    for row in between:
        target_ms = row["target_ns"] / 1e6
        lower, upper = int(row["depth"]), int(row["depth"]) + 1
        assert p90[row["array"], row["workload"], lower] <= target_ms
        if row["depth"] != lower:
            assert p90[row["array"], row["workload"], upper] > target_ms


def test_sql_over_the_tables(small_run: Run) -> None:
    found = small_run.sql('SELECT count(DISTINCT "array") AS arrays FROM cells JOIN members USING (cell)')
    assert found["arrays"].to_list() == [3]


def test_sql_reads_no_table_that_is_not_asked_for(small_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(run: Run) -> None:
        raise AssertionError("it is tens of millions of rows")

    monkeypatch.setattr(type(small_run), "histograms", property(read))
    assert small_run.sql("SELECT count(*) AS cells FROM cells")["cells"].to_list() == [small_run.cells.height]
    for query in ("SELECT * FROM Histograms", "SELECT * FROM query_table('histo' || 'grams')"):
        with pytest.raises(AssertionError, match="tens of millions"):
            small_run.sql(query)


def test_every_metric_has_a_value_and_names_its_unit(small_run: Run) -> None:
    table = analyse(small_run).table
    # A depth that only one array's search has passed by has no reference to be compared with.
    table = table.filter(pl.col("swept"))
    for metric in METRICS:
        assert metric.kind in table.columns
        # What a run costs this machine is not for the simulator to say; the small study's host costs nothing.
        elsewhere = (
            "arrival_wait_",
            "cpu_",
            "machine_",
            "kernel_",
            "processor_",
            "context_",
            "device_",
            "host_",
            "streams_",
        )
        # Nor does its disk say what it draws.
        elsewhere += ("streams_", "disk_power_", "disk_energy_", "write_amplification")
        expected = table.height if metric.kind.startswith(elsewhere) else 0
        # Of one request alone only some cells with one request outstanding tell.
        nulls = table[metric.kind].null_count()
        assert nulls < table.height if metric.kind.startswith("idle_") else nulls == expected, metric.kind
        assert metric.unit and metric.meaning and metric.title


def test_figures_follow_the_schema_and_draw(small_run: Run, tmp_path: Path) -> None:
    figures = make_figures(analyse(small_run))
    # Those of flash drives and those a study asks for have tests of their own (test_flash.py, test_own_figures.py).
    assert {figure.kind for figure in figures} == {"relative_throughput", "throughput_against_p90", "member_time"}
    for figure in figures:
        assert all(re.search(r"[a-z].*\d", panel.alt) for panel in figure.panels), "what it shows is said in words"
        for specification in figure.specifications():
            assert "(" in json.dumps(specification) or "%" in json.dumps(specification), "axes carry units"
        with Directory.open(tmp_path) as folder:
            svg, png = figure.save(folder)
        assert svg.read_text(encoding="utf-8").startswith("<svg")
        assert png.read_bytes().startswith(b"\x89PNG")


def test_every_figure_module_has_its_own_name() -> None:
    for module in FIGURES:
        assert module.__name__.endswith(f".{module.KIND}")


def test_checks_answer_with_evidence(small_run: Run) -> None:
    findings = run_checks(analyse(small_run))
    assert findings
    assert all(finding.evidence.endswith(".") or finding.evidence.endswith(")") for finding in findings)
    assert all(finding.remedy for finding in findings if finding.verdict != "PASS")
    for module in CHECKS:
        assert module.__doc__


def test_the_report_stands_on_its_own(small_run: Run) -> None:
    page = write_page(analyse(small_run))
    text = page.read_text(encoding="utf-8")
    assert len(text) < 3_000_000
    # Nothing is fetched: no address but the names of XML namespaces.
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert all(address.startswith("http://www.w3.org/") for address in addresses), addresses
    assert "default-src 'none'" in text and "src=" not in text
    body = text[text.index("<body>") :]
    answer = answers(analyse(small_run), [])[0]
    order = [
        answer.summary or answer.sentence[:40],
        answer.clauses[0].said,
        "<figure ",
        "<table>",
        "Can it be believed?",
    ]
    assert [body.index(words) for words in order] == sorted(body.index(words) for words in order)
    assert "prefers-color-scheme: dark" in text
    assert "--seed 1" in text


def test_a_report_escapes_what_a_study_says(small_run: Run) -> None:
    study = small_run.study.model_copy(update={"title": "<b>bold</b>"})
    analysis = analyse(small_run)
    object.__setattr__(small_run, "study", study)
    try:
        assert "&lt;b&gt;bold" in render(analysis, [], [])
    finally:
        del small_run.__dict__["study"]


@pytest.mark.slow
def test_the_command_line_prints_80_columns_and_json(small_study: Path, tmp_path: Path) -> None:
    done = _cli("run", str(small_study), "--seed", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "raid10" in done.stdout and "report: runs/small-" in done.stderr
    done = _cli("run", str(small_study), "--seed", "1", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["status"] == "complete"
    assert {point["array"] for point in document["points"]} == {"raid0", "raid5", "raid10"}


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    done = _cli("report", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a run folder" in done.stderr


def test_a_loaded_run_is_the_same_run(small_run: Run) -> None:
    assert load_run(small_run.folder).cells.equals(small_run.cells)


def test_an_open_loop_is_compared_by_response_time_and_overload_is_seen(small_study: Path, tmp_path: Path) -> None:
    text = small_study.read_text(encoding="utf-8")
    text = text.replace("depths = [1, 8, 64]", "open = { rates_per_s = [20, 150] }")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("hold"))
    small_study.write_text(text, encoding="utf-8")
    run = run_study(small_study, out=tmp_path / "runs")
    analysis = analyse(run)
    assert analysis.table["relative_throughput_percent"].null_count() == analysis.table.height
    overloaded = next(finding for finding in run_checks(analysis) if finding.check == "overloaded")
    assert overloaded.verdict == "WARN"
    assert "raid5, writes" in overloaded.evidence
    sentence = answers(analysis, [])[0].sentence
    assert "20 requests/s offered" in sentence
    assert "soonest" in sentence or "no difference" in sentence
    assert write_page(analysis).exists()


@pytest.mark.slow
def test_the_running_adjustment_finds_the_depth_that_the_search_finds(small_study: Path, tmp_path: Path) -> None:
    text = small_study.read_text(encoding="utf-8").replace("requests = 1500", "requests = 6000")
    small_study.write_text(text.replace("[live]", "repeats = 3\n\n[live]", 1), encoding="utf-8")
    searched = run_study(small_study, out=tmp_path / "runs").holds
    text = small_study.read_text(encoding="utf-8").replace("max_depth = 64", 'max_depth = 64, method = "adjust"')
    small_study.write_text(text, encoding="utf-8")
    adjusted = run_study(small_study, out=tmp_path / "runs").holds
    assert set(adjusted["bound"]) == {"adjusted"}
    for array in ("raid0", "raid5"):
        one = (pl.col("array") == array) & (pl.col("workload") == "writes")
        depth = float(searched.filter(one)["depth"][0])
        interval = mean_interval(adjusted.filter(one)["depth"].to_list())
        # The search lies on a line between two whole depths, whose percentile is good to some percent itself.
        assert interval is not None and interval[0] - 0.03 * depth <= depth <= interval[1] + 0.03 * depth, array
        assert interval[1] - interval[0] < 0.5 * depth, "an interval so wide would hold anything"


def test_repeats_search_together_and_keep_their_own_throughput(small_study: Path, tmp_path: Path) -> None:
    text = small_study.read_text(encoding="utf-8").replace("[live]", "repeats = 3\n\n[live]", 1)
    small_study.write_text(text, encoding="utf-8")
    run = run_study(small_study, out=tmp_path / "runs")
    rows = [row for row in run.holds.iter_rows(named=True) if (row["array"], row["workload"]) == ("raid5", "writes")]
    assert [row["repeat"] for row in rows] == [0, 1, 2]
    assert len({row["depth"] for row in rows}) == 1
    assert len({row["throughput_bytes_per_s"] for row in rows}) == 3
    for row in rows:
        ends = sorted((row["throughput_low_bytes_per_s"], row["throughput_high_bytes_per_s"]))
        assert ends[0] <= row["throughput_bytes_per_s"] <= ends[1]


def test_requests_at_the_target_are_its_throughput_in_requests(small_run: Run) -> None:
    """Of one size only: bytes a second by the size."""
    found = [row for comparison in analyse(small_run).comparisons for row in comparison.rows if row.held is not None]
    known = [row.held for row in found if row.held is not None and row.held.throughput_mb_s is not None]
    assert known and all(one.iops == pytest.approx((one.throughput_mb_s or 0) * 1e6 / 8192) for one in known)
    assert {row.array: row.point.failures_borne for row in found} == {"raid0": 0, "raid5": 1, "raid10": 1}


def test_members_of_one_device_share_it(tmp_path: Path) -> None:
    """Four areas of one device (eight operations at a time, 100 us each) do together what it does; each is a fourth."""
    study = tmp_path / "study.toml"
    arrays = {"raid0": "raid0(4)", "raid10": "raid10(4)", "raid5": "raid5(4)", "one": "raid0(1)"}
    study.write_text(
        'name = "areas"\ntitle = "Areas of one device"\n'
        + "".join(f'[[array]]\nname = "{name}"\ntree = "{tree}"\n' for name, tree in arrays.items())
        + '[[workload]]\nname = "reads"\nread = 1.0\nsize = "4KiB"\n'
        '[[workload]]\nname = "writes"\nread = 0.0\nsize = "4KiB"\n'
        '[load]\ndepths = [32]\n[sim]\ndevice = "fixed-100us"\none_device = true\n',
        encoding="utf-8",
    )
    run = run_study(study, out=tmp_path / "runs")
    found = {(row["array"], row["workload"]): row for row in analyse(run).table.iter_rows(named=True)}
    assert [found[name, "reads"]["iops"] for name in arrays] == pytest.approx([80_000] * 4, rel=0.01)
    writes = {name: found[name, "writes"]["iops"] for name in arrays}
    expected = {"raid0": 80_000, "raid10": 40_000, "raid5": 20_000, "one": 80_000}
    assert writes == {name: pytest.approx(rate, rel=0.02) for name, rate in expected.items()}
    whole, areas = (run.cells.filter(pl.col("array") == name)["user_bytes"][0] for name in ("one", "raid0"))
    assert 0 <= whole - areas < 4 << 20
    assert areas % (4 << 20) == 0
    assert run.members.group_by("cell").len()["len"].unique().to_list() == [1]

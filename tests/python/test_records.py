"""Rows of single requests: they make the cell's own histograms, on both clocks, and are read in every way."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from conftest import SMALL_STUDY
from raidlab import _core
from raidlab.api import resume_run, run_study
from raidlab.cli.app import app
from raidlab.errors import CellFailedError, InputError
from raidlab.results import Run, RunWriter, load_run, new_folder
from raidlab.results.records import RECORDS, RecordWriter, frame_of
from raidlab.results.tables import REQUEST_COLUMNS
from raidlab.run.execute import Execution
from raidlab.run.targets import resolve_targets
from raidlab.study import load_study

# Closed loops, arrivals of their own, and tasks of several requests.
_HOLD = 'hold = { percentile = 90, target = { times_idle = 4, of = "raid0" }, max_depth = 64 }\n'
_UPDATES = """
[[workload]]
name = "updates"
read = 0.5
size = "4KiB"
task = [{ op = "read" }, { op = "write", same_extent_as = 0 }]

[[workload]]
name = "arrivals"
read = 0.7
size = "8KiB"
load = { open = { rates_per_s = [60] } }
"""
STUDY = SMALL_STUDY.replace(_HOLD, "").replace("[1, 8, 64]", "[1, 8]").replace("= 1500", "= 700") + _UPDATES


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The study on the virtual clock, each request kept."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return run_study(folder / "study.toml", on=["sim"], out=folder / "runs", records=True)


def bucket_ns(times_ns: np.ndarray) -> np.ndarray:
    """The longest time of the bucket of an HdrHistogram of three digits, from 1 ns: 2048 buckets, then half as many."""
    wide = np.maximum(np.floor(np.log2(np.maximum(times_ns, 1))).astype(np.int64) - 10, 0)
    return ((times_ns >> wide) + 1 << wide) - 1


def assert_same_as_histograms(run: Run) -> None:
    kept = run.requests()
    assert run.records["lost"].sum() == 0
    assert kept.filter(~pl.col("measured")).height > 0, "warm-up is kept, and marked"
    for cell in run.cells.iter_rows(named=True):
        mine = kept.filter((pl.col("cell") == cell["cell"]) & pl.col("measured") & ~pl.col("failed"))
        assert mine.height == cell["all_requests"]
        assert mine["bytes"].sum() == cell["all_bytes"]
        assert mine["end_ns"].is_sorted()
        assert (mine["arrival_ns"] <= mine["start_ns"]).all() and (mine["start_ns"] <= mine["end_ns"]).all()
        for operation in ("read", "write"):
            of_kind = mine.filter(pl.col("operation") == operation)
            for time, begins in (("response", "arrival_ns"), ("service", "start_ns")):
                taken = (of_kind["end_ns"] - of_kind[begins]).to_numpy().astype(np.int64)
                own = run.histogram([cell["cell"]], operation, time)
                counted = {int(value): int(count) for value, count in zip(own.value_ns, own.count, strict=True)}
                assert Counter(bucket_ns(taken).tolist()) == counted, (cell["cell"], operation, time)


def test_rows_of_the_virtual_clock_make_the_cells_own_histograms(recorded: Run) -> None:
    assert recorded.records["cell"].to_list() == recorded.cells["cell"].to_list()
    assert_same_as_histograms(recorded)
    waited = recorded.requests().filter(pl.col("start_ns") > pl.col("arrival_ns"))
    assert waited.is_empty(), "without a limit an arrival is issued at once"


def test_rows_of_the_real_clock_make_the_cells_own_histograms(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    text = STUDY.replace('duration = "10ms"', "requests = 100").replace('duration = "30ms"', "requests = 3000")
    # Nobody waits ten minutes for arrivals.
    file.write_text(text.replace("rates_per_s = [60]", "rates_per_s = [20000]"), encoding="utf-8")
    run = run_study(file, on=["memory"], out=tmp_path / "runs", records=True)
    assert run.facts["status"] == "complete"
    assert set(run.cells["target"]) == {"live"}
    assert_same_as_histograms(run)


def test_where_a_request_went_is_where_it_was_asked_to_go(recorded: Run) -> None:
    kept = recorded.requests()
    user_bytes = dict(recorded.cells.select("cell", "user_bytes").iter_rows())
    ends = kept.with_columns(end=pl.col("offset_bytes") + pl.col("bytes")).group_by("cell").agg(pl.col("end").max())
    assert all(user_bytes[cell] * 0.9 < end <= user_bytes[cell] for cell, end in ends.iter_rows())
    updates = recorded.cells.filter(pl.col("workload") == "updates")["cell"].to_list()
    of_updates = recorded.requests(updates)
    places = of_updates.group_by("operation").agg(pl.col("offset_bytes").unique().sort())
    read, write = (set(places.filter(pl.col("operation") == name)["offset_bytes"][0]) for name in ("read", "write"))
    assert write <= read, "what is written was read before"


def test_same_seed_same_bytes(recorded: Run, tmp_path: Path) -> None:
    again = run_study(recorded.folder.parent.parent / "study.toml", on=["sim"], out=tmp_path, records=True)
    assert again.records.equals(recorded.records), "digests among them"
    plain = run_study(recorded.folder.parent.parent / "study.toml", on=["sim"], out=tmp_path)
    assert plain.cells.equals(recorded.cells) and plain.histograms.equals(recorded.histograms), (
        "keeping changes nothing"
    )
    assert plain.records.is_empty() and plain.requests().is_empty() and not (plain.folder / RECORDS).exists()


def test_sql_reads_them_beside_the_tables(recorded: Run) -> None:
    asked = (
        'SELECT "array", workload, count(*) FILTER (measured) AS requests FROM cells JOIN requests USING (cell) '
        "GROUP BY ALL ORDER BY ALL"
    )
    found = recorded.sql(asked)
    counted = recorded.cells.group_by("array", "workload").agg(pl.col("all_requests").sum()).sort("array", "workload")
    assert found["requests"].to_list() == counted["all_requests"].to_list()
    assert recorded.sql("SELECT * FROM requests LIMIT 1").columns == ["cell", *REQUEST_COLUMNS]
    file = recorded.folder / RECORDS / recorded.records["file"][0]
    for text in ("SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/proc/self/fd/0')"):
        with pytest.raises(Exception, match="Permission Error"):
            recorded.sql(f"{text} -- requests")
    assert file.is_file()
    done = CliRunner().invoke(app, ["results", "query", str(recorded.folder), "SELECT count(*) AS n FROM requests"])
    assert done.exit_code == 0 and str(recorded.requests().height) in done.stdout


def test_names_that_are_put_together_find_them_too(recorded: Run) -> None:
    counted = recorded.sql("SELECT count(*) AS n FROM query_table('req' || 'uests')")["n"].to_list()
    assert counted == [recorded.requests().height] and counted[0] > 0


def test_a_run_without_rows_has_an_empty_view(small_run: Run) -> None:
    assert small_run.sql("SELECT count(*) AS n, max(end_ns) AS last FROM requests").row(0) == (0, None)


def test_a_file_that_was_changed_or_leads_elsewhere_is_refused(recorded: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recorded.folder, copy)
    file = copy / RECORDS / recorded.records["file"][0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="was changed since it was written"):
        load_run(copy).requests()
    file.unlink()
    file.symlink_to(recorded.folder / RECORDS / recorded.records["file"][0])
    with pytest.raises(InputError, match="symbolic link"):
        load_run(copy).sql("SELECT * FROM requests")
    file.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        load_run(copy).requests()
    assert load_run(copy).requests([1]).height == recorded.requests([1]).height, "others can still be read"


def _with_file(recorded: Run, folder: Path, content: bytes, length: int | None = None) -> Run:
    """A copy of a run in which the first file of requests is another, and listed as it is."""
    shutil.copytree(recorded.folder, folder)
    listed = recorded.records
    file, sha256 = listed["file"][0], hashlib.sha256(content).hexdigest()
    with (folder / RECORDS / file).open("wb") as out:
        out.write(content)
        out.truncate(len(content) if length is None else length)
    facts = json.loads((folder / "run.json").read_text())
    facts["tables"] = {}
    (folder / "run.json").write_text(json.dumps(facts))
    is_first = pl.col("file") == file
    size = pl.lit(len(content) if length is None else length, dtype=listed.schema["bytes"])
    listed = listed.with_columns(
        pl.when(is_first).then(pl.lit(sha256)).otherwise("sha256").alias("sha256"),
        pl.when(is_first).then(size).otherwise("bytes").alias("bytes"),
    )
    listed.write_parquet(folder / "records.parquet")
    return load_run(folder)


def test_a_file_of_holes_is_not_read_for_hours(recorded: Run, tmp_path: Path) -> None:
    run = _with_file(recorded, tmp_path / "holes", b"PAR1", 4 << 40)
    for ask in (run.requests, lambda: run.sql("SELECT count(*) FROM requests")):
        with pytest.raises(InputError, match="was changed since it was written"):
            ask()


def test_rows_that_would_fill_the_memory_are_not_decoded(recorded: Run, tmp_path: Path) -> None:
    rows = 150_000_000
    columns = ", ".join(f"{_NOTHING[kind]} AS {name}" for name, kind in REQUEST_COLUMNS.items())
    bomb = tmp_path / "bomb.parquet"
    query = f"COPY (SELECT {columns} FROM range({rows})) TO '{bomb}' (FORMAT parquet, COMPRESSION zstd)"
    duckdb.sql(query)
    run = _with_file(recorded, tmp_path / "run", bomb.read_bytes())
    with pytest.raises(InputError, match=r"has more requests than .* MiB of memory hold"):
        run.requests()


_NOTHING = {pl.UInt64: "0::UBIGINT", pl.UInt32: "0::UINTEGER", pl.String: "'read'", pl.Boolean: "true"}


def test_files_that_are_damaged_and_listed_so_are_taken_or_refused_in_words(recorded: Run, tmp_path: Path) -> None:
    run = _with_file(recorded, tmp_path / "run", b"")
    file, refused, tries = run.folder / RECORDS / run.records["file"][0], 0, 60
    whole = (recorded.folder / RECORDS / file.name).read_bytes()
    for at in range(0, len(whole), len(whole) // tries):
        content = bytearray(whole)
        content[at] ^= 0x55
        file.write_bytes(content)
        try:
            frame_of(run.folder / RECORDS, {0: file})
        except InputError as error:
            refused += 1
            assert str(error).startswith(f"run: '{run.folder / RECORDS}': ") and "\n" not in str(error)
    assert refused > 5


def test_columns_of_other_types_are_refused(recorded: Run, tmp_path: Path) -> None:
    file = io.BytesIO()
    recorded.requests([0]).with_columns(pl.col("bytes").cast(pl.String)).write_parquet(file)
    with pytest.raises(InputError, match="have columns of other types"):
        _with_file(recorded, tmp_path / "run", file.getvalue()).requests()


def test_more_files_than_a_shell_lets_open_are_read(recorded: Run) -> None:
    code = (
        "import resource, sys\n"
        "from raidlab.results import load_run\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))\n"
        "print(load_run(sys.argv[1]).sql('SELECT count(DISTINCT cell) FROM requests').item())\n"
    )
    words = [sys.executable, "-c", code, str(recorded.folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(recorded.records.height)] and recorded.records.height > 4, done.stderr


def test_a_run_that_goes_on_keeps_rows_of_what_was_done(recorded: Run, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    run = run_study(file, on=["sim"], out=tmp_path / "runs", records=True)
    # As if it had been killed after five cells: the parts of a complete run are gone.
    loaded = load_study(file)
    writer = RunWriter(
        new_folder(tmp_path / "cut", "small"),
        loaded,
        seed=loaded.study.seed,
        targets=["sim"],
        quick=False,
        argv=["raidlab", "run", str(file)],
        records=True,
    )
    execution = Execution(loaded, resolve_targets(["sim"], (), loaded.study), seed=loaded.study.seed)
    execution.prepare()
    execution.records = writer.folder
    outcomes = execution.outcomes()
    for _ in range(5):
        outcome = next(outcomes)
        writer.add(outcome, *execution.member_shape("sim", outcome.cell.array.name))  # type: ignore[union-attr]
    outcomes.close()
    writer.close()
    (writer.folder / RECORDS / "cut-short.parquet.0123.new").write_bytes(b"half")
    whole = resume_run(writer.folder)
    assert whole.facts["status"] == "complete"
    assert whole.records.equals(run.records)
    assert sorted(one.name for one in (whole.folder / RECORDS).iterdir()) == sorted(whole.records["file"])


def test_what_cannot_be_written_ends_the_cell_with_its_place(tmp_path: Path) -> None:
    (tmp_path / RECORDS).write_text("in the way")
    with pytest.raises(CellFailedError, match=r"records/sim-a-.*cannot be written"):
        RecordWriter(tmp_path, "sim/a")


def test_engines_without_rows_say_so() -> None:
    with pytest.raises(_core.CellError, match="records"):
        _core.run_cell('{"engine": "direct"}', None, lambda _batch: None)


@pytest.mark.slow
def test_memory_is_bounded_however_long_a_cell_is(tmp_path: Path) -> None:
    """Ten million requests take no more memory than one million, but for what differs from run to run."""
    cell = {
        "engine": "sim",
        "seed": 1,
        "tree": json.loads(_core.parse_tree("raid0(2, chunk=64KiB)")),
        "members": [{"kind": "fixed", "capacity_bytes": 1 << 30, "read_us": 100.0, "write_us": 100.0}],
        "load": {"kind": "closed", "depth": 8},
        "workload": {"read": 0.5, "size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}},
    }
    script = (
        "import resource, sys\nfrom pathlib import Path\nfrom raidlab.run.runner import RecordPlace, run_request\n"
        "answer = run_request(sys.argv[1], None, RecordPlace(Path(sys.argv[2]), 'sim/a'))\n"
        "print(answer['records']['requests'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"
    )
    most_mib = []
    for requests in (1_000_000, 10_000_000):
        text = json.dumps({**cell, "measure": {"requests": requests}})
        words = [sys.executable, "-c", script, text, str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        kept, mib = map(int, done.stdout.split())
        assert kept == requests
        most_mib.append(mib)
    (file,) = (tmp_path / RECORDS).iterdir()
    assert pl.scan_parquet(file).select(pl.len()).collect().item() == 10_000_000
    assert most_mib[1] - most_mib[0] < 100, f"{most_mib} MiB"

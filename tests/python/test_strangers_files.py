"""Files that a stranger wrote: nothing in them hangs raidlab, fills the memory or runs it into the ground."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import duckdb
import polars as pl
import pytest

from conftest import SMALL_STUDY
from raidlab import reading
from raidlab.api import analyse
from raidlab.cli.run_folders import UNREADABLE, runs_in
from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.formats.disksim.grammar import parse_file
from raidlab.formats.fio.options import load_job_file
from raidlab.formats.traces import trace_facts
from raidlab.published.quantities import checked_measure
from raidlab.published.quantities.kind import NotThereError
from raidlab.published.rules.prices import load_prices
from raidlab.published.scorecard.facts import load_facts, load_network
from raidlab.report.export import EXPORTS
from raidlab.results import Run, load_run
from raidlab.results.foreign import read_foreign
from raidlab.results.parts import PartsFile, whole_lines
from raidlab.results.resume import open_unfinished
from raidlab.results.spreadsheet import spreadsheet_text
from raidlab.run.progress import PlainLines
from raidlab.study import load_study_text
from raidlab.study.device import load_device
from raidlab.study.expression import read
from raidlab.study.parameters import load_parameters
from raidlab.study.places import line_index
from raidlab.study.published import read_tables
from raidlab.study.table_file import text_of


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9**9**9", "is too large"),
        ("1e308 ** 2", "is too large"),
        ("'a' * 3000000000", "is a text where a number is needed"),
        ("3000000000 * 'a'", "is a text where a number is needed"),
        ("max('a', 'b')", "is a text where a number is needed"),
        ("(0 - 8) ** 0.5", "no value"),
        ("1" + "0" * 1900, "no value"),
    ],
)
def test_expressions_are_worked_out_in_numbers_of_bounded_size(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(text).value({})


@pytest.mark.parametrize(
    "text", ["-" * 1500 + "1", "not " * 400 + "a", "1+" * 900 + "1", "max(" * 300 + "1" + ")" * 300]
)
def test_expressions_nest_only_so_deep(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|no expression"):
        read(text)


def test_a_sum_of_a_hundred_terms_is_read() -> None:
    assert read("+".join(["1"] * 100)).value({}) == 100


def raidlab(here: Path, *words: str | bytes) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raidlab", *words]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=False, timeout=600)


def refusal(text: str, tmp_path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_study_text(text, tmp_path / "study.toml")
    return str(caught.value)


def test_a_study_of_too_many_cells_is_refused_without_listing_them(tmp_path: Path) -> None:
    depths = ", ".join(map(str, range(1, 60_001)))
    text = SMALL_STUDY.replace("[1, 8, 64]", f"[{depths}]").replace("[sim]\n", "[sim]\nrepeats = 1000\n")
    said = refusal(text, tmp_path)
    assert said.count("\n") == 0
    assert "load: asks for more cells than a run can have on sim; accepted: at most 1,000,000 cells" in said


def test_a_sweep_of_a_hundred_thousand_cells_is_no_mistake(tmp_path: Path) -> None:
    depths = ", ".join(map(str, range(1, 201)))
    text = SMALL_STUDY.replace("[1, 8, 64]", f"[{depths}]").replace("[sim]\n", "[sim]\nrepeats = 80\n")
    assert load_study_text(text, tmp_path / "study.toml").study.sim is not None


@pytest.mark.parametrize(
    "text", ["a" + ".a" * 3000 + " = 1", "[" + "a." * 3000 + "a]", "a = " + "[" * 3000 + "]" * 3000]
)
def test_deeply_nested_toml_is_one_clear_line(text: str, tmp_path: Path) -> None:
    assert "is not valid TOML: nested too deeply" in refusal(text, tmp_path)


def test_a_key_of_many_parts_is_refused_before_its_parts_are_looked_at(tmp_path: Path) -> None:
    # Python's reader takes the square of their number: 20 s of a processor for these.
    before = time.process_time()
    for text in (
        "a" + ".a" * 32_000 + " = 1",
        "x = 1\n[[" + '"a" . ' * 20_000 + "a]]",
        "x = {" + "'a'." * 20_000 + "a = 1}",
    ):
        assert "nested too deeply" in refusal(text, tmp_path)
    assert time.process_time() - before < 5
    assert reading.toml("a" + ".a" * 60 + " = 1") and reading.toml(f'a = "{"a." * 500}"')


@pytest.mark.parametrize(
    "value", ["2024-01-01", "12:00:00", "2024-01-01T12:00:00Z", "[1, 2024-01-01]", "{b = 07:00:00}"]
)
def test_a_date_of_toml_is_told_and_not_passed_on(value: str, tmp_path: Path) -> None:
    assert "is a date or a time without quotes" in refusal(f"rpm = {value}", tmp_path)
    (tmp_path / "device.toml").write_text(f'kind = "hdd"\nname = "d"\nrpm = {value}\n')
    with pytest.raises(ValueError, match="is a date or a time without quotes"):
        load_device("device.toml", tmp_path / "study.toml")


def test_a_file_may_begin_with_the_mark_of_its_encoding(tmp_path: Path) -> None:
    study, jobs, trace = (tmp_path / name for name in ("study.toml", "jobs.fio", "trace.csv"))
    study.write_text(SMALL_STUDY, encoding="utf-8-sig")
    assert load_study_text(text_of(study, "a study"), study).study.name
    jobs.write_text("[a]\nrw=read\nsize=4k\n", encoding="utf-8-sig")
    assert [job.section.name for job in load_job_file(jobs).jobs] == ["a"]
    trace.write_text(
        "128166372003061629,hm,0,Read,0,4096,151\n128166372003061630,hm,0,Write,4096,4096,151\n", encoding="utf-8-sig"
    )
    assert trace_facts(trace).requests == 2


@pytest.mark.parametrize(
    "opened", ["D d { A = " + "B { A = " * 500, "D d { A = " + "[" * 500, "topology d a [ " + "d a [ " * 500]
)
def test_deep_parameters_of_disksim_are_refused(opened: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.parv"
    file.write_text(opened)
    with pytest.raises(InputError, match="is nested too deeply"):
        parse_file(file)


def test_finding_the_lines_of_keys_takes_no_longer_than_the_text_is_long() -> None:
    # Each was tried in every way it can be divided: these took longer than anybody waits.
    for line in ("." * 60, "[" + " " * 20_000, "a" + " . " * 5_000, '"' * 5_000):
        assert line_index(f"x = [\n{line}\n]\ny = 1")[("y",)] == 4


@pytest.mark.parametrize(
    "reader",
    [
        trace_facts,
        load_job_file,
        lambda file: load_prices(file, None),
        load_facts,
        lambda file: load_network(f"box={file}"),
        read_foreign,
        parse_file,
        lambda file: read_tables(file.parent, file.name),
        lambda file: text_of(file, "a study"),
    ],
)
def test_a_pipe_a_directory_and_a_device_are_told_and_not_read(reader, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pipe, folder, device = tmp_path / "pipe.csv", tmp_path / "folder.csv", tmp_path / "device.csv"
    os.mkfifo(pipe)
    folder.mkdir()
    device.symlink_to("/dev/zero")
    for file, kind in ((pipe, "a named pipe"), (folder, "a directory"), (device, "a device")):
        with pytest.raises(InputError, match=kind) as caught:
            reader(file)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_that_of_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no file can be called so"):
        reading.read_bytes(tmp_path / name)


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="the kernel's log is root's")
def test_the_log_of_the_kernel_is_waited_for_by_no_reader() -> None:
    # In a process of its own: it would wait for ever.
    code = (
        "from pathlib import Path\nfrom raidlab.formats.traces import trace_facts\n"
        "from raidlab.study.table_file import text_of\nfrom raidlab.errors import InputError\n"
        "for read in (trace_facts, lambda file: text_of(file, 'a study')):\n"
        "    try:\n        read(Path('/proc/kmsg'))\n    except InputError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and done.stdout.count("\n") >= 1, done


@pytest.mark.parametrize(
    "words", [("run", b"./st\xffudy.toml"), ("results", "list", b"\xff"), ("trace", "show", b"a\xe9.csv")]
)
def test_a_name_that_is_not_unicode_is_told_in_words(words: tuple[str | bytes, ...], tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(words[-1])).write_text(SMALL_STUDY)
    done = raidlab(tmp_path, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert "is not UTF-8" in done.stderr and "accepted: a name in UTF-8" in done.stderr


def test_a_directory_that_is_not_unicode_is_told_in_words(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (tmp_path / "plain").symlink_to(odd)
    done = raidlab(odd, "results", "list")
    assert done.returncode == 2 and "the current directory: " in done.stderr and done.stderr.count("\n") == 1
    (tmp_path / "study.toml").write_text(SMALL_STUDY.replace('"sim"', '"plain/"'))
    for words in (("measure", "plain", "--runtime", "1s"), ("run", "./study.toml")):
        done = raidlab(tmp_path, *words)
        assert done.returncode == 2 and "leads to a name that is not UTF-8" in done.stderr, done
    assert not list(odd.iterdir())


def test_a_current_directory_that_is_gone_is_told_to_be(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [sys.executable, "-m", "raidlab", "results", "list"]
    code = f"import os, sys; os.rmdir('../gone'); os.execv(sys.executable, {words})"
    done = subprocess.run([sys.executable, "-c", code], cwd=gone, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: the current directory: cannot be found"), done


def test_files_read_whole_have_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    with file.open("wb") as out:
        out.truncate(reading.MOST_BYTES + 1)
    with pytest.raises(InputError, match="it is longer than 16,777,216 bytes"):
        text_of(file, "a study")


@pytest.mark.parametrize("written", ["0x" + "F" * 4000, "0b1" + "0" * 128, f"-{1 << 128}", "9" * 5000])
def test_an_integer_of_toml_has_at_most_128_bits(written: str, tmp_path: Path) -> None:
    assert reading.toml(f"a = {(1 << 128) - 1}\nb = [-{1 << 64}]") == {"a": (1 << 128) - 1, "b": [-(1 << 64)]}
    file = tmp_path / "study.toml"
    file.write_text(f'name = "s"\n[sim]\ndepths = [1, {written}]\n')
    with pytest.raises(InputError) as caught:
        load_study_text(file.read_text(), file)
    said = "thousands of digits" if len(written) == 5000 else "the integer of 'sim.depths' has more than 128 bits"
    assert said in str(caught.value) and str(caught.value).count("\n") == 0 and len(str(caught.value)) < 300


def test_json_is_of_bounded_depth() -> None:
    assert reading.json_value('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]} and reading.json_value("1") == 1
    for text in ("[" * 100 + "]" * 100, "[" * 100_000 + "]" * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            reading.json_value(text)


def test_devices_and_parameters_that_are_deep_are_no_devices(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text("a" + ".a" * 3000 + " = 1")
    for load in (load_device, load_parameters):
        with pytest.raises(ValueError, match="nested too deeply"):
            load("deep.toml", tmp_path / "study.toml")


def test_a_job_file_of_a_billion_jobs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jobs.fio"
    file.write_text("[a]\nrw=read\nsize=4k\nnumjobs=1000000000\n")
    with pytest.raises(InputError, match="is more than fio runs at once; accepted: a whole number from 1 to 4096"):
        load_job_file(file)
    file.write_text("".join(f"[{name}]\nrw=read\nsize=4k\nnumjobs=4000\n" for name in "ab"))
    with pytest.raises(InputError, match="all jobs together have too many clones; accepted: at most 4096"):
        load_job_file(file)


def test_a_trace_of_completions_only_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "done.txt"
    file.write_text("".join(f"8,0 1 {i} 0.{i:03} 0 C W {8 * i} + 8 [0]\n" for i in range(1, 20)))
    done = subprocess.run(
        [sys.executable, "-m", "raidlab", "trace", "show", str(file), "--format", "blkparse"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "holds no requests of data: 19 lines are of other events" in done.stderr and done.stderr.count("\n") == 1


def test_arrays_that_are_not_equal_are_told_before_anything_runs(tmp_path: Path) -> None:
    equal = 'equal = "user_capacity"'
    assert equal in SMALL_STUDY
    said = refusal(SMALL_STUDY.replace(equal, 'equal = "members"'), tmp_path)
    assert (
        "compare[0].equal: 'members': the arrays of 'Equal user capacity' differ: members from 4 to 8 (on sim)" in said
    )
    said = refusal(SMALL_STUDY.replace("raid5(5,", "raid5(7,"), tmp_path)
    assert "differ: user capacity from" in said and 'or equal = "members"' in said


def test_arrays_that_are_not_equal_on_real_members_are_told_before_anything_runs(tmp_path: Path) -> None:
    simulated = SMALL_STUDY[SMALL_STUDY.index("[sim]") : SMALL_STUDY.index("[live]")]
    text = SMALL_STUDY.replace("raid5(5,", "raid5(7,").replace(simulated, "").replace('"sim"', '"memory"')
    (tmp_path / "study.toml").write_text(text)
    done = raidlab(tmp_path, "run", "./study.toml", "--on", "memory", "--quick")
    assert done.returncode == 2 and "compare[0].equal: 'user_capacity'" in done.stderr, done
    assert "(on live)" in done.stderr and not list(tmp_path.glob("**/run.json"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_blob('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_parquet('{run}/cells.parquet')",
        "SELECT * FROM glob('{run}/*')",
        "SELECT * FROM sniff_csv('{secret}')",
        "SELECT getenv('HOME')",
        "SELECT * FROM frame",
        "SELECT * FROM range(1000001)",
        "COPY cells TO '{here}/stolen.csv'",
        "ATTACH '{here}/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "CREATE PERSISTENT SECRET s (TYPE s3)",
    ],
)
def test_a_query_sees_the_tables_and_nothing_else(query: str, small_run: Run, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises((InputError, duckdb.Error)):
        small_run.sql(query.format(secret=secret, here=here, run=small_run.folder))
    assert not list(here.iterdir())


def test_a_query_touches_no_home_directory_and_fails_in_one_line(small_run: Run, tmp_path: Path) -> None:
    words = [str(small_run.folder), "SELECT * FROM read_text('/etc/hostname')"]
    done = subprocess.run(
        [sys.executable, "-m", "raidlab", "results", "query", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 2, done
    assert done.stdout == "" and done.stderr.startswith("error: SQL: ") and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_time_with_a_zone_is_one_line(small_run: Run) -> None:
    if importlib.util.find_spec("pytz") is not None:
        pytest.skip("with pytz such times are shown")
    for query in ("SELECT now()", "SELECT [now()]"):
        with pytest.raises(InputError, match=r"answers with a time in a time zone; accepted: .*::TIMESTAMP") as caught:
            small_run.sql(query)
        assert "\n" not in str(caught.value)
    assert small_run.sql("SELECT now()::TIMESTAMP AS at").height == 1


def test_an_answer_that_python_cannot_hold_is_one_line(small_run: Run) -> None:
    with pytest.raises(InputError, match=r"answers with what Python has no room for; accepted: .*::VARCHAR"):
        small_run.sql("SELECT INTERVAL 178000000 MONTHS")
    for query in ("SELECT repeat('x', 1000000) FROM range(500)", "SELECT [repeat('x', 1000000)] FROM range(500)"):
        with pytest.raises(InputError, match="answers with more than 256 MiB of text"):
            small_run.sql(query)
    with pytest.raises(InputError, match="has more than 1,000,000 rows"):
        small_run.sql("SELECT * FROM range(1000001)")
    assert small_run.sql("SELECT * FROM range(1000000) -- so many").height == 1_000_000


def test_ctrl_c_ends_a_query_that_gives_no_rows_for_long(small_run: Run) -> None:
    code = (
        "import os, signal, sys, threading\n"
        "from raidlab.results import load_run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run = load_run(sys.argv[1])\n"
        "threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    run.sql('SELECT sum(a.i * b.i) FROM range(100000000) a(i), range(1000000) b(i)')\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    words = [sys.executable, "-c", code, str(small_run.folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "ended\n", done.stderr


def test_a_query_cannot_be_let_out_again(small_run: Run) -> None:
    found = small_run.sql("SELECT name, value FROM duckdb_settings()")
    settings = dict(zip(found["name"], found["value"], strict=True))
    shut = ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions")
    assert [settings[name] for name in shut] == ["false"] * 3 and settings["lock_configuration"] == "true"
    assert small_run.sql("SELECT count(*) FROM cells").item() == small_run.cells.height


@pytest.mark.parametrize(
    ("query", "columns", "last"),
    [
        ("SELECT CASE WHEN i > 999 THEN 'late' END AS word FROM range(1001) t(i)", ["word"], ("late",)),
        ("SELECT a.cell, b.cell FROM cells a, cells b ORDER BY a.cell, b.cell LIMIT 1", ["cell", "cell_1"], (0, 0)),
        ("SELECT 1 AS a, 2 AS a, 3 AS a_1", ["a", "a_1", "a_1_1"], (1, 2, 3)),
        ("SELECT map {1: 2} AS pairs", ["pairs"], ("{1: 2}",)),
        ("SELECT cell FROM cells WHERE false", ["cell"], None),
    ],
)
def test_whatever_duckdb_answers_is_shown(
    query: str, columns: list[str], last: tuple[object, ...] | None, small_run: Run
) -> None:
    found = small_run.sql(query)
    assert found.columns == columns
    assert (found.rows()[-1] if found.height else None) == last


def test_a_run_whose_facts_nest_deeply_is_refused_in_words_and_the_others_are_listed(
    small_run: Run, tmp_path: Path
) -> None:
    shutil.copytree(small_run.folder, tmp_path / "good")
    shutil.copytree(small_run.folder, tmp_path / "deep")
    (tmp_path / "deep" / "run.json").write_text("[" * 100_000 + "]" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match="nested too deeply"):
        load_run(tmp_path / "deep")
    with pytest.raises(InputError, match=r"has no parts.jsonl"):
        open_unfinished(tmp_path / "deep")
    assert [(row["run"], row["status"]) for row in runs_in(tmp_path)] == [("deep", UNREADABLE), ("good", "complete")]


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31m \u202eevil"


def test_a_failure_of_a_strangers_run_folder_does_not_act_on_the_terminal(small_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**facts, "status": "failed", "failure": ESCAPES}), encoding="utf-8")
    # A terminal of its own, in which Rich sets its colours.
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "raidlab", "results", "show", str(folder)]
    with subprocess.Popen(program, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as running:
        os.close(theirs)
        shown = b""
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                shown += piece
        running.wait()
    os.close(ours)
    text = shown.decode()
    assert "\\x1b]0;owned" in text and "evil" in text
    assert set(re.findall(r"\x1b(?!\[[0-9;]*m).{3}", text)) == set() and "\x1b[31m \\u202e" not in text
    assert "\u202e" not in text and "\x07" not in text
    # Its own colours are there.
    assert "\x1b[1;31m" in text or "\x1b[1m" in text


def test_plain_prints_and_progress_do_not_act_on_the_terminal_either(capfd: pytest.CaptureFixture[str]) -> None:
    code = f"from raidlab.cli.terminal import mark_output; mark_output(); print({ESCAPES!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\\x1b]0;owned\\x07\\x1b[2J\\x1b[31m \\u202eevil\n"
    PlainLines(sys.stderr).note(ESCAPES)
    assert "\x1b" not in capfd.readouterr().err


def test_what_commands_print_plainly_does_not_act_on_the_terminal(small_run: Run, tmp_path: Path) -> None:
    folders = [tmp_path / f"{name}\x1b[2J" for name in "ab"]
    for folder in folders:
        shutil.copytree(small_run.folder, folder)
    program = [sys.executable, "-m", "raidlab", "results", "compare", *map(str, folders)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3) and "a\\x1b[2J\nB  " in done.stdout and "\x1b" not in done.stdout, done


def test_cells_of_csv_are_no_formulas(tmp_path: Path, small_run: Run) -> None:
    for text in ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "-2+3+cmd|' /C calc'!A0"):
        assert spreadsheet_text(text) == f"'{text}"
    for text in ("-1.5", "+3e4", "-", "raid5", "", "-inf"):
        assert spreadsheet_text(text) == text
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    cells = pl.read_parquet(folder / "cells.parquet").with_columns(pl.col("workload").replace("reads", "=cmd()"))
    cells.write_parquet(folder / "cells.parquet")
    holds = pl.read_parquet(folder / "holds.parquet").with_columns(pl.col("workload").replace("reads", "=cmd()"))
    holds.write_parquet(folder / "holds.parquet")
    histograms = small_run.histograms
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    facts["study"]["text"] = facts["study"]["text"].replace('"reads"', '"=cmd()"')
    facts["study"]["sha256"] = hashlib.sha256(facts["study"]["text"].encode()).hexdigest()
    (folder / "run.json").write_text(json.dumps({**facts, "tables": {}}), encoding="utf-8")
    with Directory.open(tmp_path) as place:
        points, _ = EXPORTS["csv"](analyse(folder), place)
    text = points.read_text(encoding="utf-8")
    assert "'=cmd()" in text and ",=cmd()" not in text and histograms.height


def test_a_digit_changed_in_the_parts_is_found(tmp_path: Path) -> None:
    file = tmp_path / "parts.jsonl"
    parts = PartsFile(file)
    for number in (1111, 2222, 3333):
        parts.append({"row": {"depth": number}, "rank": [number]})
    parts.close()
    assert [record for _, record in whole_lines(file)][2] == {"row": {"depth": 3333}, "rank": [3333]}
    whole = file.read_text(encoding="utf-8")
    for number, line in enumerate(whole.splitlines(keepends=True), start=1):
        said = rf"^line {number} of parts.jsonl was changed after it was written \(its checksum does not fit\); without"
        without = line.partition(',"crc32"')[0] + "}\n"
        for changed in (line.replace("1", "7", 1) if number == 1 else line.replace(f"{number}", "7", 1), without):
            file.write_text(whole.replace(line, changed), encoding="utf-8")
            if number == 1 and changed == without:
                # Nothing before it tells that it had one.
                assert len(list(whole_lines(file))) == 3
                continue
            with pytest.raises(ValueError, match=said):
                list(whole_lines(file))
    file.write_text('{"row": {"depth": 1}, "rank": [1]}\n', encoding="utf-8")
    assert len(list(whole_lines(file))) == 1


def test_devices_that_are_like_one_another_are_counted(tmp_path: Path) -> None:
    for number in range(1101):
        (tmp_path / f"d{number}.toml").write_text(f'like = "./d{number + 1}.toml"\n')
    (tmp_path / "d1101.toml").write_text('like = "hdd-7200"\n')
    with pytest.raises(ValueError, match=r"like: './d16.toml': is like one that is like another, 16 times in a row"):
        load_device("./d0.toml", tmp_path / "study.toml")
    assert load_device("./d1090.toml", tmp_path / "study.toml").name == "./d1090.toml"


@pytest.mark.parametrize("figures", ["published = [1]", "held_out = [{ kind = 'x' }]", "published = [{ value = nan }]"])
def test_figures_of_a_device_are_told_before_a_run_keeps_them(figures: str, tmp_path: Path) -> None:
    device = 'device = "hdd-7200-bare"'
    assert device in SMALL_STUDY
    inline = SMALL_STUDY.replace(device, f'device = {{ like = "hdd-7200", {figures} }}')
    key = figures.partition(" ")[0]
    assert f"sim.device.{key}[0]" in refusal(inline, tmp_path)
    (tmp_path / "dev.toml").write_text(f'like = "hdd-7200"\n{figures}\n')
    named = SMALL_STUDY.replace(device, 'device = "./dev.toml"')
    assert f"sim.device: './dev.toml': {tmp_path}/dev.toml:2: {key}[0]" in refusal(named, tmp_path)


def test_true_is_no_number_of_hardware_or_of_a_measure(tmp_path: Path) -> None:
    said = 'name = "h"\n[parameter.n]\nvalue = true\nunit = "1"\nstatus = "assumed"\nwhy = "x"\n'
    (tmp_path / "hw.parameters.toml").write_text(said)
    with pytest.raises(ValueError, match=r"parameter\.n\.value: is not a number"):
        load_parameters("./hw.parameters.toml", tmp_path / "study.toml")
    measure = {"kind": "metric", "array": "a", "workload": "w", "metric": "iops"}
    assert checked_measure({**measure, "at": {"depth": 1}})
    for at in ({"depth": True}, {"ms": True, "percentile": 90}, {"ms": 1, "percentile": True}):
        with pytest.raises(NotThereError, match=r"at\.\w+: is not a"):
            checked_measure({**measure, "at": at})


def test_results_of_others_are_read_as_they_stand(tmp_path: Path) -> None:
    file, head = tmp_path / "others.csv", "controller,level,workload,depth,iops"
    for text, said in (
        (f"{head},iops\na,b,c,1,100,2\n", "has the column 'iops' twice"),
        (f"{head}\na,b,c,1_0,100\n", "has a depth that is none"),
        (f"{head}\na,b,c,10,1_000\n", "has a number of requests a second that is none"),
        (f"{head}\na,b,c,\u0661,100\n", "has a depth that is none"),
        (f"{head}\n\n\na,b,c,10\n", r"others\.csv:4: does not have as many fields"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            read_foreign(file)
    file.write_text(f"{head}\na,b,c,10,.5e3\n")
    assert [(row.depth, row.iops) for row in read_foreign(file)] == [(10, 500)]
    (tmp_path / "table.csv").write_text("key,value,value\na,1,2\n")
    with pytest.raises(InputError, match="has the column 'value' twice"):
        read_tables(tmp_path, "table.csv")

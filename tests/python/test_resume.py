"""Runs that are killed and go on: nothing is lost but the cell in progress, and nothing is run twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import test_emulated
from conftest import SMALL_STUDY, unmount
from raidlab.api import resume_run, run_study
from raidlab.cli.run_folders import folder_of, runs_in
from raidlab.directory import Directory
from raidlab.errors import InputError, OutputError
from raidlab.results import Run, RunWriter, load_run, new_folder, open_unfinished
from raidlab.results import parts as parts_module
from raidlab.results import resume as results_resume
from raidlab.results.parts import PartsFile, read_parts, whole_lines
from raidlab.results.tables import TABLES
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Silent
from raidlab.run.schedule import in_run_order
from raidlab.study import expand, load_study

PATIENCE_S = 600

# The command line, but for one thing: at the moment asked for it is killed, as by `kill -9`.
KILLED_AT = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from raidlab.directory import Directory
from raidlab.results import parts

what, left = sys.argv.pop(1), int(sys.argv.pop(1))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def append(self, record, whole=parts.PartsFile.append):
    global left
    if "facts" not in record:
        if left == 0:
            line = b"".join(parts.record_pieces(record))
            os.write(self._file.fileno(), line[: len(line) // 2])
            die()
        left -= 1
    whole(self, record)

@contextmanager
def replacing(self, name, whole=Directory.replacing):
    global left
    with whole(self, name) as file:
        yield file
        if left == 0:
            file.truncate(file.seek(0, os.SEEK_END) // 2)
            die()
    left -= 1

def remove(self, name, whole=Directory.remove):
    if name == parts.PARTS:
        die()
    whole(self, name)

if what == "append":
    parts.PartsFile.append = append
elif what == "write":
    Directory.replacing = replacing
else:
    Directory.remove = remove

from raidlab.cli.app import main
main()
"""


def _killed(folder: Path, what: str, left: int, *words: str) -> subprocess.CompletedProcess[str]:
    """A command that is killed before the ``left``-th writing of some kind is whole."""
    command = [sys.executable, "-c", KILLED_AT, what, str(left), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == -9, f"it was not killed: {done.returncode}\n{done.stderr}"
    return done


def _raidlab(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raidlab", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def _the_run(folder: Path) -> Path:
    (found,) = (folder / "runs").iterdir()
    return found


def _tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.parquet").read_bytes() for name in TABLES}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(SMALL_STUDY, encoding="utf-8")
    return tmp_path


SIM = ("run", "study.toml", "--seed", "1")


def without_checksums(file: Path) -> str:
    """The text of a file of parts as it was written before lines had checksums, which a test may change."""
    return re.sub(r',"crc32":"[0-9a-f]{8}"}', "}", file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("done", [0, *(pytest.param(done, marks=pytest.mark.slow) for done in (7, 40))])
def test_a_killed_simulation_goes_on_to_the_same_tables(done: int, study: Path, small_run: Run) -> None:
    _killed(study, "append", done, *SIM)
    folder = _the_run(study)
    cut = load_run(folder)
    assert cut.cells.height + cut.holds.height == done
    assert cut.facts["status"] == "failed" and "was killed" in cut.facts["failure"]
    # Reading it has not taken away what it can go on from.
    finished = _raidlab(study, "run", "--resume", "last")
    assert finished.returncode in (0, 3), finished.stderr
    assert f"{cut.cells.height} cells are done" in finished.stderr
    assert _tables(folder) == _tables(small_run.folder)
    facts = load_run(folder).facts
    assert facts["status"] == "complete" and facts["failure"] is None
    assert len(facts["times"]["sessions"]) == 2
    assert not (folder / "parts.jsonl").exists()
    same = {"study", "seed", "targets", "quick", "devices", "trees", "host", "raidlab", "schema_version"}
    assert {key: facts[key] for key in same} == {key: small_run.facts[key] for key in same}


@pytest.mark.slow
def test_a_resumed_run_may_be_killed_too(study: Path, small_run: Run) -> None:
    _killed(study, "append", 3, *SIM)
    folder = _the_run(study)
    _killed(study, "append", 4, "run", "--resume", str(folder))
    assert load_run(folder).cells.height == 7
    _killed(study, "append", 2, "run", "study.toml", "--resume", str(folder))
    assert _raidlab(study, "run", "--resume", folder.name).returncode in (0, 3)
    assert _tables(folder) == _tables(small_run.folder)
    assert len(load_run(folder).facts["times"]["sessions"]) == 4


@pytest.mark.parametrize(("what", "left"), [("write", 4), ("write", len(TABLES)), ("unlink", 0)])
@pytest.mark.slow
def test_a_run_killed_while_it_is_finished_loses_nothing(what: str, left: int, study: Path, small_run: Run) -> None:
    _killed(study, what, left, *SIM)
    folder = _the_run(study)
    left_behind = {file.name: file.read_bytes() for file in folder.iterdir()}
    shown = load_run(folder)
    for name in TABLES:
        assert_frame_equal(getattr(shown, name), getattr(small_run, name))
    assert shown.sql("SELECT count(*) AS cells FROM cells")["cells"][0] == small_run.cells.height
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == left_behind, "reading writes nothing"
    done = _raidlab(study, "run", "--resume", str(folder))
    assert done.returncode in (0, 3), done.stderr
    assert load_run(folder).facts["status"] == "complete"
    assert not list(folder.glob("*.new")), "what got no name is taken away"
    assert _tables(folder) == _tables(small_run.folder)


@pytest.mark.slow
def test_a_killed_live_run_keeps_its_cells_and_runs_the_rest(study: Path) -> None:
    disks = study / "disks"
    disks.mkdir()
    _killed(study, "append", 5, "run", "study.toml", "--on", f"{disks}/", "--quick", "--seed", "1")
    folder = _the_run(study)
    before = load_run(folder).cells
    assert before.height == 5
    done = _raidlab(study, "run", "--resume", str(folder))
    assert done.returncode in (0, 3), done.stderr
    run = load_run(folder)
    assert run.facts["status"] == "complete"
    assert not list(disks.iterdir()), "neither the killed run's files nor the resumed one's are left"
    keys = ["target", "array", "workload", "load", "depth", "repeat"]
    kept = run.cells.join(before.select(keys), on=keys, how="inner")
    assert_frame_equal(kept.drop("cell"), before.drop("cell"), check_row_order=False)
    assert run.cells.unique(keys).height == run.cells.height
    # Every cell is at the place in the order that the seed gives it, whoever ran it.
    loaded = load_study(study / "study.toml")
    order = in_run_order(expand(loaded.study, "live", seed=1, quick=True).cells, 1)
    live = run.cells.filter(pl.col("target") == "live")
    places = {tuple(row[key] for key in keys): row["order"] for row in live.iter_rows(named=True)}
    for place, cell in enumerate(order):
        identity = ("live", cell.array.name, cell.workload.name, cell.load.kind, cell.load.depth, cell.repeat)
        assert places[identity] == place
    assert sorted(places.values()) == list(range(len(places)))


def test_a_killed_emulated_run_goes_on(tmp_path: Path) -> None:
    test_emulated.study(tmp_path)
    _killed(tmp_path, "append", 2, "run", "study.toml")
    folder = _the_run(tmp_path)
    assert _raidlab(tmp_path, "run", "--resume", "last").returncode in (0, 3)
    run = load_run(folder)
    assert run.facts["status"] == "complete"
    assert run.cells.height == 4 and sorted(run.cells["order"]) == [0, 1, 2, 3]


class _StopAfter(Silent):
    """Ctrl-C after so many cells."""

    def __init__(self, stop: StopFlag, cells: int) -> None:
        self.stop, self.left = stop, cells

    def advance(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.stop.raise_flag()


def _interrupted(file: Path, on: str, cells: int) -> Run:
    stop = StopFlag()
    run = run_study(file, on=[on], out=file.parent / "runs", seed=1, stop=stop, progress=_StopAfter(stop, cells))
    assert run.facts["status"] == "interrupted"
    return run


def test_an_interrupted_run_goes_on(small_study: Path, small_run: Run) -> None:
    run = _interrupted(small_study, "sim", 4)
    assert run.cells.height >= 4
    again = resume_run(run.folder, small_study)
    assert again.facts["status"] == "complete" and again.facts["interrupted_by"] is None
    assert _tables(again.folder) == _tables(small_run.folder)


def test_a_cell_that_was_cut_short_is_run_again(small_study: Path) -> None:
    run = _interrupted(small_study, "memory", 4)
    # What the engine says of a cell that was ended early, in the place of a whole one.
    file = run.folder / "parts.jsonl"
    lines = [json.loads(line) for line in without_checksums(file).splitlines()]
    cut = next(line for line in lines if "answer" in line)
    cut["answer"]["interrupted"] = True
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    again = resume_run(run.folder, small_study)
    assert again.facts["status"] == "complete"
    assert not again.cells["interrupted"].any()
    assert again.cells.unique(["target", "array", "workload", "load", "depth", "repeat"]).height == again.cells.height


def test_a_complete_run_is_only_read(small_run: Run, small_study: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in small_run.folder.iterdir()}
    assert open_unfinished(small_run.folder) is None
    assert resume_run(small_run.folder, small_study).facts == small_run.facts
    assert {file.name: file.stat().st_mtime_ns for file in small_run.folder.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "given", "expected"),
    [
        (None, {"seed": 2}, "its seed was 1, not 2"),
        (None, {"on": ["memory"]}, "it ran on sim, not on memory"),
        (None, {"quick": True}, "it was not --quick"),
        (lambda text: text.replace("[1, 8, 64]", "[1, 8, 32]"), {}, "the study 'small' has changed since"),
        (lambda text: text.replace('name = "small"', 'name = "large"'), {}, "it ran the study 'small', not 'large'"),
    ],
)
def test_a_run_goes_on_only_as_what_it_was(
    change: Callable[[str], str] | None, given: dict[str, Any], expected: str, small_study: Path
) -> None:
    run = _interrupted(small_study, "sim", 2)
    if change is not None:
        small_study.write_text(change(small_study.read_text(encoding="utf-8")), encoding="utf-8")
    before = (run.folder / "parts.jsonl").read_bytes()
    with pytest.raises(InputError) as caught:
        resume_run(run.folder, small_study, **given)
    assert len(caught.value.problems) == 1 and expected in str(caught.value), caught.value
    assert str(caught.value).startswith(f"--resume: '{run.folder}': cannot go on as what it was: ")
    assert (run.folder / "parts.jsonl").read_bytes() == before
    assert load_run(run.folder).facts == run.facts


def test_another_version_or_machine_does_not_go_on(small_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = _interrupted(small_study, "sim", 2)
    timed = _interrupted(small_study, "memory", 2)
    here = results_resume.host_facts()
    monkeypatch.setattr(results_resume, "host_facts", lambda: {**here, "cpu": "another", "memory_kib": 1 << 20})
    with pytest.raises(InputError, match=r"processor was .*, and is another; the machine's memory was"):
        resume_run(timed.folder, small_study)
    # What is simulated is the same on every machine.
    version = {**simulated.facts["raidlab"], "version": "0.0.9"}
    with monkeypatch.context() as patched:
        patched.setattr(results_resume, "version_facts", lambda: version)
        with pytest.raises(InputError, match=r"it was run by raidlab .*, and this is 0\.0\.9"):
            resume_run(simulated.folder, small_study)
    assert resume_run(simulated.folder, small_study).facts["status"] == "complete"


def test_other_members_are_refused_before_anything_is_measured(small_study: Path) -> None:
    run = _interrupted(small_study, "memory", 2)
    file = run.folder / "parts.jsonl"
    text = without_checksums(file)
    assert '"io":"memory"' in text
    file.write_text(text.replace('"io":"memory"', '"io":"direct"'), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"the io of member 0 was direct, and is memory; accepted: the members it ran on"
    ):
        resume_run(run.folder, small_study)
    after = load_run(run.folder)
    assert after.facts["status"] == "failed" and after.cells.height == run.cells.height


def test_what_cannot_go_on_is_one_clear_error(small_run: Run, small_study: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"--resume: .*: has no parts.jsonl: nothing had been written of it; accepted"):
        resume_run(empty, small_study)
    with pytest.raises(InputError, match=r"no parts.jsonl"):
        resume_run(tmp_path / "nosuch", small_study)
    (empty / "parts.jsonl").write_text("no json\n", encoding="utf-8")
    with pytest.raises(InputError, match="was killed before it wrote what it runs"):
        resume_run(empty, small_study)
    loaded = load_study(small_study)
    for command, expected in (("run", "is still being written"), ("measure", "was made by raidlab measure")):
        folder = new_folder(tmp_path / "runs", "small")
        writer = RunWriter(folder, loaded, seed=1, targets=["sim"], quick=False, argv=[], command=command)
        if command == "measure":
            writer._parts.close()
        with pytest.raises(InputError, match=expected):
            resume_run(folder, small_study)
        writer._parts.close()
    other = tmp_path / "other"
    shutil.copytree(small_run.folder, other)
    facts = json.loads((other / "run.json").read_text(encoding="utf-8"))
    (other / "run.json").write_text(json.dumps({**facts, "status": "failed"}), encoding="utf-8")
    with pytest.raises(InputError, match=r"has no parts.jsonl to go on from"):
        resume_run(other, small_study)


def test_a_run_is_listed_while_it_goes_on_and_when_it_was_killed(small_study: Path, tmp_path: Path) -> None:
    loaded, out = load_study(small_study), tmp_path / "runs"
    writer = RunWriter(new_folder(out, "small"), loaded, seed=1, targets=["sim"], quick=False, argv=[])
    (row,) = runs_in(out)
    assert (row["status"], row["targets"], row["run"]) == ("running", "sim", writer.folder.name)
    with pytest.raises(InputError, match="still being written"):
        folder_of("last", out)
    writer._parts.close()
    assert [row["status"] for row in runs_in(out)] == ["cut short"]
    assert folder_of("last", out) == writer.folder


def test_a_torn_end_is_no_line(tmp_path: Path) -> None:
    file = tmp_path / "parts.jsonl"
    parts = PartsFile(file)
    parts.append({"facts": {"study": 1}})
    parts.append({"rank": [1], "row": {}})
    parts.close()
    whole = file.read_bytes()
    for torn in (b'{"rank": [2], "ro', b"\0\0\0\0\n", b'{"rank": [2], "row"\n'):
        file.write_bytes(whole + torn)
        assert [record["rank"] for record in read_parts(tmp_path)[2]] == [[1]]
        again = PartsFile(file, resumed=True)
        assert file.read_bytes() == whole
        again.append({"rank": [3], "row": {}})
        again.close()
        assert [record["rank"] for record in read_parts(tmp_path)[2]] == [[1], [3]]
    file.write_bytes(b"garbage\n" + whole)
    with pytest.raises(ValueError, match="Expecting value"):
        read_parts(tmp_path)


def test_parts_that_cannot_be_written_end_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = PartsFile(tmp_path / "parts.jsonl")
    parts.append({"facts": {}})
    before = (tmp_path / "parts.jsonl").read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", full)
        patched.setattr(parts_module, "_SYNC_EVERY_S", 0.0)
        with pytest.raises(OSError, match="No space left"):
            parts.append({"rank": [1], "row": {}})
    assert (tmp_path / "parts.jsonl").read_bytes() == before
    parts.append({"rank": [2], "row": {}})
    assert [record["rank"] for record in read_parts(tmp_path)[2]] == [[2]]


def test_parts_are_synced_at_once_and_then_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s, synced = 0.0, list[float]()
    monkeypatch.setattr(os, "fdatasync", lambda _descriptor: synced.append(clock_s))
    monkeypatch.setattr(parts_module.time, "monotonic", lambda: clock_s)
    parts = PartsFile(tmp_path / "parts.jsonl")
    for at_s in (0.0, 0.4, 0.9, 1.1, 1.2, 9.0, 9.5):
        clock_s = at_s
        parts.append({"rank": [at_s], "row": {}})
    assert synced == [0.0, 1.1, 9.0]
    parts.close()
    assert synced == [0.0, 1.1, 9.0, 9.5], "what is left unsynced is synced at the end"


@pytest.mark.slow
def test_a_run_that_filled_its_disk_goes_on(study: Path, small_run: Run) -> None:
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    out = study / "runs"
    out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(out)], check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        done = _raidlab(study, *SIM)
        assert done.returncode == 1, done.stderr
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and "No space left on device" in errors[0] and "raidlab run --resume" in errors[0]
        folder = _the_run(study)
        kept = len(read_parts(folder)[1])
        assert kept > 0
        again = _raidlab(study, "run", "--resume", str(folder))
        assert again.returncode == 1 and "No space left on device" in again.stderr, "still full"
        assert len(read_parts(folder)[1]) >= kept
        subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
        assert _raidlab(study, "run", "--resume", str(folder)).returncode in (0, 3)
        assert _tables(folder) == _tables(small_run.folder)
    finally:
        unmount(out)


def test_a_folder_that_cannot_be_written_is_not_resumed(small_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _interrupted(small_study, "sim", 2)

    def refuse(self: Directory, name: str, flags: int = os.O_RDONLY, whole: Any = Directory.open_file) -> int:
        if flags != os.O_RDONLY:
            raise OSError(30, "Read-only file system")
        return int(whole(self, name))

    monkeypatch.setattr(Directory, "open_file", refuse)
    with pytest.raises(OutputError, match="cannot be written: Read-only file system"):
        open_unfinished(run.folder)


def test_nothing_known_reaches_the_engine(small_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run asks the engine for what is missing, and for nothing else."""
    from raidlab.run import runner

    run = _interrupted(small_study, "memory", 6)
    done = set(run.cells.filter(~pl.col("interrupted")).select("target", "array", "workload", "depth").iter_rows())
    asked: list[str] = []
    engine = runner.InlineRunner.submit

    def note(self: runner.InlineRunner, key: Any, request: str) -> None:
        asked.append(str(key))
        engine(self, key, request)

    monkeypatch.setattr(runner.InlineRunner, "submit", note)
    again = resume_run(run.folder, small_study)
    assert again.facts["status"] == "complete"
    assert len(asked) == len(set(asked)) == again.cells.height - len(done)
    assert not {(*name.split("/")[:3], int(name.split("=")[1].split("/")[0])) for name in asked} & done


def test_a_damaged_folder_is_listed_as_such_and_never_the_last(small_run: Run, tmp_path: Path) -> None:
    for name, content in (("whole", None), ("cut", b'{"status":'), ("empty", b"")):
        shutil.copytree(small_run.folder, tmp_path / name)
        if content is not None:
            (tmp_path / name / "run.json").write_bytes(content)
    (tmp_path / "something else").mkdir()
    assert [(row["run"], row["status"]) for row in runs_in(tmp_path)] == [
        ("cut", "unreadable"),
        ("empty", "unreadable"),
        ("whole", "complete"),
    ]
    assert folder_of("last", tmp_path) == tmp_path / "whole"
    with pytest.raises(InputError, match="names no run"):
        folder_of("", tmp_path)


def test_a_bad_line_among_the_parts_is_named(tmp_path: Path) -> None:
    file = tmp_path / "parts.jsonl"
    file.write_text('{"facts": {}}\nnonsense\n{"row": 1}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"^line 2 of parts.jsonl is not JSON \(Expecting value\); without that line"):
        list(whole_lines(file))


@pytest.mark.parametrize(
    "query", ["", ";", "-- nothing", "SELECT 1; SELECT 2", "COPY cells TO '{here}/x'", "SET a = 1"]
)
def test_only_one_select_is_asked(query: str, small_run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"accepted: one SELECT over the run's tables"):
        small_run.sql(query.format(here=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_table_that_is_cut_off_is_named(small_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    (folder / "cells.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"cells.parquet': was changed since it was written"):
        load_run(folder).sql("SELECT 1")
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    # A folder of a version that kept no digests.
    (folder / "run.json").write_text(json.dumps({**facts, "tables": {}}), encoding="utf-8")
    with pytest.raises(InputError, match=r"cells.parquet': cannot be read"):
        load_run(folder).sql("SELECT 1")
    other = {**facts["study"], "text": facts["study"]["text"].replace("8KiB", "4KiB")}
    (folder / "run.json").write_text(json.dumps({**facts, "study": other}), encoding="utf-8")
    with pytest.raises(InputError, match="holds another study than the one that ran"):
        load_run(folder)

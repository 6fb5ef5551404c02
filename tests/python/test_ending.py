"""Runs that end before their time: by Ctrl-C, by other signals, killed; what was measured is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from conftest import SMALL_STUDY, unmount
from raidlab.errors import InputError
from raidlab.results import Run, RunWriter, load_run, new_folder
from raidlab.results.outcome import CellOutcome
from raidlab.run.execute import Execution
from raidlab.run.targets import resolve_targets
from raidlab.study import load_study

CLI = [sys.executable, "-m", "raidlab"]
# Minutes of work a cell: whoever does not stop within one is found by the timeouts below.
ENDLESS = SMALL_STUDY.replace("requests = 1500", "requests = 500000000")
SOME = SMALL_STUDY.replace("requests = 1500", "requests = 400000")
PATIENCE_S = 600


@contextmanager
def _started(text: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a group of its own, of which nothing is left afterwards."""
    (folder / "study.toml").write_text(text, encoding="utf-8")
    # Under nohup, tests would hand it on that hang-ups are ignored, and a run respects that.
    hang_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    process = subprocess.Popen(
        [*CLI, "run", "./study.toml", "--on", "sim"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGHUP, hang_up)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _wait_for(what: str, found: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if found():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {PATIENCE_S} s")


def _workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that simulate, by the command that Python starts them with."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    commands: dict[int, bytes] = {}
    for child in map(int, children):
        # Other children, which ask for the machine's facts, may be gone by now.
        with suppress(FileNotFoundError, ProcessLookupError):
            commands[child] = Path(f"/proc/{child}/cmdline").read_bytes()
    return [child for child, command in commands.items() if b"spawn_main" in command]


def _parts(folder: Path) -> list[str]:
    found = list(folder.glob("runs/*/parts.jsonl"))
    lines = found[0].read_text(encoding="utf-8").splitlines() if found else []
    return [line for line in lines if "answer" in line]


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    ("number", "code", "name"),
    [(signal.SIGINT, 130, "SIGINT"), (signal.SIGTERM, 143, "SIGTERM"), (signal.SIGHUP, 129, "SIGHUP")],
)
def test_a_signal_stops_a_cell_that_runs(number: int, code: int, name: str, tmp_path: Path) -> None:
    with _started(ENDLESS, tmp_path) as process:
        _wait_for("workers", lambda: _workers(process))
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, errors
    assert f"stopping ({name})" in errors
    assert "Traceback" not in errors and "leaked" not in errors
    facts = json.loads(next(tmp_path.glob("runs/*/run.json")).read_text())
    assert (facts["status"], facts["interrupted_by"]) == ("interrupted", name)


def test_impatient_fingers_lose_no_report(tmp_path: Path) -> None:
    with _started(SOME, tmp_path) as process:
        _wait_for("a cell", lambda: _parts(tmp_path))
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.3)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "what was measured until then is kept" in errors
    assert "Traceback" not in errors and "leaked" not in errors
    folder = next(tmp_path.glob("runs/*"))
    assert (folder / "report.html").exists()
    assert load_run(folder).cells.height >= 1


def test_workers_do_not_outlive_a_killed_run(tmp_path: Path) -> None:
    with _started(ENDLESS, tmp_path) as process:
        _wait_for("workers", lambda: _workers(process))
        workers = _workers(process)
        process.kill()
        _wait_for("the end of the workers", lambda: all(_gone(worker) for worker in workers))


def test_a_killed_run_is_finished_when_its_folder_is_opened(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(SMALL_STUDY, encoding="utf-8")
    loaded = load_study(tmp_path / "study.toml")
    folder = new_folder(tmp_path / "runs", "small")
    writer = RunWriter(folder, loaded, seed=1, targets=["sim"], quick=False, argv=[])
    execution = Execution(loaded, resolve_targets(["sim"]), seed=1)
    outcomes = execution.outcomes()
    for _ in range(3):
        outcome = next(outcomes)
        assert isinstance(outcome, CellOutcome)
        writer.add(outcome, *execution.member_shape("sim", outcome.cell.array.name))
    outcomes.close()
    with pytest.raises(InputError, match="still being written"):
        load_run(folder)
    writer.close()
    with (folder / "parts.jsonl").open("a", encoding="utf-8") as parts:
        parts.write('{"rank": [0], "ident')
    assert [file.name for file in folder.iterdir()] == ["parts.jsonl"], "what kill -9 leaves"
    run = load_run(folder)
    assert run.cells.height == 3
    assert run.facts["status"] == "failed" and "killed" in run.facts["failure"]
    assert run.study.name == "small"
    assert (folder / "parts.jsonl").exists(), "it may go on"
    done = subprocess.run([*CLI, "report", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "report.html").exists()


def test_parts_of_somebody_else_are_refused(tmp_path: Path) -> None:
    for text in ("{}\n", "no json\n", "[1]\n", '{"facts": {"study": 1}}\n'):
        (tmp_path / "parts.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(InputError):
            load_run(tmp_path)
        assert (tmp_path / "parts.jsonl").exists()


def test_a_full_disk_keeps_what_was_measured(small_run: Run, tmp_path: Path) -> None:
    """The parts stay when they cannot be written on; room made, the folder is finished from them."""
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    out = tmp_path / "out"
    out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(out)], check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        (tmp_path / "study.toml").write_text(SMALL_STUDY, encoding="utf-8")
        command = [*CLI, "run", "./study.toml", "--out", str(out)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 1, done.stderr
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and "No space left on device" in errors[0] and "are kept in parts.jsonl" in errors[0]
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
        run = load_run(next(out.iterdir()))
        assert 0 < run.cells.height < small_run.cells.height
    finally:
        unmount(out)


def test_no_request_in_the_idle_cell_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    text = SMALL_STUDY.replace("requests = 1500", 'duration = "1us"')
    assert "times_idle" in text
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    command = [*CLI, "run", "./study.toml", "--on", "sim"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1, done.stderr
    assert "no request at depth 1 ended while it was measured" in done.stderr
    assert "Traceback" not in done.stderr

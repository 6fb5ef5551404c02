"""The simulator's processes: one that is killed is replaced, and a cell that kills all it is given to is left out."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from conftest import SMALL_STUDY
from raidlab.api import run_study
from raidlab.errors import CellFailedError, CellLostError
from raidlab.results import load_run
from raidlab.run import pool
from raidlab.run.interrupt import StopFlag
from raidlab.run.pool import PoolRunner
from test_ending import PATIENCE_S, SOME, _parts, _started, _wait_for, _workers


def _serve(pipe: Connection) -> None:
    """A worker that does as it is told: answers, dies, or dies in the midst of its answer."""
    pipe.send(pool._READY)
    while True:
        said = pipe.recv()
        if said == pool._END:
            continue
        word = said[0]
        once = Path(word.partition(" ")[2])
        if word == "die" or (word.startswith("once") and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "half":
            os.write(pipe.fileno(), (100_000).to_bytes(4, "big") + b"half of it")
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "fail":
            pipe.send(CellFailedError("members[0]: is broken"))
        else:
            time.sleep(0.01)
            pipe.send({"said": word})


def _never_ready(pipe: Connection) -> None:
    del pipe
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> PoolRunner:
    monkeypatch.setattr(pool, "_serve", _serve)
    monkeypatch.setattr(pool, "record_place", lambda *_: None)
    return PoolRunner(StopFlag(), workers=2)


def _all(runner: PoolRunner) -> tuple[list[object], list[str]]:
    found, lost = [], []
    while True:
        try:
            done = runner.next_done()
        except CellLostError as error:
            lost.append(str(error))
            continue
        if done is None:
            return sorted(map(str, (key for key, _ in found))), lost
        found.append(done)


def _left() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.parametrize("death", ["die", "half"])
def test_a_cell_that_kills_three_workers_is_left_out_by_name(runner: PoolRunner, death: str) -> None:
    for key in range(10):
        runner.submit(f"cell {key}", death if key == 4 else "fine")
    found, lost = _all(runner)
    assert found == [f"cell {key}" for key in range(10) if key != 4]
    assert len(lost) == 1 and lost[0].startswith("cell 4: killed 3 workers")
    runner.close()
    assert not _left()


def test_a_worker_that_dies_once_loses_no_cell(runner: PoolRunner, tmp_path: Path) -> None:
    for key in range(3):
        runner.submit(f"cell {key}", f"once {tmp_path}/{key}")
    found, lost = _all(runner)
    assert (len(found), lost) == (3, [])
    assert len(list(tmp_path.iterdir())) == 3, "each has killed a worker"
    runner.close()


def test_a_cell_that_fails_ends_the_run_as_before(runner: PoolRunner) -> None:
    runner.submit("cell", "fail")
    with pytest.raises(CellFailedError, match="is broken") as caught:
        runner.next_done()
    assert not isinstance(caught.value, CellLostError)
    runner.close()
    assert not _left()


def test_workers_that_never_start_end_the_run(runner: PoolRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_serve", _never_ready)
    runner.submit("cell", "fine")
    with pytest.raises(CellFailedError, match="died before they were ready"):
        runner.next_done()
    assert runner.close() == [] and not _left()


def test_what_waits_is_dropped_and_what_runs_is_given(runner: PoolRunner) -> None:
    for key in range(50):
        runner.submit(key, "fine")
    first = runner.next_done()
    finished = runner.close()
    assert first is not None and len(finished) < 49 and runner.next_done() is None


def test_a_run_whose_workers_are_killed_is_complete_all_the_same(tmp_path: Path) -> None:
    with _started(SOME.replace("400000", "100000"), tmp_path) as running:
        _wait_for("a cell", lambda: _parts(tmp_path))
        ended = threading.Event()

        def kill() -> None:
            for _ in range(2):
                if ended.wait(0.5) or not (workers := _workers(running)):
                    return
                os.kill(workers[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        _, said = running.communicate(timeout=PATIENCE_S)
        ended.set()
        killer.join()
    assert running.returncode == 0, said
    run = load_run(next(tmp_path.glob("runs/*")))
    assert run.facts["status"] == "complete" and run.cells.height >= 18


def test_what_workers_wrote_is_put_into_the_run_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sweep that searches for nothing, whether its answers come from workers or from the cache."""
    text = "\n".join(line for line in SMALL_STUDY.splitlines() if not line.startswith("hold ="))
    (tmp_path / "small.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("raidlab.results.outcome.read_answer", lambda _: pytest.fail("an answer was read"))
    monkeypatch.setattr("raidlab.run.cached.KeptCells.tables_of", lambda *_: None)
    written = run_study(tmp_path / "small.toml", quick=True, out=tmp_path / "runs", cache=True)
    kept = run_study(tmp_path / "small.toml", quick=True, out=tmp_path / "runs", cache=True)
    assert written.facts["tables"] == kept.facts["tables"] and kept.cells.height > 1

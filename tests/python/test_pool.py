"""The simulator's processes: one that is killed from outside ends the run in one clear line, and hangs nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import wait
from pathlib import Path

import psutil
import pytest

from raidlab.errors import CellFailedError
from raidlab.results import load_run
from raidlab.run.interrupt import StopFlag
from raidlab.run.pool import PoolRunner
from test_ending import PATIENCE_S, SOME, _parts, _started, _wait_for, _workers


def _die_in_the_midst_of_an_answer() -> None:
    """What a worker that is killed while it writes has written: the length of an answer, and a little of it."""
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    writer = frame.f_locals["result_queue"]._writer
    os.write(writer.fileno(), (100_000).to_bytes(4, "big") + b"half of it")
    os.kill(os.getpid(), signal.SIGKILL)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_ever() -> None:
    threading.Event().wait()


@pytest.mark.parametrize("death", [_die, _die_in_the_midst_of_an_answer])
def test_a_worker_that_dies_hangs_nobody(death, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("raidlab.run.pool._LAST_WORDS_S", 0.5)
    runner = PoolRunner(StopFlag(), workers=2)
    # Processes are started here, deaf to signals.
    runner.submit("first", "{}")
    runner.submit("second", "{}")
    wait(list(runner._running))
    runner._running.clear()
    # Another worker is in the midst of its cell.
    for key, work in (("endless", _wait_for_ever), ("dying", death)):
        runner._running[runner._pool.submit(work)] = key
    with pytest.raises(CellFailedError, match=r"the worker died \(out of memory, or killed from outside\)"):
        while runner.next_done() is None:
            pass
    runner.close()
    assert not [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


def test_a_run_whose_worker_is_killed_fails_in_one_line_and_keeps_what_it_has(tmp_path: Path) -> None:
    with _started(SOME, tmp_path) as running:
        _wait_for("a cell", lambda: _parts(tmp_path))
        os.kill(_workers(running)[0], signal.SIGKILL)
        _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 1, said
    assert "the worker died (out of memory, or killed from outside)" in said and "Traceback" not in said
    folder = next(tmp_path.glob("runs/*"))
    assert load_run(folder).cells.height >= 1
    # What a resumed run goes on from.
    assert (folder / "parts.jsonl").exists()

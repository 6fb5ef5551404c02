"""A load beside a run: other processes of this machine run a study, or a job file of fio's, over and over meanwhile.

Invariants:

- Nothing is measured before the load is under way. Where it fails the run is stopped: none is called loaded that was
  not.
- The load's processes are gone when the context is left, and what they measured is kept nowhere. They are asked to stop
  when this process is killed, too, and the folder of what they measured goes with them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from raidlab.errors import CellFailedError, InputError
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress
from raidlab.study.words import OFF_LIVE

# How a job file of fio's ends; all else is a study.
JOB_FILE = ".fio"
# What raidlab says (`progress.PlainLines`) when it begins to measure, after its files are made and filled.
_BEGINS = " to run"
# What it does behind that, in memory, loads no target.
_OWN_COST = "bounding "
# The checks of a load may say what they like of it.
_ENDED = (0, 3)
# Starts raidlab as `python -m` does, to be asked to stop (SIGTERM) when what started it is gone: PR_SET_PDEATHSIG of
# prctl(2). What was to remove the folder of its results is gone then, too, so it does that itself.
_START = """
import ctypes, os, runpy, shutil, sys
started_by, folder = int(sys.argv.pop(1)), sys.argv.pop(1)
ctypes.CDLL(None).prctl(1, 15)
try:
    if os.getppid() == started_by:
        runpy.run_module("raidlab", run_name="__main__", alter_sys=True)
finally:
    if os.getppid() != started_by:
        shutil.rmtree(folder, ignore_errors=True)
"""
# For a round to take its files away once it is asked to stop.
_LEAVE_S = 60.0


class _Rounds(threading.Thread):
    """Runs the load again as soon as it has ended."""

    def __init__(self, command: list[str], stop: StopFlag) -> None:
        super().__init__(name="load beside the run", daemon=True)
        self.under_way, self.left = threading.Event(), threading.Event()
        self.rounds, self.loaded_s, self.failure = 0, 0.0, ""
        self._command, self._flag = command, stop
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """One round after another, until it is left."""
        while not self.left.is_set():
            said, began_s = "", None
            # In a session of its own: what interrupts the run is for the run to pass on.
            with subprocess.Popen(
                self._command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            ) as self._process:
                assert self._process.stderr is not None, "asked for"
                for line in self._process.stderr:
                    said = line.strip() or said
                    if said.endswith(_BEGINS) and began_s is None and not said.startswith(_OWN_COST):
                        began_s = time.monotonic()
                        self.under_way.set()
                    elif said.startswith(_OWN_COST):
                        self._count(began_s)
                        began_s = None
            self._count(began_s)
            self.rounds += 1
            if not self.left.is_set() and self._process.returncode not in _ENDED:
                self.failure = said.removeprefix("error: ") or f"status {self._process.returncode}"
                self._flag.raise_flag()
                break
        self.under_way.set()

    def _count(self, began_s: float | None) -> None:
        """Add a stretch under load, if there was one, up to now."""
        self.loaded_s += 0.0 if began_s is None else time.monotonic() - began_s

    def leave(self) -> None:
        """Have the round under way stop, and wait until it is gone."""
        self.left.set()
        asked, until_s = None, time.monotonic() + _LEAVE_S
        while self.is_alive():
            process, is_late = self._process, time.monotonic() > until_s
            if process is not None and (is_late or process is not asked):
                asked = process
                with suppress(ProcessLookupError):
                    process.kill() if is_late else process.terminate()
            self.join(0.1)


@contextmanager
def under_load(job: str | None, on: Sequence[str], stop: StopFlag, progress: Progress) -> Iterator[None]:
    """Keep the targets under the load of a study, or of a job file of fio's; None is no load.

    A study runs on the same targets with ``--quick``, in files of its own; a job file where it says. Raises
    `InputError` for a load that cannot be, `CellFailedError` for one that fails later.
    """
    if job is None:
        yield
        return
    is_study = Path(job).suffix != JOB_FILE
    if modelled := [word for word in on if word in OFF_LIVE]:
        raise InputError.one(
            "--loaded-by", f"cannot load '{modelled[0]}', which is a model", accepted="--on with directories or devices"
        )
    if is_study and not on:
        raise InputError.one(
            "--loaded-by", "a study needs targets to load", value=f"'{job}'", accepted="--on beside it"
        )
    targets = [word for place in on for word in ("--on", place)]
    with TemporaryDirectory(prefix="raidlab-load-") as out:
        words = ["run", job, "--quick", "--out", out, *targets] if is_study else ["fio", "import", job, "--run"]
        rounds = _Rounds([sys.executable, "-c", _START, str(os.getpid()), out, *words], stop)
        rounds.start()
        try:
            rounds.under_way.wait()
            if rounds.failure:
                raise InputError.one("--loaded-by", rounds.failure)
            progress.note(f"'{job}' loads the targets from now on")
            began_s = time.monotonic()
            yield
            whole_s = time.monotonic() - began_s
        finally:
            rounds.leave()
        if rounds.failure:
            raise CellFailedError(f"--loaded-by: '{job}' failed: {rounds.failure}")
        share = min(1.0, rounds.loaded_s / whole_s) if whole_s else 0.0
        progress.note(f"'{job}' loaded the targets in {rounds.rounds} rounds, {share:.0%} of the time")

"""A pool of processes, one a processor: for the simulator, whose cells are independent.

Invariants:

- A worker knows only the engine; it reads no study file, and of results it writes only the rows of single requests.
- Workers hear no signal: they are told through two pipes whose other ends this process alone holds. When the first is
  closed they end the cell they are at; when the second is, they exit at once. So they also go when this process is
  killed, and what they finished before is never thrown away.
- A worker that is killed ends the run and hangs nothing. The pool would wait for ever: for the others, which hear no
  signal, or for the rest of an answer that was being written.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Hashable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import CellFailedError
from raidlab.run.interrupt import StopFlag, holding_signals
from raidlab.run.runner import KeyedAnswer, RecordPlace, cell_answer, record_place, run_request

if TYPE_CHECKING:
    from raidlab.results.answer import CellAnswer

_LOOK_EVERY_S = 0.1
# So long after a worker's end its answer may still be under way.
_LAST_WORDS_S = 5.0
_DIED = (
    "the worker died (out of memory, or killed from outside); this cell and those that ran beside it are lost, "
    "what was measured before is kept"
)


class PoolRunner:
    """Runs as many requests at once as it has workers, processes: one a processor by default.

    ``records`` is the run folder, where each request is to leave a row.
    """

    def __init__(self, stop: StopFlag, workers: int | None = None, records: Path | None = None) -> None:
        self._stop, self._records = stop, records
        # A fork would copy this process's threads in an unknown state (Polars has some).
        context = multiprocessing.get_context("spawn")
        until_stop, self._stop_end = context.Pipe(duplex=False)
        until_exit, self._exit_end = context.Pipe(duplex=False)
        # The helper that cleans up after processes is started here, and must outlive what ends this one.
        with holding_signals():
            self._pool = ProcessPoolExecutor(
                workers or usable_cpus(), mp_context=context, initializer=_listen, initargs=(until_stop, until_exit)
            )
        self._running: dict[Future[CellAnswer | None], Hashable] = {}
        self._is_broken = False

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        # The pool starts its processes here; signals are for this one alone.
        with holding_signals():
            try:
                place = record_place(self._records, key, request)
                self._running[self._pool.submit(_work, request, place)] = key
            except BrokenProcessPool:
                raise self._died(key) from None

    def next_done(self) -> KeyedAnswer | None:
        """Wait for the next answer, whichever it is."""
        if not self._running:
            return None
        done: set[Future[CellAnswer | None]] = set()
        died_s = None
        while not done:
            if self._stop():
                raise KeyboardInterrupt
            if self._has_lost_a_worker():
                died_s = died_s or time.monotonic()
                if time.monotonic() - died_s > _LAST_WORDS_S:
                    raise self._died(next(iter(self._running.values())))
            done, _ = wait(self._running, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
        future = done.pop()
        key = self._running.pop(future)
        try:
            answer = future.result()
        except BrokenProcessPool:
            raise self._died(key) from None
        assert answer is not None, "a worker ends a cell early only when this process has said so"
        return key, answer

    def _has_lost_a_worker(self) -> bool:
        return any(not worker.is_alive() for worker in list((self._pool._processes or {}).values()))

    def _died(self, key: Hashable) -> CellFailedError:
        """Nothing comes from the pool any more, and it is ended here: by itself it would wait."""
        self._is_broken = True
        self._exit_end.close()
        # What was being written when its writer died has an end only when nobody could write any more.
        self._pool._result_queue._writer.close()  # type: ignore[attr-defined]
        return CellFailedError(f"{key}: {_DIED}")

    def close(self) -> list[KeyedAnswer]:
        """Cancel what has not started, have what is running ended, and give what was finished."""
        begun = [future for future in self._running if not future.cancel()]
        self._stop_end.close()
        while not (self._stop.is_urgent or self._is_broken) and wait(begun, timeout=_LOOK_EVERY_S).not_done:
            pass
        # Nobody waits for workers to tidy up after themselves where somebody waits for this process to stop.
        if self._stop():
            self._exit_end.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._exit_end.close()
        finished = [
            (key, answer)
            for future, key in self._running.items()
            if not future.cancelled() and future.exception() is None and (answer := future.result()) is not None
        ]
        self._running.clear()
        return finished


# Only in a worker: set when the cell it is at is to be ended.
_ended = threading.Event()


def _listen(until_stop: Connection, until_exit: Connection) -> None:
    """Begin to listen to the process that started this worker."""

    def wait_for_both() -> None:
        _wait_for_end(until_stop)
        _ended.set()
        _wait_for_end(until_exit)
        # Nobody wants an answer any more; what the engine is doing cannot be unwound from here.
        os._exit(1)

    threading.Thread(target=wait_for_both, daemon=True).start()


def _wait_for_end(pipe: Connection) -> None:
    try:
        pipe.recv_bytes()
    except (EOFError, OSError):
        return


def _work(request: str, records: RecordPlace | None) -> CellAnswer | None:
    """Run one request; None when it was ended early."""
    if _ended.is_set():
        return None
    answer = run_request(request, lambda _share: not _ended.is_set(), records)
    return None if answer.get("interrupted") else cell_answer(answer)


def usable_cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))

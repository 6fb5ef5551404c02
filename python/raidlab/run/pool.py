"""A pool of processes, one a processor: for the simulator, whose cells are independent.

Invariants:

- A worker knows only the engine; it reads no study file, and of results it writes only the rows of single requests.
- Workers hear no signal: each is told through a pipe of its own, whose other end this process alone holds. On a word
  it ends the cell it is at; when the pipe is closed it exits at once. So it also goes when this process is killed, and
  what it finished before is never thrown away.
- A worker that dies is replaced. What it was at is run again, by others twice; a cell that kills all three is lost, by
  name, and what else was queued goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
from collections import Counter, deque
from collections.abc import Hashable
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import CellFailedError, CellLostError, EngineError
from raidlab.run.interrupt import StopFlag, holding_signals
from raidlab.run.runner import KeyedAnswer, RecordPlace, cell_answer, record_place, run_request
from raidlab.written import WrittenAnswer

if TYPE_CHECKING:
    from raidlab.results.answer import CellAnswer

_LOOK_EVERY_S = 0.1
# A cell waits in each worker, so that none stands idle while this process writes what came.
_AHEAD = 2
# So many workers may die over one cell, or before they were ready for any.
MOST_DEATHS = 3
_READY, _END = "ready", "end"


class _Worker:
    """A process, the pipe to it, and what it was given and has not answered, in order."""

    def __init__(self) -> None:
        # A fork would copy this process's threads in an unknown state (Polars has some).
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        # Signals are for this process alone. The helper that cleans up after processes is started first: whoever
        # starts it lets signals through again, to the worker too.
        with holding_signals():
            resource_tracker.ensure_running()
        with holding_signals():
            self.process.start()
        theirs.close()
        self.given: deque[tuple[Hashable, str]] = deque()
        self.is_ready = False

    def end(self) -> None:
        """Have it exit, whatever it is at, and wait for that."""
        self.pipe.close()
        self.process.join()


class PoolRunner:
    """Runs as many requests at once as it has workers, processes: one a processor by default.

    ``records`` is the run folder, where each request is to leave a row. With ``written`` workers write their answers,
    for who only puts them into a file.
    """

    def __init__(
        self, stop: StopFlag, workers: int | None = None, records: Path | None = None, *, written: bool = False
    ) -> None:
        self._stop, self._records, self._written = stop, records, written
        self._most = workers or usable_cpus()
        self._workers: list[_Worker] = []
        self._queue: deque[tuple[Hashable, str]] = deque()
        self._deaths: Counter[Hashable] = Counter()
        self._false_starts = 0

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        self._queue.append((key, request))

    def next_done(self) -> KeyedAnswer | None:
        """Wait for the next answer, whichever it is.

        Raises `CellLostError` for a cell that has killed its workers; the others can be waited for after that.
        """
        while self._queue or any(worker.given for worker in self._workers):
            if self._stop():
                raise KeyboardInterrupt
            self._give()
            for worker in self._heard():
                done = self._hear(worker)
                if done is not None:
                    return done
        return None

    def _heard(self) -> list[_Worker]:
        """The workers that have said something, or died."""
        pipes = wait([worker.pipe for worker in self._workers], timeout=_LOOK_EVERY_S)
        return [worker for worker in self._workers if worker.pipe in pipes]

    def _give(self) -> None:
        """Start the workers there is work for, and give each what it is to do."""
        while len(self._workers) < min(self._most, len(self._queue)):
            self._workers.append(_Worker())
        for ahead in range(1, _AHEAD + 1):
            for worker in self._workers:
                if self._queue and worker.is_ready and len(worker.given) < ahead:
                    key, request = self._queue.popleft()
                    worker.given.append((key, request))
                    with suppress(OSError):
                        worker.pipe.send((request, record_place(self._records, key, request), self._written))

    def _hear(self, worker: _Worker) -> KeyedAnswer | None:
        """Take what a worker says; None where it says nothing of a cell."""
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return None
        if said == _READY:
            worker.is_ready, self._false_starts = True, 0
            return None
        key, _ = worker.given.popleft()
        if isinstance(said, Exception):
            raise said
        assert said is not None, "a worker ends a cell early only when this process has said so"
        return key, said

    def _bury(self, worker: _Worker) -> None:
        """Queue what a dead worker leaves, first what it was at."""
        worker.end()
        self._workers.remove(worker)
        self._false_starts += not worker.is_ready
        if self._false_starts >= MOST_DEATHS:
            raise CellFailedError(
                f"{MOST_DEATHS} workers in a row died before they were ready (out of memory, or killed from outside); "
                "what was measured before is kept"
            )
        self._queue.extendleft(reversed(worker.given))
        if not worker.given:
            return
        key, _ = worker.given[0]
        self._deaths[key] += 1
        if self._deaths[key] >= MOST_DEATHS:
            self._queue.popleft()
            raise CellLostError(str(key), MOST_DEATHS)

    def close(self) -> list[KeyedAnswer]:
        """Cancel what has not started, have what is running ended, and give what was finished."""
        self._queue.clear()
        for worker in self._workers:
            with suppress(OSError):
                worker.pipe.send(_END)
        finished = []
        while not self._stop.is_urgent and any(worker.given for worker in self._workers):
            for worker in self._heard():
                finished += self._last_words(worker)
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        return finished

    @staticmethod
    def _last_words(worker: _Worker) -> list[KeyedAnswer]:
        """What a worker that was told to end has finished before it heard that."""
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            worker.given.clear()
            return []
        if said == _READY:
            return []
        key, _ = worker.given.popleft()
        return [] if said is None or isinstance(said, Exception) else [(key, said)]


def _serve(pipe: Connection) -> None:
    """Answer, in a worker, what comes through the pipe, until it is closed."""
    ended = threading.Event()
    asked: queue.SimpleQueue[tuple[str, RecordPlace | None, bool]] = queue.SimpleQueue()

    def listen() -> None:
        while True:
            try:
                said = pipe.recv()
            except (EOFError, OSError):
                # Nobody wants an answer any more; what the engine is doing cannot be unwound from here.
                os._exit(1)
            if said == _END:
                ended.set()
            else:
                asked.put(said)

    threading.Thread(target=listen, daemon=True).start()
    # Where it is closed already, whoever listens is about to exit.
    with suppress(OSError):
        pipe.send(_READY)
        while True:
            pipe.send(_work(*asked.get(), ended))


def _work(
    request: str, records: RecordPlace | None, written: bool, ended: threading.Event
) -> CellAnswer | WrittenAnswer | EngineError | None:
    """Run one request, which may fail; None when it was ended early."""
    if ended.is_set():
        return None
    try:
        answer = run_request(request, lambda _share: not ended.is_set(), records)
    except EngineError as error:
        return error
    if answer.get("interrupted"):
        return None
    return WrittenAnswer.of(cell_answer(answer)) if written else cell_answer(answer)


def usable_cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))

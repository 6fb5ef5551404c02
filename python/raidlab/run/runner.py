"""Where cells are run: a pool of processes for the simulator, this process for live targets.

Invariants:

- One protocol for both: a request's text goes in with a key, an answer or an error comes out with that key.
- A worker knows only the engine; it reads no study file and writes no result.
- Ctrl-C reaches only this process, between two cells: workers finish the cell they are at, and what is done is never
  thrown away. It is told onwards as `KeyboardInterrupt` from `next_done`, and from nowhere else.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from raidlab.errors import CellFailedError, RefusedError
from raidlab.run.interrupt import StopFlag, holding_interrupts

Answer = dict[str, Any]

_LOOK_EVERY_S = 0.1


class Runner(Protocol):
    """Runs requests; how many at once is its own affair."""

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""

    def next_done(self) -> tuple[Hashable, Answer] | None:
        """Wait for the next answer; None when nothing is queued."""

    def close(self) -> list[tuple[Hashable, Answer]]:
        """Drop what is queued, let what is running finish, and give the answers that were not fetched."""


def run_request(request: str, on_progress: Callable[[float], bool] | None = None) -> Answer:
    """Run one request on the engine.

    Raises
    ------
    CellFailedError, RefusedError
        With the engine's own sentence.
    """
    from raidlab import _core

    try:
        return dict(_core.run_cell(request, on_progress))
    except _core.CellError as error:
        if error.kind == "refused":
            raise RefusedError(str(error)) from None
        raise CellFailedError(str(error), kind=error.kind, key=error.key) from None


class InlineRunner:
    """One request at a time, in this process, in the order they were submitted: for live targets.

    Two live cells at once would share the disks and measure each other. A cell that was ended early is not like the
    others: it ends the run, and what it measured till then is given by `close`, marked as interrupted.
    """

    def __init__(self, stop: StopFlag) -> None:
        self._queue: deque[tuple[Hashable, str]] = deque()
        self._stop = stop
        self._cut: list[tuple[Hashable, Answer]] = []

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        self._queue.append((key, request))

    def next_done(self) -> tuple[Hashable, Answer] | None:
        """Run the next request."""
        if not self._queue:
            return None
        if self._stop():
            raise KeyboardInterrupt
        key, request = self._queue.popleft()
        answer = run_request(request, lambda _share: not self._stop())
        if answer["requests"] and (answer.get("stopped_by") or answer.get("interrupted")):
            self._cut.append((key, {**answer, "interrupted": True}))
        if answer.get("stopped_by"):
            raise CellFailedError(f"{key}: {answer['stopped_by']}")
        if answer.get("interrupted"):
            raise KeyboardInterrupt
        return key, answer

    def close(self) -> list[tuple[Hashable, Answer]]:
        """Drop what is queued; the cell that was ended early, if one was."""
        self._queue.clear()
        cut, self._cut = self._cut, []
        return cut


class PoolRunner:
    """A pool of processes, one a processor: for the simulator, whose cells are independent."""

    def __init__(self, stop: StopFlag, workers: int | None = None) -> None:
        self._stop = stop
        self._pool = ProcessPoolExecutor(
            max_workers=workers or usable_cpus(),
            # A fork would copy this process's threads in an unknown state (Polars has some).
            mp_context=multiprocessing.get_context("spawn"),
        )
        self._running: dict[Future[Answer], Hashable] = {}

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        # The pool starts its processes here; Ctrl-C is for this one alone.
        with holding_interrupts():
            self._running[self._pool.submit(run_request, request)] = key

    def next_done(self) -> tuple[Hashable, Answer] | None:
        """Wait for the next answer, whichever it is."""
        if not self._running:
            return None
        done: set[Future[Answer]] = set()
        while not done:
            if self._stop():
                raise KeyboardInterrupt
            done, _ = wait(self._running, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
        future = done.pop()
        key = self._running.pop(future)
        try:
            return key, future.result()
        except BrokenProcessPool:
            raise CellFailedError(f"{key}: the worker died (out of memory, or killed from outside)") from None

    def close(self) -> list[tuple[Hashable, Answer]]:
        """Cancel what has not started and wait for what has."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        finished = [
            (key, future.result())
            for future, key in self._running.items()
            if future.done() and not future.cancelled() and future.exception() is None
        ]
        self._running.clear()
        return finished


def usable_cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))

"""A cluster of Dask's in place of the pool: for sweeps of modelled cells on several machines.

Scheduler, workers, who starts them and how they trust each other are Dask's; here is what is sent to them.

Invariants:

- A worker that has another engine than this process is refused, before anything begins and with every batch: two
  engines in one run would be two experiments.
- A batch takes a second or two, and at the end of a sweep half a second at least, so that what Dask costs a task
  does not show; the longest cells go first.
- A worker that dies is Dask's to replace, and its batch is run elsewhere. The cells of a batch that has cost too many
  workers are suspects, for what waited beside the guilty one counts as well: each has the cluster to itself once, and
  one that kills its workers then is lost, by name.
- Nothing is written on a worker, and no result depends on which one it came from.
"""

from __future__ import annotations

import gc
import logging
import math
import queue
import time
import warnings
from collections import deque
from collections.abc import Hashable
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, NamedTuple, Self

from raidlab.errors import CellFailedError, CellLostError, EngineError, InputError
from raidlab.run.cached import engine_digest
from raidlab.run.interrupt import StopFlag, holding_signals
from raidlab.run.pool import usable_cpus
from raidlab.run.runner import KeyedAnswer, cell_answer, run_request
from raidlab.written import WrittenAnswer

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

_LOOK_EVERY_S = 0.1
_COUNT_EVERY_S = 5.0
_PATIENCE_S = 10.0
BATCH_S, _LEAST_BATCH_S = 2.0, 0.5
# Batches a thread of the cluster: one that runs, one that waits beside it.
_AHEAD = 2
# Until the first batches have said how fast the cluster is: requests a second and member of an array.
_FIRST_GUESS_PER_S = 400_000.0
# Dask's own bound unless it is told otherwise (distributed.scheduler.allowed-failures).
_DEATHS = 3
_AMOUNTS = ('"measure": {', '"warmup": {')
_REQUESTS = '"requests": '
_LEAF = '"kind": "member"'
_ACCEPTED = "tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler, or local:N for N processes of this machine"


class _Asked(NamedTuple):
    """A cell that is to be run, and how much work it is thought to be."""

    key: Hashable
    request: str
    work: float


class BatchAnswer(NamedTuple):
    """What a worker says of a batch: an answer or an error a cell, and how long it took."""

    answers: list[WrittenAnswer | EngineError]
    seconds: float


def run_batch(requests: list[str], digest: str) -> BatchAnswer:
    """Run requests one after another, on a worker whose engine has this digest."""
    if engine_digest() != digest:
        raise CellFailedError("a worker has joined the cluster that has another version of raidlab's engine")
    began = time.perf_counter()
    answers: list[WrittenAnswer | EngineError] = []
    for request in requests:
        try:
            answers.append(WrittenAnswer.of(cell_answer(run_request(request))))
        except EngineError as error:
            answers.append(error)
            break
    return BatchAnswer(answers, time.perf_counter() - began)


class Cluster:
    """A cluster that is connected, has workers, and runs the engine of this process.

    Parameters
    ----------
    address : str
        A scheduler's address, or ``local:N``.

    Raises
    ------
    InputError
        Where it is none, cannot be reached, has no worker, or one with another engine.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        # Signals are for this process alone, which tells the others. The helper that cleans up after processes is
        # started first: whoever starts it lets signals through again, to the workers too.
        with holding_signals():
            resource_tracker.ensure_running()
        with holding_signals():
            self.client: Client = _client(address)
        try:
            self._check_workers()
        except BaseException:
            self.close()
            raise

    def _check_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            raise _refused(
                self.address, f"has had no worker for {_PATIENCE_S:g} s", "a scheduler with workers"
            ) from None
        own = engine_digest()
        found = self.client.run(engine_digest, on_error="return")
        for worker, digest in found.items():
            if isinstance(digest, Exception):
                raise _refused(self.address, f"has the worker {worker}, where raidlab cannot be imported: {digest}")
            if digest != own:
                raise _refused(
                    self.address,
                    f"has the worker {worker} with another version of raidlab's engine: {digest[:12]}, not {own[:12]}",
                    "workers with the same build of raidlab as here",
                )

    @property
    def threads(self) -> int:
        """How many cells it runs at once, as it stands now."""
        return sum(self.client.nthreads().values())

    def close(self) -> None:
        """Leave it; one of this machine's own ends."""
        own = self.client.cluster
        self.client.close()
        if own is not None:
            own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _client(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise _refused(address, "needs Dask, which is not installed", "pip install 'raidlab[dask]'") from None
    # What a worker that dies makes Dask say is said here, where it matters.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Dask's page of its own, which nobody asked for, has another port where somebody has that.
    warnings.filterwarnings("ignore", r"Port \d+ is already in use")
    kind, _, rest = address.partition(":")
    if kind == "local":
        if not rest.isdecimal() or not 1 <= int(rest) <= 16 * usable_cpus():
            raise _refused(address, "is no number of processes", f"local:1 to local:{16 * usable_cpus()}")
        return Client(_local_cluster(address, int(rest)))
    if kind not in ("tcp", "tls") or not rest.startswith("//"):
        raise _refused(address, "is no address of a cluster", _ACCEPTED)
    try:
        return Client(address, timeout=_PATIENCE_S)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        said = str(error).splitlines()[0]
    # A client that could not connect closes when it is collected. Were that while another one starts, in the same
    # thread, it would wait for ever for the lock that the start holds; so it is now, when nothing refers to it.
    gc.collect()
    raise _refused(address, f"cannot be reached: {said}", _ACCEPTED)


def _local_cluster(address: str, processes: int) -> LocalCluster:
    """Processes of this machine, reached with a key that is made for them.

    Whoever reaches a scheduler can run anything as this user, and every user of the machine could. Its pages, which
    nobody asked for, are left out.
    """
    from dask import config
    from distributed import LocalCluster, Security

    try:
        key = Security.temporary()
    except ImportError:
        # Dask does not ask for it.
        wrong = "needs the package cryptography, which is not installed"
        raise _refused(address, wrong, "pip install 'raidlab[dask]'") from None
    with config.set({f"distributed.{of}.http.routes": [] for of in ("scheduler", "worker")}):
        return LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            security=key,
        )


def _refused(address: str, message: str, accepted: str | None = None) -> InputError:
    return InputError.one("--cluster", message, value=f"'{address}'", accepted=accepted)


class DaskRunner:
    """Runs requests on a cluster, in batches."""

    def __init__(self, cluster: Cluster, stop: StopFlag) -> None:
        self._cluster, self._stop = cluster, stop
        self._waiting: list[_Asked] = []
        self._is_sorted = True
        self._suspects: deque[_Asked] = deque()
        self._alone: Future[BatchAnswer] | None = None
        self._running: dict[Future[BatchAnswer], list[_Asked]] = {}
        self._ended: queue.SimpleQueue[Future[BatchAnswer]] = queue.SimpleQueue()
        self._done: deque[tuple[Hashable, WrittenAnswer | EngineError]] = deque()
        self._work_per_s = _FIRST_GUESS_PER_S
        self._seen_work = self._seen_s = 0.0
        self._counted, self._counted_s = 1, -math.inf

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        self._waiting.append(_Asked(key, request, work_of(request)))
        self._is_sorted = False

    def next_done(self) -> KeyedAnswer | None:
        """Wait for the next answer, whichever it is.

        Raises `CellLostError` for a cell that has killed its workers; the others can be waited for after that.
        """
        while True:
            if self._stop():
                raise KeyboardInterrupt
            # Before what is here is taken: the cluster is not to wait while it is written.
            self._send()
            if self._done:
                key, answer = self._done.popleft()
                if isinstance(answer, EngineError):
                    raise answer
                return key, answer
            if not self._running:
                return None
            self._take(_LOOK_EVERY_S)

    def _send(self) -> None:
        """Keep the cluster busy; a suspect has it to itself."""
        if self._suspects:
            if not self._running:
                self._alone = self._submit([self._suspects.popleft()])
            return
        if not self._waiting or self._alone is not None:
            return
        most = _AHEAD * self._threads()
        while len(self._running) < most and self._waiting:
            self._submit(self._batch(most))

    def _threads(self) -> int:
        """How many cells the cluster runs at once; asked now and then, as to ask takes longer than an answer."""
        now_s = time.monotonic()
        if now_s - self._counted_s >= _COUNT_EVERY_S:
            self._counted, self._counted_s = max(self._cluster.threads, 1), now_s
        return self._counted

    def _submit(self, batch: list[_Asked]) -> Future[BatchAnswer]:
        # As one thing: of arguments Dask looks at every text, for it might name another task.
        task = partial(run_batch, [one.request for one in batch], engine_digest())
        future = self._cluster.client.submit(task, pure=False, key=_task_name())
        self._running[future] = batch
        future.add_done_callback(self._ended.put)
        return future

    def _batch(self, most: int) -> list[_Asked]:
        """The longest cells that wait, as many as take long enough; of these, such as leave the others some."""
        if not self._is_sorted:
            self._waiting.sort(key=lambda one: one.work)
            self._is_sorted = True
        share = math.ceil(len(self._waiting) / most)
        batch: list[_Asked] = []
        seconds = 0.0
        while self._waiting and seconds < (BATCH_S if len(batch) < share else _LEAST_BATCH_S):
            batch.append(self._waiting.pop())
            seconds += batch[-1].work / self._work_per_s
        return batch

    def _take(self, timeout_s: float) -> None:
        """Take a batch that has ended, if one does in time."""
        try:
            future = self._ended.get(timeout=timeout_s)
        except queue.Empty:
            if self._cluster.client.status not in ("running", "connecting"):
                raise self._gone() from None
            return
        if future in self._running:
            self._open(future)

    def _open(self, future: Future[BatchAnswer]) -> None:
        from concurrent.futures import CancelledError

        from distributed import KilledWorker

        try:
            said = future.result(timeout=_PATIENCE_S)
        except TimeoutError:
            # Its worker died with it; the scheduler has it worked out again, and says so again.
            future.add_done_callback(self._ended.put)
            return
        except KilledWorker:
            self._suspect(future)
            return
        except (CancelledError, OSError):
            raise self._gone() from None
        batch = self._leave(future)
        self._learn_pace(batch, said)
        self._done += ((one.key, answer) for one, answer in zip(batch, said.answers, strict=False))

    def _leave(self, future: Future[BatchAnswer]) -> list[_Asked]:
        if future is self._alone:
            self._alone = None
        return self._running.pop(future)

    def _suspect(self, future: Future[BatchAnswer]) -> None:
        """Of a batch that has cost too many workers, try every cell alone; one that was alone is lost."""
        was_alone = future is self._alone
        batch = self._leave(future)
        if was_alone:
            key = batch[0].key
            self._done.append((key, CellLostError(str(key), _DEATHS)))
        else:
            self._suspects += batch

    def _learn_pace(self, batch: list[_Asked], said: BatchAnswer) -> None:
        """Work out anew, over all batches so far, how much work a worker does a second."""
        self._seen_work += sum(one.work for one in batch)
        self._seen_s += said.seconds
        self._work_per_s = self._seen_work / max(self._seen_s, 1e-9)

    def _gone(self) -> CellFailedError:
        return CellFailedError(
            f"the cluster {self._cluster.address} is gone; what came from it before is kept, and a run that is resumed "
            "goes on from there"
        )

    def close(self) -> list[KeyedAnswer]:
        """Cancel what has not ended, and give what was finished."""
        self._waiting.clear()
        self._suspects.clear()
        while not self._ended.empty():
            future = self._ended.get()
            if future in self._running and future.status == "finished":
                self._open(future)
        if self._running and self._cluster.client.status == "running":
            self._cluster.client.cancel(list(self._running), force=True)
        self._running.clear()
        finished: list[KeyedAnswer] = [
            (key, answer) for key, answer in self._done if not isinstance(answer, EngineError)
        ]
        self._done.clear()
        return finished


def work_of(request: str) -> float:
    """How much work a cell is thought to be: its requests, times the members that each may have to do with.

    Looked for in the text, as `raidlab.study.cell` writes it: to read the whole of it takes as long as to hand it out.
    """
    requests = sum(_requests_of(request, key) for key in _AMOUNTS) or 10_000
    return float(requests * max(request.count(_LEAF), 1))


def _requests_of(request: str, key: str) -> int:
    # What is looked for as a text is found in a tenth of the time that an expression takes.
    begin = request.find(key) + len(key)
    said = request[begin : request.find("}", begin)].partition(_REQUESTS)[2] if begin >= len(key) else ""
    number = said.partition(",")[0]
    return int(number) if number.isdecimal() else 0


def _task_name() -> str:
    from uuid import uuid4

    return f"raidlab-{uuid4().hex}"

"""Run the jobs of a fio job file: groups one after another, the lanes of a group at once.

Invariants:

- Every target is opened, and files are made and filled, before anything is measured, as fio lays its files out first:
  so what is refused is refused at once, and no lane's start waits for another's filling.
- A file read or written through the page cache is dropped from it before its group runs, unless the job says
  ``invalidate=0``; what of that is not possible is said.
- Whatever ends a run early, what was measured before is kept and handed out.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from raidlab.errors import CellFailedError, RefusedError
from raidlab.formats.fio.cells import Import, Lane
from raidlab.formats.fio.places import BLOCK, FILE
from raidlab.histogram import Histogram
from raidlab.results.answer import CellAnswer, times_of_all
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.progress import Progress, Silent
from raidlab.run.request import one_request
from raidlab.run.runner import cell_answer, run_request
from raidlab.study.cell import DirectCell, text_of

# _IO(0x12, 97): let go of what the page cache holds of a block device.
_BLKFLSBUF = 0x1261


@dataclass(frozen=True)
class LaneResult:
    """A lane and the engine's answer to it; ``group`` counts from 0."""

    group: int
    lane: Lane
    answer: CellAnswer

    @property
    def elapsed_s(self) -> float:
        """How long it was measured."""
        return int(self.answer["elapsed_ns"]) / 1e9


@dataclass(frozen=True)
class JobResult:
    """All lanes of one job together: what fio calls a group's report.

    Attributes
    ----------
    iops, throughput_mb_s : float
        Sums of the lanes' own, which ran at once.
    response : Histogram
        Response times of all its requests.
    """

    group: int
    title: str
    lanes: tuple[LaneResult, ...]

    @property
    def requests(self) -> int:
        """Requests completed."""
        return sum(int(lane.answer["all"]["requests"]) for lane in self.lanes)

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return sum(int(lane.answer["all"]["bytes"]) for lane in self.lanes)

    @property
    def iops(self) -> float:
        """Requests a second."""
        return sum(_per_s(lane, "requests") for lane in self.lanes)

    @property
    def throughput_mb_s(self) -> float:
        """Megabytes (10^6) a second."""
        return sum(_per_s(lane, "bytes") for lane in self.lanes) / 1e6

    @property
    def response(self) -> Histogram:
        """Response times of all its requests."""
        return Histogram.merged(times_of_all(lane.answer) for lane in self.lanes)


@dataclass
class JobFileRun:
    """A run of an imported job file."""

    imported: Import
    progress: Progress = field(default_factory=Silent)
    stop: StopFlag = field(default_factory=StopFlag)
    status: str = "complete"
    """``complete``, ``interrupted`` or ``failed``, once the results have been taken."""
    failure: str | None = None
    """Why a failed run failed."""
    warnings: list[str] = field(default_factory=list)
    """What was asked for and could not be done, though the figures stand."""

    def results(self) -> Iterator[LaneResult]:
        """Run, and yield the results of a group when it is over."""
        lanes = sum(len(group) for group in self.imported.groups)
        with catching_signals(self.stop):
            self.progress.begin("running the jobs", lanes)
            try:
                for group in self.imported.groups:
                    self._lay_out(group)
                for number, group in enumerate(self.imported.groups):
                    self._invalidate(group)
                    yield from self._run(number, group)
                    self._sync(group)
                    if self.status != "complete":
                        return
            except CellFailedError as error:
                self.status, self.failure = "failed", str(error)
            except KeyboardInterrupt:
                self.status = "interrupted"
            finally:
                self.progress.end()

    def _lay_out(self, group: Sequence[Lane]) -> None:
        """Have each lane's files opened, made and filled, by one request to each."""
        for lane in group:
            if lane.parts[0].kind == "null":
                continue
            if not all(os.path.exists(part.path) for part in lane.parts):  # noqa: PTH110 - also for odd names
                files = "a file" if len(lane.parts) == 1 else f"{len(lane.parts)} files"
                self.progress.note(f"[{lane.job.title}] making and filling {files}")
            answer = self._ask(lane, one_request(lane.cell))
            if answer.get("interrupted"):
                raise KeyboardInterrupt

    def _invalidate(self, group: Sequence[Lane]) -> None:
        for lane in group:
            if lane.cell.buffered and lane.job.invalidate:
                for part in lane.parts:
                    if part.kind in (FILE, BLOCK):
                        self._let_go(part.path, part.kind)

    def _let_go(self, path: str, kind: str) -> None:
        """Drop what the page cache holds of a file or device."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if kind == BLOCK:
                    fcntl.ioctl(descriptor, _BLKFLSBUF)
                else:
                    # Only clean pages can be let go.
                    os.fsync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
        except OSError as error:
            self.warnings.append(f"{path}: the page cache could not be told to let go of it ({error.strerror})")

    def _run(self, number: int, group: Sequence[Lane]) -> Iterator[LaneResult]:
        """Run the lanes of a group at once; the first failure is told after all have ended."""
        failures: list[CellFailedError] = []
        with ThreadPoolExecutor(max_workers=len(group)) as pool:
            for lane, future in [(lane, pool.submit(self._ask, lane, lane.cell)) for lane in group]:
                try:
                    answer = future.result()
                except CellFailedError as error:
                    failures.append(error)
                    continue
                self.progress.advance()
                yield LaneResult(number, lane, answer)
                if answer.get("stopped_by"):
                    failures.append(CellFailedError(f"[{lane.job.title}] {answer['stopped_by']}"))
                elif answer.get("interrupted"):
                    self.status = "interrupted"
        if failures:
            raise failures[0]

    def _ask(self, lane: Lane, cell: DirectCell) -> CellAnswer:
        try:
            return cell_answer(run_request(text_of(cell), lambda _share: not self.stop()))
        except RefusedError as error:
            raise RefusedError(f"[{lane.job.title}] {error}") from None
        except CellFailedError as error:
            raise CellFailedError(f"[{lane.job.title}] {error}") from None

    def _sync(self, group: Sequence[Lane]) -> None:
        for lane in group:
            if lane.job.end_fsync and lane.writes:
                for part in lane.parts:
                    descriptor = os.open(part.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                    try:
                        os.fsync(descriptor)
                    finally:
                        os.close(descriptor)


def by_job(results: Sequence[LaneResult]) -> list[JobResult]:
    """Put the lanes of each job together, in the order of the file."""
    found: dict[tuple[int, int], list[LaneResult]] = {}
    for result in results:
        found.setdefault((result.group, result.lane.job.section.number), []).append(result)
    return [JobResult(group, lanes[0].lane.job.title, tuple(lanes)) for (group, _), lanes in sorted(found.items())]


def _per_s(result: LaneResult, what: Literal["requests", "bytes"]) -> float:
    return result.answer["all"][what] / result.elapsed_s if result.elapsed_s else 0.0

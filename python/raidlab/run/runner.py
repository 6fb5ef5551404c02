"""Where cells are run: the protocol, and this process for live targets.

`pool` has the processes of the simulator, `dask` those of a cluster, `cached` what they gave before.

Invariants:

- One protocol for all: a request's text goes in with a key, an answer or an error comes out with that key.
- Signals reach only this process. A run that is to stop is told onwards as `KeyboardInterrupt` from `next_done`, and
  from nowhere else.
- A cell that was ended early is not like the others: `next_done` never hands it out.
- A cell may be run again only for what its host did, never for what it gave; how often is in its record. Each time its
  clock goes at half the speed: what a host is late by is then half as much of the disks' own time.
- What a resumed run knows never reaches the engine (`ResumeRunner`).
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from raidlab.errors import CellFailedError, CellLostError, RefusedError

if TYPE_CHECKING:
    from raidlab.results.answer import CellAnswer
    from raidlab.run.interrupt import StopFlag
    from raidlab.run.stream_cells import CopySink
    from raidlab.written import WrittenAnswer

LATENESS = "lateness"
# Of the disks' mean service time: what the engine accepts of the 99th percentile.
PROMPT_SHARE = 0.02
_SLOWER = 0.5
_KEY = re.compile(r"(\w+\[\d+\][\w.]*): ")

# As an engine gives it: each has its own words (docs/internals/cell-contract.md).
Answer = dict[str, Any]
OnProgress = Callable[[float], bool]
KeyedAnswer = tuple[Hashable, "CellAnswer | WrittenAnswer"]


class RecordPlace(NamedTuple):
    """Where rows of single requests go: the run folder, and the cell."""

    folder: Path
    cell: str


def record_place(folder: Path | None, key: Hashable, request: str) -> RecordPlace | None:
    """Where the rows of a request's cell go; None where none are kept, or where it asks for files or streams."""
    if folder is None:
        return None
    cell = json.loads(request)
    is_kept = cell["engine"] in ("sim", "live") and not cell.get("files") and not cell.get("streams")
    return RecordPlace(folder, str(key)) if is_kept else None


class Runner(Protocol):
    """Runs requests; how many at once is its own affair."""

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""

    def next_done(self) -> KeyedAnswer | None:
        """Wait for the next answer; None when nothing is queued.

        Raises `CellLostError` for a cell that cannot be had while the others can: what is queued still comes.
        """

    def close(self) -> list[KeyedAnswer]:
        """Drop what is queued, end what is running, and give the answers that were not fetched; may be called again."""


def run_request(request: str, on_progress: OnProgress | None = None, records: RecordPlace | None = None) -> Answer:
    """Run one request, and give the answer as its engine gives it; with ``records`` each of its requests leaves a row.

    Raises `CellFailedError` or `RefusedError` with the engine's own sentence.
    """
    from raidlab import _core

    try:
        if records is None:
            return dict(_core.run_cell(request, on_progress))
        return _recorded(request, on_progress, records)
    except _core.CellError as error:
        failure = RefusedError if error.kind == "refused" else CellFailedError
        raise failure(str(error), error.kind, error.key) from None


def _recorded(request: str, on_progress: OnProgress | None, place: RecordPlace) -> Answer:
    from raidlab import _core

    # Not at the head: what writes tables is slow to import, and most workers write none.
    from raidlab.results.records import RecordWriter, lost_records

    writer = RecordWriter(*place)
    try:
        answer = dict(_core.run_cell(request, on_progress, writer.add))
    except BaseException:
        writer.discard()
        raise
    kept = writer.finish(answer.pop("records_lost"))
    return {**answer, "records": kept, "checks": [*answer["checks"], *lost_records(kept)]}


def cell_answer(answer: Answer) -> CellAnswer:
    """An engine's answer in the one shape of a cell."""
    if answer.get("engine") not in ("files", "streams"):
        return cast("CellAnswer", answer)
    # Not at the head: the simulator's workers import this module, and need nothing that this one imports.
    from raidlab.run.answers import answer_of_files, answer_of_streams

    return answer_of_files(answer) if answer["engine"] == "files" else answer_of_streams(answer)


def check_ended(stopped_by: str | None, *, interrupted: bool) -> None:
    """Refuse the answer to a request that did not run to its end.

    Raises `CellFailedError` with what stopped it. Raises `KeyboardInterrupt` where it was to stop.
    """
    if stopped_by:
        key = _KEY.match(stopped_by)
        raise CellFailedError(stopped_by, "stopped", key[1] if key else "")
    if interrupted:
        raise KeyboardInterrupt


class InlineRunner:
    """One request at a time, in this process, in the order they were submitted: for live targets.

    Two live cells at once would share the disks and measure each other. A cell that was ended early ends the run, and
    what it measured till then is given by `close`, marked as interrupted.

    Parameters
    ----------
    machine : CopySink, optional
        Where streams to another machine go.
    tries : int
        How often a cell is run at most, where emulated disks were for a moment too late for it to say anything.
    records : pathlib.Path, optional
        The run folder, where each request is to leave a row.

    Attributes
    ----------
    again : int
        How many cells were run more than once.
    """

    def __init__(
        self, stop: StopFlag, machine: CopySink | None = None, tries: int = 1, records: Path | None = None
    ) -> None:
        self._queue: deque[tuple[Hashable, str]] = deque()
        self._stop, self._machine, self._tries, self._records = stop, machine, tries, records
        self._cut: list[KeyedAnswer] = []
        self.again = 0

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        self._queue.append((key, request))

    def next_done(self) -> KeyedAnswer | None:
        """Run the next request."""
        if not self._queue:
            return None
        if self._stop():
            raise KeyboardInterrupt
        key, request = self._queue.popleft()
        try:
            answer = self._run(key, request)
            if answer.get("requests", answer.get("bytes")) and (answer.get("stopped_by") or answer.get("interrupted")):
                self._cut.append((key, cell_answer({**answer, "interrupted": True})))
            check_ended(answer.get("stopped_by"), interrupted=bool(answer.get("interrupted")))
        except CellFailedError as error:
            raise CellFailedError(str(error), error.kind, error.key, str(key)) from None
        return key, cell_answer(answer)

    def _run(self, key: Hashable, request: str) -> Answer:
        """Run a request, again and slower where its disks were late for a moment; what it measured decides nothing."""
        from raidlab.run.stream_cells import connected

        number = 0
        while True:
            request = slower(request) if number else request
            number += 1
            with connected(request, self._machine) as text:
                answer = run_request(text, lambda _share: not self._stop(), record_place(self._records, key, request))
            if number == self._tries or self._stop() or answer.get("stopped_by") or not late_for_a_moment(answer):
                break
        self.again += number > 1
        for check in answer.get("checks", []) if number > 1 else []:
            if check["name"] == LATENESS:
                half = ", each at half the speed of the one before" if "speed" in json.loads(request) else ""
                late = "all of them" if check["verdict"] == "INVALID" else f"the first {number - 1}"
                check["evidence"] += f" Run {number} times{half}: {late} were late."
        return answer

    def close(self) -> list[KeyedAnswer]:
        """Drop what is queued; the cell that was ended early, if one was."""
        self._queue.clear()
        cut, self._cut = self._cut, []
        return cut


class ResumeRunner:
    """A runner before another one, which answers what is known already.

    Answers come in the order in which a run that was never stopped would have given them on the real clock: a cell that
    is known comes when all that were queued before it are done. So searches go on as they began, and every cell has the
    place in the order that it would have had. ``runner`` runs what is not known; ``answers`` is what is, by key.
    """

    def __init__(self, runner: Runner, answers: Mapping[str, CellAnswer]) -> None:
        self._runner = runner
        self._answers = answers
        self._queue: deque[Hashable] = deque()
        # What came before its turn: to take it out of a long queue at once would take longer than to run it.
        self._early: set[Hashable] = set()

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        self._queue.append(key)
        if key not in self._answers:
            self._runner.submit(key, request)

    def next_done(self) -> KeyedAnswer | None:
        """The next answer: the known one, if it is its turn."""
        while self._queue and self._queue[0] in self._early:
            self._early.remove(self._queue.popleft())
        if self._queue and (key := self._queue[0]) in self._answers:
            self._queue.popleft()
            return key, self._answers[str(key)]
        try:
            done = self._runner.next_done()
        except CellLostError as error:
            self._early.add(error.cell)
            raise
        if done is not None:
            self._early.add(done[0])
        return done

    def close(self) -> list[KeyedAnswer]:
        """Drop what is queued, and give what was finished meanwhile."""
        self._queue.clear()
        return self._runner.close()


def slower(request: str) -> str:
    """The same request on a clock of half the speed; unchanged where its clock has none but the system's."""
    asked = json.loads(request)
    if "speed" not in asked:
        return request
    return json.dumps({**asked, "speed": asked["speed"] * _SLOWER}, sort_keys=True)


def late_for_a_moment(answer: Answer) -> bool:
    """Whether emulated disks were too late for the cell to say anything, while most of their completions were prompt.

    A host that is late all the time is not asked again: it would be late again.
    """
    if not any(check["name"] == LATENESS and check["verdict"] == "INVALID" for check in answer.get("checks", [])):
        return False
    facts = answer.get("facts", {})
    parts = [facts.get("engine") or {}, *facts.get("arrays", [])]
    found = [part["lateness"] for part in parts if part.get("lateness")]
    return all(late["p50_ns"] <= PROMPT_SHARE * late["mean_service_ns"] for late in found)

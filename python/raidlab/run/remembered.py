"""Going on with a run: cells whose answers are known are answered, the others are run.

Invariants:

- Answers come in the order in which a run that was never stopped would have given them on the real clock: a cell that
  is known comes when all that were queued before it are done. So searches go on as they began, and every cell has the
  place in the order that it would have had.
- Nothing that is known reaches the engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping

from raidlab.results.answer import CellAnswer
from raidlab.run.runner import Answer, Runner


class Remembered:
    """A runner before another one.

    Parameters
    ----------
    runner : Runner
        Runs what is not known.
    answers : mapping
        What is known, by key.
    """

    def __init__(self, runner: Runner, answers: Mapping[str, CellAnswer]) -> None:
        self._runner = runner
        self._answers = answers
        self._queue: deque[Hashable] = deque()

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        self._queue.append(key)
        if key not in self._answers:
            self._runner.submit(key, request)

    def next_done(self) -> tuple[Hashable, Answer] | None:
        """The next answer: the known one, if it is its turn."""
        if self._queue and (key := self._queue[0]) in self._answers:
            self._queue.popleft()
            return key, dict(self._answers[str(key)])
        done = self._runner.next_done()
        if done is not None:
            self._queue.remove(done[0])
        return done

    def close(self) -> list[tuple[Hashable, Answer]]:
        """Drop what is queued, and give what was finished meanwhile."""
        self._queue.clear()
        return self._runner.close()

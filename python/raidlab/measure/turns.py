"""Several things measured in turns: repeat by repeat, shuffled within each, until all is done or something ends it.

Invariants:

- Within a repeat the order is shuffled by the seed, so that a drift of the machine hits all alike.
- Whatever ends it, what was measured before is kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from raidlab.errors import CellFailedError, InputError
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress
from raidlab.study.expand import derive_seed

Key = TypeVar("Key")
Result = TypeVar("Result")
# A row of the tables that are printed: numbers and words under the names that docs/reference/results.md explains.
Row = dict[str, Any]


@dataclass
class Turns(Generic[Key, Result]):
    """What came of it."""

    results: dict[Key, list[Result]] = field(default_factory=dict)
    """The repeats of each thing that ran to their end, in the order they were run."""
    status: str = "complete"
    """``complete``, ``interrupted`` or ``failed``."""
    failure: str | None = None


def in_turns(
    keys: Sequence[Key],
    repeats: int,
    run: Callable[[Key, int], Result],
    *,
    seed: int,
    title: str,
    progress: Progress,
    stop: StopFlag,
) -> Turns[Key, Result]:
    """Run each thing so often.

    ``keys``: what tells the things apart, in the order of the result. ``run``: ``run(key, repeat)``; raises
    `CellFailedError`, or `KeyboardInterrupt`, where it did not run to its end.
    """
    turns: Turns[Key, Result] = Turns({key: [] for key in keys})
    progress.begin(title, repeats * len(keys))
    try:
        for repeat in range(repeats):
            order = list(keys)
            random.Random(derive_seed(seed, "order", str(repeat))).shuffle(order)
            for key in order:
                if stop():
                    raise KeyboardInterrupt
                turns.results[key].append(run(key, repeat))
                progress.advance()
    except KeyboardInterrupt:
        turns.status = "interrupted"
    except CellFailedError as error:
        # Before the first there is nothing to keep: the error is the whole story.
        if not any(turns.results.values()):
            if error.kind == "bad_input":
                raise InputError.one("", str(error)) from None
            raise
        turns.status, turns.failure = "failed", str(error)
    finally:
        progress.end()
    return turns

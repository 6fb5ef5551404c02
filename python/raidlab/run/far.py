"""Another machine as a sink of streams: connected for the cell that is run, and for no longer.

Invariants:

- A request's text is a pure function of the study; the number of a connection is put in when the cell is run.
- Who the machine is, and how it is reached, is for whoever hands it in; here it is a name and a connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from raidlab.study.cell import ConnectionEnd

# A connection that is opened when the cell is run.
NOT_YET = ConnectionEnd(descriptor=-1)


class FarMachine(Protocol):
    """A machine that takes copies."""

    @property
    def name(self) -> str:
        """As the user named it."""

    def taking(self, total: int) -> AbstractContextManager[int]:
        """A connection whose other end takes so many bytes and says when it has them for good: its descriptor."""


@contextmanager
def connected(request: str, machine: FarMachine | None) -> Iterator[str]:
    """The request with a connection for each stream that goes to the machine.

    Raises
    ------
    CellFailedError
        When the machine does not take it.
    """
    if machine is None or f'"{NOT_YET.kind}"' not in request:
        yield request
        return
    document = json.loads(request)
    with ExitStack() as held:
        for stream in document.get("streams", []):
            if stream["sink"] == NOT_YET.model_dump():
                stream["sink"]["descriptor"] = held.enter_context(machine.taking(stream["bytes"]))
        yield json.dumps(document, sort_keys=True)

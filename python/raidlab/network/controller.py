"""Drive several machines at once: all ready, all started together, each one's rate and their total.

Invariants:

- Nobody starts before everybody is ready; the total is all bytes over the time from the first start to the last end.
- A machine that fails ends the step, and says why; files that were made are removed.
- In tests that read, files were written before, by the machine that reads them, and evicted where the caller can.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from raidlab.errors import CellFailedError, InputError
from raidlab.network.protocol import (
    PATIENCE_S,
    GoneError,
    Message,
    NotTrustedError,
    connect,
    open_channel,
    split_address,
)

Work = Literal["read", "write"]


@dataclass(frozen=True)
class MachineResult:
    """What one machine did."""

    machine: str
    """Its address."""
    work: Work
    bytes: int
    elapsed_ns: int
    cpu_share: float
    """Processor time of its agent over the time it took; 1 is a whole processor."""

    @property
    def mb_s(self) -> float:
        """MB a second."""
        return self.bytes / self.elapsed_ns * 1000 if self.elapsed_ns else 0.0


@dataclass(frozen=True)
class StepResult:
    """What machines did at once."""

    machines: tuple[MachineResult, ...]
    elapsed_ns: int
    """From the word to start until the last had ended."""

    def total_mb_s(self, work: Work | None = None) -> float:
        """All bytes of those who did this work, until the last of them had ended."""
        mine = [one for one in self.machines if work in (None, one.work)]
        longest = max((one.elapsed_ns for one in mine), default=0)
        return sum(one.bytes for one in mine) / longest * 1000 if longest else 0.0


class AgentMachine:
    """A machine whose agent this controller drives, at ``HOST:PORT``.

    Raises
    ------
    InputError
        When there is no agent, or one without the key.
    """

    def __init__(self, address: str, key: bytes) -> None:
        self.address = address
        host, port = split_address(address, "AGENT")
        self._channel = open_channel(lambda: connect(host, port), key, self._problem, PATIENCE_S)
        self._abandoned = False
        self.file = f"raidlab-net-{secrets.token_hex(8)}.dat"

    def _problem(self, message: str) -> InputError:
        accepted = "a machine where `raidlab agent` runs with the same key"
        return InputError.one("AGENT", message, value=f"'{self.address}'", accepted=accepted)

    def ready(self, work: Work, total: int, block_bytes: int) -> None:
        """Have its file opened."""
        answer = self._asked({"do": work, "file": self.file, "bytes": total, "block_bytes": block_bytes})
        if not answer.get("ready"):
            raise self._failed(answer.get("error", "failed"))

    def go(self, work: Work) -> MachineResult:
        """Have it start, and wait for its end."""
        answer = self._asked({"do": "go"})
        if not answer.get("ok"):
            raise self._failed(answer.get("error", "failed"))
        elapsed = max(1, answer["elapsed_ns"])
        return MachineResult(self.address, work, answer["bytes"], elapsed, answer["cpu_ns"] / elapsed)

    def remove(self) -> None:
        """Have its file removed."""
        self._asked({"do": "remove", "file": self.file})

    def close(self) -> None:
        """Let it go, its file removed if it still answers."""
        if not self._abandoned:
            with suppress(CellFailedError):
                self.remove()
        self._channel.close()

    def abandon(self) -> None:
        """End the connection in the midst of a job: nobody waits for its answer any more."""
        self._abandoned = True
        self._channel.shut()

    def _asked(self, message: Message) -> Message:
        """Say something, and wait for the answer."""
        try:
            self._channel.send(message)
            return self._channel.receive()
        except (GoneError, NotTrustedError) as error:
            raise self._failed(str(error) or "it has gone") from None

    def _failed(self, said: str) -> CellFailedError:
        return CellFailedError(f"machine {self.address}: {said}", kind="io", key="AGENT")


def run_step(
    jobs: Sequence[tuple[AgentMachine, Work]], total: int, block_bytes: int, *, evict: Callable[[], None] = lambda: None
) -> StepResult:
    """Have machines move ``total`` bytes each at once; those that read have written their file before.

    ``evict`` is called once before everybody starts: it puts files out of the storage's own caches, where it can.

    Raises `CellFailedError` when a machine fails.
    """
    with ThreadPoolExecutor(len(jobs)) as pool:
        try:
            list(pool.map(lambda job: job[0].ready(job[1], total, block_bytes), jobs))
            evict()
            begun = time.monotonic_ns()
            done = list(pool.map(lambda job: job[0].go(job[1]), jobs))
            return StepResult(tuple(done), time.monotonic_ns() - begun)
        except BaseException:
            # Who still waits for a machine waits no longer; what machines were doing is of no use any more.
            for machine, _work in jobs:
                machine.abandon()
            raise

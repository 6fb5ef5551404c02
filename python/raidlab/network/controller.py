"""Drive several machines at once: all ready, all started together, each one's rate and their total.

Invariants:

- Nobody starts before everybody is ready; the total is all bytes over the time from the first start to the last end.
- A machine that fails ends the step, and says why; files that were made are removed.
- In tests that read, files were written before, by the machine that reads them, and evicted where the caller can.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from raidlab.errors import CellFailedError, InputError
from raidlab.network.protocol import Channel, GoneError, NotTrustedError, split_address

_PATIENCE_S = 10.0
Work = Literal["read", "write"]


@dataclass(frozen=True)
class MachineResult:
    """What one machine did.

    Attributes
    ----------
    machine : str
        Its address.
    work : str
        ``read`` or ``write``.
    cpu_share : float
        Processor time of its agent over the time it took; 1 is a whole processor.
    """

    machine: str
    work: Work
    bytes: int
    elapsed_ns: int
    cpu_share: float

    @property
    def mb_s(self) -> float:
        """MB a second."""
        return self.bytes / self.elapsed_ns * 1000 if self.elapsed_ns else 0.0


@dataclass(frozen=True)
class StepResult:
    """What machines did at once.

    Attributes
    ----------
    machines : tuple of MachineResult
    elapsed_ns : int
        From the word to start until the last had ended.
    """

    machines: tuple[MachineResult, ...]
    elapsed_ns: int

    def total_mb_s(self, work: Work | None = None) -> float:
        """All bytes of those who did this work, until the last of them had ended."""
        mine = [one for one in self.machines if work in (None, one.work)]
        longest = max((one.elapsed_ns for one in mine), default=0)
        return sum(one.bytes for one in mine) / longest * 1000 if longest else 0.0


class Machine:
    """A machine whose agent this controller drives.

    Parameters
    ----------
    address : str
        ``HOST:PORT``.
    key : bytes

    Raises
    ------
    InputError
        When there is no agent, or one without the key.
    """

    def __init__(self, address: str, key: bytes) -> None:
        self.address = address
        host, port = split_address(address, "AGENT")
        try:
            self._connection = _connected(host, port)
        except OSError as error:
            raise self._problem(f"no agent answers: {error.strerror or error}") from None
        try:
            self._channel = Channel(self._connection, key, "controller", _PATIENCE_S)
        except (NotTrustedError, GoneError, OSError) as error:
            self._connection.close()
            raise self._problem(f"is not trusted: {error or 'it closed the connection'}") from None
        self._abandoned = False
        self.file = f"raidlab-net-{secrets.token_hex(8)}.dat"

    def _problem(self, message: str) -> InputError:
        accepted = "a machine where `raidlab agent` runs with the same key"
        return InputError.one("AGENT", message, value=f"'{self.address}'", accepted=accepted)

    def ready(self, work: Work, total: int, block_bytes: int) -> None:
        """Have its file opened."""
        self._send({"do": work, "file": self.file, "bytes": total, "block_bytes": block_bytes})
        answer = self._answer()
        if not answer.get("ready"):
            raise self._failed(answer)

    def go(self, work: Work) -> MachineResult:
        """Have it start, and wait for its end."""
        self._send({"do": "go"})
        answer = self._answer()
        if not answer.get("ok"):
            raise self._failed(answer)
        elapsed = max(1, int(answer["elapsed_ns"]))
        return MachineResult(self.address, work, int(answer["bytes"]), elapsed, int(answer["cpu_ns"]) / elapsed)

    def remove(self) -> None:
        """Have its file removed."""
        self._send({"do": "remove", "file": self.file})
        self._answer()

    def close(self) -> None:
        """Let it go, its file removed if it still answers."""
        if not self._abandoned:
            with suppress(CellFailedError):
                self.remove()
        self._channel.close()

    def abandon(self) -> None:
        """End the connection in the midst of a job: nobody waits for its answer any more."""
        self._abandoned = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except GoneError:
            raise self._gone("it has gone") from None

    def _gone(self, said: str) -> CellFailedError:
        return CellFailedError(f"machine {self.address}: {said}", kind="io", key="AGENT")

    def _answer(self) -> dict[str, Any]:
        try:
            return self._channel.receive()
        except (GoneError, NotTrustedError) as error:
            raise self._gone(str(error) or "it has gone") from None

    def _failed(self, answer: dict[str, Any]) -> CellFailedError:
        return CellFailedError(f"machine {self.address}: {answer.get('error', 'failed')}", kind="io", key="AGENT")


def _connected(host: str, port: int) -> socket.socket:
    if port:
        return socket.create_connection((host, port), timeout=_PATIENCE_S)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_PATIENCE_S)
    connection.connect(host)
    return connection


def run_step(
    jobs: Sequence[tuple[Machine, Work]], total: int, block_bytes: int, *, evict: Callable[[], None] = lambda: None
) -> StepResult:
    """Have machines work at once.

    Parameters
    ----------
    jobs : sequence of (Machine, str)
        Those that read have written their file before.
    total : int
        Bytes of each.
    block_bytes : int
    evict : callable
        Called once before everybody starts: puts files out of the storage's own caches, where that can be done.

    Raises
    ------
    CellFailedError
        When a machine fails.
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

"""Copies to another machine's disk: a plain stream of bytes to an agent there, as `rcp` sends a file.

Invariants:

- Who the agent is, is settled first, on a channel where both sides show the key; the stream has a connection of its
  own, which the agent takes only with a word that it has just given over that channel.
- Here no byte of a stream is moved: whoever asked gets the connection.
- What was copied is removed when the connection is given back.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from raidlab.errors import CellFailedError, InputError
from raidlab.network.protocol import Channel, GoneError, NotTrustedError, connect, open_channel, split_address

Connect = Callable[[str, int], socket.socket]


@dataclass(frozen=True)
class CopyMachine:
    """A machine whose agent takes copies."""

    name: str
    """As the user named it."""
    address: str
    """``HOST:PORT`` of its agent."""
    key: bytes
    connect: Connect = connect
    """How it is reached."""

    def check(self) -> None:
        """Find out whether an agent with the key answers, before anything is measured."""
        host, port = split_address(self.address, "--machine")

        def problem(message: str) -> InputError:
            accepted = "HOST:PORT of a machine where `raidlab agent` runs with the same key, or lab:DIR"
            return InputError.one("--machine", message, value=f"'{self.name}'", accepted=accepted)

        if not port:
            raise problem("is no address")
        open_channel(lambda: self.connect(host, port), self.key, problem).close()

    @contextmanager
    def taking(self, total: int) -> Iterator[int]:
        """A connection whose other end takes so many bytes and says when it has them for good: its descriptor.

        Raises `CellFailedError` when the machine does not take it.
        """
        host, port = split_address(self.address, "--machine")
        file = f"raidlab-net-{secrets.token_hex(8)}.dat"
        try:
            with self.connect(host, port) as control:
                channel = Channel(control, self.key, "controller")
                # How long a copy takes is its own affair.
                control.settimeout(None)
                channel.send({"do": "take", "file": file, "bytes": total})
                answer = channel.receive()
                if not answer.get("ready"):
                    raise self._failed(answer.get("error", "it does not take copies"))
                try:
                    with self.connect(host, answer["port"]) as stream:
                        stream.sendall(bytes.fromhex(answer["word"]))
                        stream.settimeout(None)
                        yield stream.fileno()
                finally:
                    with suppress(GoneError, NotTrustedError):
                        # Its account of the copy; then what it has written may go.
                        channel.receive()
                        channel.send({"do": "remove", "file": file})
                        channel.receive()
        except (OSError, GoneError, NotTrustedError) as error:
            raise self._failed(str(error) or "it has gone") from None

    def _failed(self, said: str) -> CellFailedError:
        return CellFailedError(f"machine {self.name}: {said}", kind="io", key="--machine")

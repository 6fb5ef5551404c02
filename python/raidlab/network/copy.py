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
from raidlab.network.protocol import Channel, GoneError, NotTrustedError, split_address

_PATIENCE_S = 10.0
Connect = Callable[[str, int], socket.socket]


def connect_from_here(host: str, port: int) -> socket.socket:
    """A connection from this machine."""
    return socket.create_connection((host, port), timeout=_PATIENCE_S)


@dataclass(frozen=True)
class CopyMachine:
    """A machine whose agent takes copies.

    Attributes
    ----------
    name : str
        As the user named it.
    address : str
        ``HOST:PORT`` of its agent.
    key : bytes
    connect : callable
        How it is reached; from this machine by default.
    """

    name: str
    address: str
    key: bytes
    connect: Connect = connect_from_here

    def check(self) -> None:
        """Find out whether an agent with the key answers, before anything is measured.

        Raises
        ------
        InputError
        """
        host, port = split_address(self.address, "--machine")
        accepted = "HOST:PORT of a machine where `raidlab agent` runs with the same key, or lab:DIR"
        if not port:
            raise InputError.one("--machine", "is no address", value=f"'{self.name}'", accepted=accepted)
        try:
            with self.connect(host, port) as connection:
                Channel(connection, self.key, "controller")
        except OSError as error:
            message = f"no agent answers: {error.strerror or error}"
            raise InputError.one("--machine", message, value=f"'{self.name}'", accepted=accepted) from None
        except (NotTrustedError, GoneError) as error:
            message = f"is not trusted: {error or 'it closed the connection'}"
            raise InputError.one("--machine", message, value=f"'{self.name}'", accepted=accepted) from None

    @contextmanager
    def taking(self, total: int) -> Iterator[int]:
        """A connection whose other end takes so many bytes and says when it has them for good: its descriptor.

        Raises
        ------
        CellFailedError
            When the machine does not take it.
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
                    raise self._failed(str(answer.get("error", "it does not take copies")))
                try:
                    with self.connect(host, int(answer["port"])) as stream:
                        stream.sendall(bytes.fromhex(str(answer["word"])))
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

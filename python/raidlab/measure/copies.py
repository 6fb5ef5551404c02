"""Copies to another machine's disk: a plain stream of bytes to a worker there, as `rcp` sends a file.

Invariants:

- Who the far end is, is the cluster's affair; the stream has a connection of its own, which is taken only with a word
  that has just come over the cluster's.
- Here no byte of a stream is moved: whoever asked gets the connection.
- A copy lies in a folder of raidlab's own, and is gone when the connection is given back.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from raidlab.directory import Directory
from raidlab.errors import CellFailedError, InputError
from raidlab.run.members import check_room, made_folders

if TYPE_CHECKING:
    from raidlab.measure.hosts import Hosts

OPTION = "--machine"
# A name that is removed with a folder of raidlab's own.
_FILE = "member-00.dat"
_WORD_BYTES = 32
_PIECE_BYTES = 256 * 1024
_PATIENCE_S = 10.0
# A copy of which nothing arrives for so long has ended.
_COPY_PATIENCE_S = 120.0


class CopyTaker:
    """What takes copies into a directory, one at a time; it lives in a worker."""

    def __init__(self, directory: Path, made: ExitStack) -> None:
        self._directory = directory
        [folder] = made.enter_context(made_folders([directory], OPTION))
        self._folder = made.enter_context(Directory.open(folder))
        self._thread: threading.Thread | None = None
        self._error = ""

    def take(self, host: str, total: int) -> tuple[int, bytes]:
        """Listen for a copy of so many bytes, at this machine's address: the port, and the word that comes first."""
        check_room([self._directory], 1, total, (OPTION, "a study that copies less"))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener, word = socket.create_server((host, 0), family=family), secrets.token_bytes(_WORD_BYTES)
        listener.settimeout(_PATIENCE_S)
        self._error = ""
        self._thread = threading.Thread(target=self._receive, args=(listener, word, total), daemon=True)
        self._thread.start()
        return int(listener.getsockname()[1]), word

    def taken(self) -> str:
        """Wait for the end of the copy, and remove it; what went wrong, if anything did."""
        if self._thread is not None:
            self._thread.join()
        with suppress(OSError):
            self._folder.remove(_FILE, own=True)
        return self._error

    def _receive(self, listener: socket.socket, word: bytes, total: int) -> None:
        try:
            with listener, _accepted(listener, word) as stream:
                with os.fdopen(self._folder.create_file(_FILE, 0o600), "wb") as file:
                    moved = 0
                    while piece := stream.recv(min(_PIECE_BYTES, total - moved)):
                        file.write(piece)
                        moved += len(piece)
                    file.flush()
                    os.fsync(file.fileno())
                stream.sendall(moved.to_bytes(8, "little"))
        except OSError as error:
            self._error = error.strerror or str(error)


def _accepted(listener: socket.socket, word: bytes) -> socket.socket:
    stream, _address = listener.accept()
    stream.settimeout(_PATIENCE_S)
    if not hmac.compare_digest(stream.recv(_WORD_BYTES, socket.MSG_WAITALL), word):
        stream.close()
        raise OSError("somebody else came for the copy")
    stream.settimeout(_COPY_PATIENCE_S)
    return stream


@dataclass(frozen=True)
class HostDisk:
    """A directory of one of a cluster's machines, which takes copies."""

    name: str
    """As the user named it: ``HOST:/DIR``."""
    hosts: Hosts
    """That machine alone."""

    @contextmanager
    def taking(self, total: int) -> Iterator[int]:
        """A connection whose other end takes so many bytes and says when it has them for good: its descriptor.

        Raises `CellFailedError` when the machine does not take it.
        """
        [host] = self.hosts.hosts
        address = str(urlsplit(host.address).hostname)
        try:
            [(_, (port, word))] = self.hosts.ask(lambda host: host.agent.take(address, total))
        except InputError as error:
            raise CellFailedError(str(error), "io", OPTION) from None
        try:
            with socket.create_connection((address, port), timeout=_PATIENCE_S) as stream:
                stream.sendall(word)
                stream.settimeout(None)
                yield stream.fileno()
        except OSError as error:
            raise CellFailedError(f"host {host.name}: {error.strerror or error}", "io", OPTION) from None
        finally:
            # Asked however the copy ended: that the host is lost, or its disk full, says more than a broken connection.
            [(_, wrong)] = self.hosts.ask(lambda host: host.agent.taken())
            if wrong:
                raise CellFailedError(f"host {host.name}: the copy ended: {wrong}", "io", OPTION)


@contextmanager
def host_disk(text: str, cluster: str) -> Iterator[HostDisk]:
    """The disk that ``HOST:/DIR`` names on a cluster, for as long as the context lasts."""
    # Not at the head: Dask is slow to import, and need not be installed.
    from raidlab.measure.hosts import Hosts

    name, _, directory = text.partition(":/")
    if not name or not directory:
        accepted = "HOST:/DIR, a directory of one of the cluster's hosts"
        raise InputError.one(OPTION, "names no directory of a host", value=f"'{text}'", accepted=accepted)
    with Hosts(cluster, only=name) as hosts:
        hosts.ask(lambda host: host.agent.take_copies(f"/{directory}"))
        yield HostDisk(text, hosts)

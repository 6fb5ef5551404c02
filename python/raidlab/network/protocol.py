"""How a controller and an agent talk: frames of JSON over TCP, after each has shown the other that it has the key.

The key itself never travels. Each side sends a random challenge; each answers with an HMAC over both challenges and
its own role, so that an answer cannot be sent back to who asked. All frames after that carry an HMAC under a key of
this session, with the sender's role and a number, so that none can be changed, left out, repeated, or come from
somebody else.

Invariants:

- A frame is taken apart only after its HMAC has been found right.
- Nothing is kept secret: whoever can watch the network sees sizes, rates and names of files. What is read and written
  is random or the storage's own, and goes another way.
- Who has not shown the key yet has a moment for all of it, however it spreads its bytes over that moment.
- A frame is short, and one that is no JSON, or nests deeply, is refused as one that is not from the other side.

Reference: RFC 2104 (HMAC); M. Bellare, P. Rogaway, *Entity authentication and key distribution*, CRYPTO 1993 (why
both challenges and the roles are under the hash).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from raidlab.errors import InputError
from raidlab.reading import json_value, read_bytes

Role = Literal["agent", "controller"]
_OTHER: dict[Role, Role] = {"agent": "controller", "controller": "agent"}
_HELLO = b"raidlab-agent-1\n"
_NONCE_BYTES = 32
_MAC_BYTES = 32
_LEAST_KEY_BYTES = 16
_LONGEST_KEY_BYTES = 4096
# A job or a result is far smaller.
_LONGEST_FRAME = 1 << 16
# For a machine that is spoken to.
PATIENCE_S = 10.0


@with_config(ConfigDict(strict=True))
class Message(TypedDict, total=False):
    """What a controller says, or an agent answers: each has some of these keys."""

    do: str
    file: str
    bytes: int
    block_bytes: int
    ok: bool
    error: str
    ready: bool
    port: int
    word: str
    host: str
    pid: int
    elapsed_ns: int
    cpu_ns: int


_MESSAGE = TypeAdapter(Message)


class NotTrustedError(Exception):
    """The other side has not shown that it has the key, or a frame is not from it."""


class GoneError(Exception):
    """The other side has closed the connection."""


def load_key(file: Path) -> bytes:
    """The shared key: the content of a file that nobody else may read.

    Raises `InputError` when it cannot be read, is short, or others may read it.
    """
    try:
        key, mode = read_bytes(file, _LONGEST_KEY_BYTES).strip(), file.stat().st_mode
    except OSError as error:
        raise InputError.one("--key", f"cannot be read: {(error.strerror or '').lower()}", value=f"'{file}'") from None
    if mode & 0o077:
        raise InputError.one("--key", "others may read it", value=f"'{file}'", accepted="a file of mode 0600")
    if len(key) < _LEAST_KEY_BYTES:
        accepted = f"at least {_LEAST_KEY_BYTES} bytes, such as `openssl rand -hex 32` makes"
        raise InputError.one("--key", f"has {len(key)} bytes", value=f"'{file}'", accepted=accepted)
    return key


class Channel:
    """A connection whose two sides know each other; this one has the ``role``.

    All of the introduction may take ``patience_s``.

    Raises
    ------
    NotTrustedError, GoneError
        When the other side does not have the key, or goes.
    """

    def __init__(self, connection: socket.socket, key: bytes, role: Role, patience_s: float | None = None) -> None:
        self._connection, self._role = connection, role
        self._until_s = None if patience_s is None else time.monotonic() + patience_s
        mine = secrets.token_bytes(_NONCE_BYTES)
        self._connection.sendall(_HELLO + mine)
        if self._exactly(len(_HELLO)) != _HELLO:
            raise NotTrustedError("it speaks something else")
        theirs = self._exactly(_NONCE_BYTES)
        both = mine + theirs if role == "controller" else theirs + mine
        # The agent shows first: a controller that has no key learns nothing but an answer to its own challenge.
        if role == "agent":
            self._connection.sendall(_mac(key, b"proof", role, both))
        if not hmac.compare_digest(self._exactly(_MAC_BYTES), _mac(key, b"proof", _OTHER[role], both)):
            raise NotTrustedError("it does not have the key")
        if role == "controller":
            self._connection.sendall(_mac(key, b"proof", role, both))
        self._session = _mac(key, b"session", "controller", both)
        self._sent = self._received = 0
        self._waiting_since_s: float | None = None
        self._until_s = None
        connection.settimeout(None)

    @property
    def local_host(self) -> str | None:
        """The address of this side; None for a socket of this machine."""
        name = self._connection.getsockname()
        return str(name[0]) if isinstance(name, tuple) else None

    @property
    def silent_s(self) -> float:
        """How long a message of the other side has been waited for; 0 while none is."""
        since_s = self._waiting_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def send(self, message: Message) -> None:
        """Send one message."""
        body = json.dumps(message).encode()
        mac = _mac(self._session, self._sent.to_bytes(8, "big"), self._role, body)
        self._sent += 1
        try:
            self._connection.sendall(len(body).to_bytes(4, "big") + mac + body)
        except OSError:
            raise GoneError from None

    def receive(self) -> Message:
        """Wait for one message."""
        self._waiting_since_s = time.monotonic()
        try:
            length = int.from_bytes(self._exactly(4), "big")
            if length > _LONGEST_FRAME:
                raise NotTrustedError(f"a frame of {length} bytes")
            mac, body = self._exactly(_MAC_BYTES), self._exactly(length)
        finally:
            self._waiting_since_s = None
        expected = _mac(self._session, self._received.to_bytes(8, "big"), _OTHER[self._role], body)
        if not hmac.compare_digest(mac, expected):
            raise NotTrustedError("a frame is not from it")
        self._received += 1
        try:
            return _MESSAGE.validate_python(json_value(body))
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in wrong["loc"])
            raise NotTrustedError(f"a frame is no message: {place}: {wrong['msg']}") from None
        except ValueError as error:
            raise NotTrustedError(f"a frame is no message: {error}") from None

    def shut(self) -> None:
        """End the connection from another thread: who waits for a message is told that the other side has gone."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _exactly(self, count: int) -> bytes:
        parts, left = [], count
        while left:
            try:
                if self._until_s is not None:
                    # A byte now and then does not begin the wait anew.
                    self._connection.settimeout(max(self._until_s - time.monotonic(), 0.001))
                part = self._connection.recv(min(left, 1 << 16))
            except TimeoutError:
                raise GoneError("it took too long to show the key") from None
            except OSError:
                raise GoneError from None
            if not part:
                raise GoneError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def connect(host: str, port: int) -> socket.socket:
    """A connection from this machine; with port 0 ``host`` is the path of a socket of it."""
    if port:
        return socket.create_connection((host, port), timeout=PATIENCE_S)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    connection.connect(host)
    return connection


def open_channel(
    connect: Callable[[], socket.socket],
    key: bytes,
    problem: Callable[[str], InputError],
    patience_s: float | None = None,
) -> Channel:
    """A controller's channel to an agent; ``problem`` makes the error where there is none, or one without the key."""
    try:
        connection = connect()
    except OSError as error:
        raise problem(f"no agent answers: {error.strerror or error}") from None
    try:
        return Channel(connection, key, "controller", patience_s)
    except (NotTrustedError, GoneError, OSError) as error:
        connection.close()
        raise problem(f"is not trusted: {error or 'it closed the connection'}") from None


def _mac(key: bytes, what: bytes, role: str, data: bytes) -> bytes:
    return hmac.new(key, what + b"\0" + role.encode() + b"\0" + data, hashlib.sha256).digest()


def split_address(text: str, option: str) -> tuple[str, int]:
    """``host:port`` as a pair, IPv6 in brackets; ``unix:PATH``, a socket of this machine, has port 0.

    Examples
    --------
    >>> split_address("10.0.0.2:7070", "--listen")
    ('10.0.0.2', 7070)
    >>> split_address("[::1]:7070", "--listen")
    ('::1', 7070)
    >>> split_address("unix:/run/agent", "--listen")
    ('/run/agent', 0)
    """
    if text.startswith("unix:") and len(text) > len("unix:"):
        return text.removeprefix("unix:"), 0
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise InputError.one(option, "is no address", value=f"'{text}'", accepted="HOST:PORT, or unix:PATH")
    return host.removeprefix("[").removesuffix("]"), int(port)

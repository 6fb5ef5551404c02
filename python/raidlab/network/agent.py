"""The agent: a process on a machine that writes and reads files at the controller's word, and does nothing else.

Invariants:

- It listens only where it was told to, serves one controller at a time, and only one that has the key.
- Who has not shown the key holds up nobody: several show it at once, within a moment; of too many the oldest goes.
- A controller that has the key and is silent is let go when another one comes.
- Its messages are ``hello``, ``write``, ``read``, ``take``, ``remove``; any other is answered with an error.
- A copy that it takes comes over one connection, at its own address, from who says the word that it has just told its
  controller.
- A job does not start before the moment the controller names, so that machines start together, and has a bounded
  length.
"""

from __future__ import annotations

import hmac
import io
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from raidlab.network.protocol import Channel, GoneError, Message, NotTrustedError
from raidlab.network.store import OpenFile, Store, StoreError

_MOST_BYTES = 1 << 44
_BLOCKS = range(512, (64 << 20) + 1)
# A machine that says nothing for so long while it introduces itself is none of ours.
_PATIENCE_S = 10.0
# Who waits for its turn looks so often whether the controller that has it has fallen silent.
_LOOK_AGAIN_S = 0.1
# A copy of which nothing arrives for so long has ended.
_COPY_PATIENCE_S = 120.0
_WORD_BYTES = 32
# The system chooses one; 0 stands for a socket of this machine.
_ANY_PORT = -1
_PIECE_BYTES = 256 * 1024
# So many may be showing the key at once.
_MOST_KNOCKING = 16
# A controller that has said nothing for so long makes room for another one.
_SILENCE_S = 600.0
# What a controller may have here at once; a step writes one file a machine, a study of streams one a stream.
_MOST_FILES = 64
Note = Callable[[str], None]


class _Door:
    """Who knocks: introductions that go on at once, and the one controller whose turn it is."""

    def __init__(self, listener: socket.socket, key: bytes, note: Note, silence_s: float) -> None:
        self._listener, self._key, self._note, self._silence_s = listener, key, note, silence_s
        # None: nobody comes any more.
        self.trusted: queue.SimpleQueue[tuple[Channel, str] | None] = queue.SimpleQueue()
        self.turn = threading.Semaphore(1)
        self.current: Channel | None = None
        self._knocking: list[socket.socket] = []
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Let everybody show the key, until the listener is closed."""
        while True:
            try:
                connection, address = self._listener.accept()
            except OSError:
                self.trusted.put(None)
                return
            with self._lock:
                self._knocking.append(connection)
                if len(self._knocking) > _MOST_KNOCKING:
                    # Who has the key shows it in a moment, and is never the oldest for long.
                    with suppress(OSError):
                        self._knocking[0].shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self._introduce, args=(connection, _shown(address)), daemon=True).start()

    def _introduce(self, connection: socket.socket, name: str) -> None:
        try:
            channel = Channel(connection, self._key, "agent", _PATIENCE_S)
        except (NotTrustedError, GoneError, OSError) as error:
            self._note(f"{name} was turned away: {error or 'it went before it had shown the key'}")
            connection.close()
            return
        finally:
            with self._lock:
                self._knocking.remove(connection)
        # Asked again and again: who drives may just be answering, and fall silent a moment later.
        patient_until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < patient_until:
            current = self.current
            if current is not None and current.silent_s > self._silence_s:
                current.shut()
            if self.turn.acquire(timeout=min(_LOOK_AGAIN_S, _PATIENCE_S)):
                self.trusted.put((channel, name))
                return
        with suppress(GoneError):
            channel.send({"ok": False, "error": "another controller drives this machine"})
        connection.close()


def serve(
    listener: socket.socket,
    key: bytes,
    store: Store,
    note: Note,
    *,
    once: bool = False,
    silence_s: float = _SILENCE_S,
) -> None:
    """Serve controllers, one after another; with ``once`` only the first that has the key.

    ``note`` is told in a line who came, and who was turned away. A controller that has been silent for ``silence_s`` is
    let go when another one comes.
    """
    door = _Door(listener, key, note, silence_s)
    threading.Thread(target=door.watch, daemon=True).start()
    while True:
        come = door.trusted.get()
        if come is None:
            return
        channel, name = come
        note(f"{name} drives this machine")
        door.current = channel
        try:
            _serve_one(channel, store)
        except NotTrustedError as error:
            note(f"{name} was let go: {error}")
        except (GoneError, OSError):
            pass
        finally:
            door.current = None
            channel.close()
            door.turn.release()
        if once:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            return


def _shown(address: object) -> str:
    return str(address[0]) if isinstance(address, tuple) else "a process of this machine"


def _serve_one(channel: Channel, store: Store) -> None:
    written: set[str] = set()
    try:
        while True:
            message = channel.receive()
            try:
                if message.get("do") in ("write", "take"):
                    _note_written(message["file"], written)
                channel.send({"ok": True, **_do(message, store, channel)})
                if message.get("do") == "remove":
                    written.discard(message["file"])
            except (StoreError, KeyError, ValueError) as error:
                channel.send({"ok": False, "error": str(error) or type(error).__name__})
    finally:
        # A controller that goes, however it goes, leaves nothing behind.
        for name in sorted(written):
            with suppress(StoreError, OSError):
                store.remove(name)


def _note_written(name: str, written: set[str]) -> None:
    """Keep in mind what is to be removed in the end; only so many files lie here at once."""
    if name not in written and len(written) >= _MOST_FILES:
        raise StoreError(f"{name}: a controller has at most {_MOST_FILES} files here at once")
    written.add(name)


def _do(message: Message, store: Store, channel: Channel) -> Message:
    what = message.get("do")
    if what == "hello":
        return {"host": socket.gethostname(), "pid": os.getpid()}
    if what == "remove":
        store.remove(message["file"])
        return {}
    if what == "take":
        return _take(message, store, channel)
    if what not in ("read", "write"):
        raise ValueError(f"'{what}' is nothing an agent does; accepted: hello, write, read, take, remove")
    total, block = _amount(message["bytes"], _MOST_BYTES), _amount(message["block_bytes"], _BLOCKS[-1])
    if what == "write":
        store.make_room(total)
    opened = store.open_write(message["file"]) if what == "write" else store.open_read(message["file"])
    with opened as file:
        # Everything is ready: the controller says when all may start.
        channel.send({"ready": True})
        if channel.receive().get("do") != "go":
            return {"bytes": 0, "elapsed_ns": 0}
        started, cpu = time.monotonic_ns(), time.process_time_ns()
        moved = _write(file, total, block) if what == "write" else _read(file, total, block)
        if what == "write":
            file.sync()
        elapsed, spent = time.monotonic_ns() - started, time.process_time_ns() - cpu
    return {"bytes": moved, "elapsed_ns": elapsed, "cpu_ns": spent}


def _take(message: Message, store: Store, channel: Channel) -> Message:
    """Take a copy: all that one connection brings, at most what was said, and tell it how much is there for good."""
    total, host = _amount(message["bytes"], _MOST_BYTES), channel.local_host
    if host is None:
        raise ValueError("no copy comes over a socket of this machine; accepted: an agent that listens at HOST:PORT")
    word = secrets.token_bytes(_WORD_BYTES)
    store.make_room(total)
    try:
        with store.open_write(message["file"]) as file, listen(host, _ANY_PORT) as listener:
            channel.send({"ready": True, "port": listener.getsockname()[1], "word": word.hex()})
            with _accepted(listener, word) as stream:
                started, cpu = time.monotonic_ns(), time.process_time_ns()
                moved = _copied(stream, file, total)
                file.sync()
                stream.sendall(moved.to_bytes(8, "little"))
                elapsed, spent = time.monotonic_ns() - started, time.process_time_ns() - cpu
    except OSError as error:
        raise StoreError(f"the copy ended: {error.strerror or error}") from None
    return {"bytes": moved, "elapsed_ns": elapsed, "cpu_ns": spent}


def _accepted(listener: socket.socket, word: bytes) -> socket.socket:
    listener.settimeout(_PATIENCE_S)
    stream, _address = listener.accept()
    stream.settimeout(_PATIENCE_S)
    said = stream.recv(_WORD_BYTES, socket.MSG_WAITALL)
    if not hmac.compare_digest(said, word):
        stream.close()
        raise StoreError("somebody else came for the copy")
    stream.settimeout(_COPY_PATIENCE_S)
    return stream


def _copied(stream: socket.socket, file: OpenFile, total: int) -> int:
    done = 0
    with stream.makefile("rb", buffering=0) as whole, io.BufferedReader(whole, _PIECE_BYTES) as pieces:
        while piece := pieces.read(min(_PIECE_BYTES, total - done)):
            file.write(piece)
            done += len(piece)
    return done


def _amount(value: int, most: int) -> int:
    if not 1 <= value <= most:
        raise ValueError(f"{value} is no amount; accepted: 1 to {most}")
    return value


def _write(file: OpenFile, total: int, block: int) -> int:
    # Incompressible, and no two blocks alike: each begins at another place of a megabyte more than a block needs.
    random = os.urandom(block + (1 << 20))
    done = number = 0
    while done < total:
        count = min(block, total - done)
        start = number * 4093 % (1 << 20)
        file.write(random[start : start + count])
        done, number = done + count, number + 1
    return done


def _read(file: OpenFile, total: int, block: int) -> int:
    done = 0
    while done < total:
        count = file.read(min(block, total - done))
        if not count:
            raise StoreError(f"the file ends after {done} bytes")
        done += count
    return done


def listen(host: str, port: int) -> socket.socket:
    """A listener at one address; with port 0 ``host`` is the path of a socket, with -1 the system chooses the port."""
    family = socket.AF_UNIX if port == 0 else socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_UNIX:
            # Nobody else may even knock.
            before = os.umask(0o077)
            try:
                listener.bind(host)
            finally:
                os.umask(before)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, max(port, 0)))
        listener.listen(socket.SOMAXCONN)
    except OSError:
        with suppress(OSError):
            listener.close()
        raise
    return listener

"""Where an agent writes and reads: a directory that is mounted on its machine, or an NFS export reached by libnfs.

Invariants:

- Files are raidlab's own by their names, and lie directly in the place; any other name is refused. Only regular files
  are opened, links are not followed, and what is written is a new file: whatever else has its name loses that name and
  no more.
- What is written is on the storage when writing is said to be done (fsync; COMMIT for NFS).
- A file that is read from a directory is put out of this machine's page cache first, and what was left of it is told.
  libnfs keeps none.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from raidlab.directory import Directory
from raidlab.errors import InputError

OWN_NAME = re.compile(r"raidlab-net-[0-9a-z-]{1,60}\.dat")
# So much of a place stays free, whoever asks: a twentieth of a small one, enough of a large one for its other users.
_KEPT_FREE_SHARE = 0.05
_KEPT_FREE_BYTES = 1 << 30


class StoreError(Exception):
    """The storage has refused, or failed."""


class OpenFile(Protocol):
    """A file that is being written or read from front to back."""

    def write(self, block: bytes) -> None:
        """Write the next block."""

    def read(self, count: int) -> int:
        """Read the next so many bytes; how many there were."""

    def sync(self) -> None:
        """Return when what was written is on the storage."""


class Store(Protocol):
    """A place for files."""

    def open_write(self, name: str) -> AbstractContextManager[OpenFile]:
        """A context with a new file."""

    def open_read(self, name: str) -> AbstractContextManager[OpenFile]:
        """A context with a file that is there."""

    def make_room(self, total: int) -> None:
        """Make sure that so many bytes may be written, as far as that can be known."""

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""


def own_name(name: str) -> str:
    """The name, if it is one of raidlab's own."""
    if not OWN_NAME.fullmatch(name):
        raise StoreError(f"'{name}' is no file of raidlab's; accepted: raidlab-net-NAME.dat")
    return name


def store_at(text: str) -> Store:
    """The place that ``nfs://SERVER/EXPORT`` or a directory's path names."""
    if text.startswith("nfs://"):
        parts = urlsplit(text)
        if not parts.hostname or len(parts.path) < 2:
            raise InputError.one("PLACE", "names no export", value=f"'{text}'", accepted="nfs://SERVER/EXPORT")
        return NfsStore(parts.hostname, parts.path)
    directory = Path(text)
    if not directory.is_dir():
        accepted = "a directory, or nfs://SERVER/EXPORT"
        raise InputError.one("PLACE", "is no directory", value=f"'{text}'", accepted=accepted)
    return DirectoryStore(directory)


class _Descriptor:
    """A file of a directory."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, block: bytes) -> None:
        view = memoryview(block)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def read(self, count: int) -> int:
        return len(os.read(self._descriptor, count))

    def sync(self) -> None:
        os.fsync(self._descriptor)


class DirectoryStore:
    """A directory, mounted from wherever."""

    def __init__(self, directory: Path) -> None:
        self._directory = Directory.open(directory)

    @contextmanager
    def open_write(self, name: str) -> Iterator[OpenFile]:
        """A context with a new file."""
        self.remove(name)
        with self._opened(name, partial(self._directory.create_file, mode=0o600)) as descriptor:
            yield _Descriptor(descriptor)

    @contextmanager
    def open_read(self, name: str) -> Iterator[OpenFile]:
        """A context with a file that is there, out of the page cache as far as this machine can put it."""
        with self._opened(name, self._directory.open_file) as descriptor:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            yield _Descriptor(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        try:
            self._directory.remove(own_name(name), own=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{name}: {error.strerror}") from None

    def make_room(self, total: int) -> None:
        """Make sure that so many bytes may be written."""
        status = os.statvfs(self._directory.path)
        free = status.f_bavail * status.f_frsize
        kept = min(_KEPT_FREE_BYTES, int(_KEPT_FREE_SHARE * status.f_blocks * status.f_frsize))
        if total > free - kept:
            raise StoreError(f"{total} bytes would leave less than {kept} bytes of the place free ({free} are free)")

    @contextmanager
    def _opened(self, name: str, opening: Callable[[str], int]) -> Iterator[int]:
        try:
            descriptor = opening(own_name(name))
        except OSError as error:
            raise StoreError(f"{name}: {error.strerror}") from None
        try:
            yield descriptor
        except OSError as error:
            raise StoreError(f"{name}: {error.strerror}") from None
        finally:
            os.close(descriptor)


def _libnfs() -> ctypes.CDLL:
    found = ctypes.util.find_library("nfs")
    if found is None:
        raise InputError.one("PLACE", "needs libnfs, which is not there", accepted="a directory, or install libnfs")
    library = ctypes.CDLL(found)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    size = ctypes.c_uint64
    for name, result, arguments in (
        ("nfs_init_context", pointer, []),
        ("nfs_destroy_context", None, [pointer]),
        ("nfs_get_error", text, [pointer]),
        ("nfs_set_version", number, [pointer, number]),
        ("nfs_mount", number, [pointer, text, text]),
        ("nfs_open", number, [pointer, text, number, pointer]),
        ("nfs_creat", number, [pointer, text, number, pointer]),
        ("nfs_close", number, [pointer, pointer]),
        ("nfs_read", number, [pointer, pointer, size, pointer]),
        ("nfs_write", number, [pointer, pointer, size, pointer]),
        ("nfs_fsync", number, [pointer, pointer]),
        ("nfs_unlink", number, [pointer, text]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _NfsFile:
    """A file of an export."""

    def __init__(self, store: NfsStore, handle: ctypes.c_void_p) -> None:
        self._store, self._handle = store, handle
        self._buffer = ctypes.create_string_buffer(0)

    def write(self, block: bytes) -> None:
        done = 0
        while done < len(block):
            done += self._store.call("nfs_write", self._handle, len(block) - done, block[done:])

    def read(self, count: int) -> int:
        if len(self._buffer) != count:
            self._buffer = ctypes.create_string_buffer(count)
        return self._store.call("nfs_read", self._handle, count, self._buffer)

    def sync(self) -> None:
        self._store.call("nfs_fsync", self._handle)


class NfsStore:
    """An NFS export (version 3), reached by libnfs from this process: no mount, no page cache."""

    def __init__(self, server: str, export: str) -> None:
        self._library = _libnfs()
        self._context = self._library.nfs_init_context()
        self.call("nfs_set_version", 3)
        try:
            self.call("nfs_mount", server.encode(), export.encode())
        except StoreError as error:
            message = f"cannot be mounted: {error}"
            raise InputError.one("PLACE", message, value=f"'nfs://{server}{export}'", accepted="an export") from None

    @contextmanager
    def open_write(self, name: str) -> Iterator[OpenFile]:
        """A context with a new file."""
        path, handle = f"/{own_name(name)}".encode(), ctypes.c_void_p()
        self.remove(name)
        self.call("nfs_creat", path, 0o600, ctypes.byref(handle))
        with self._closing(handle) as file:
            yield file

    @contextmanager
    def open_read(self, name: str) -> Iterator[OpenFile]:
        """A context with a file that is there."""
        handle = ctypes.c_void_p()
        self.call("nfs_open", f"/{own_name(name)}".encode(), os.O_RDONLY, ctypes.byref(handle))
        with self._closing(handle) as file:
            yield file

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        self._library.nfs_unlink(self._context, f"/{own_name(name)}".encode())

    def make_room(self, total: int) -> None:
        """What is free is the server's to say, when it is written."""

    @contextmanager
    def _closing(self, handle: ctypes.c_void_p) -> Iterator[_NfsFile]:
        try:
            yield _NfsFile(self, handle)
        finally:
            self._library.nfs_close(self._context, handle)

    def call(self, name: str, *arguments: Any) -> int:
        """Call libnfs; a negative answer is an error with libnfs's own words."""
        answer = int(getattr(self._library, name)(self._context, *arguments))
        if answer < 0:
            said = self._library.nfs_get_error(self._context)
            raise StoreError((said or os.strerror(-answer).encode()).decode(errors="replace"))
        return answer

"""A directory held open: its files are opened, made, replaced and removed by name, and no name leads out of it.

A run folder may come from somebody else, and member files lie where others may write. A name in such a directory may be
a symbolic link, a FIFO or a second name of another file, or become one between two calls.

Invariants:

- The directory is what its path led to when it was opened: who names a path may name a link. From then on every call
  is relative to the open descriptor, and no link below is followed (``O_NOFOLLOW``), however names are swapped.
- From a folder that raidlab made on (`OWN_FOLDER`) no part of a path may be a link, as in the engine
  (`crates/live/src/directory.rs`): whoever owns the directory around it may have put one in its place.
- What is opened as a file is a regular one, looked at after it was opened; a FIFO is never waited for.
- A file is replaced by a new one (``O_EXCL``) that takes its name when it is whole and on disk.
- What is removed is a file, never what a link leads to. Where others may have put it (``own``), it is a regular file of
  this user's with no second name, in directories of this user's on the same mount.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from typing import Self

# Names of the folders that raidlab makes for members begin with this.
OWN_FOLDER = "raidlab-members-"

_ONLY_HERE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
# Who may read a new file is for the umask to say.
_FILE_MODE = 0o666
# What says that a file system has no such thing, rather than that it went wrong.
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)

Identity = tuple[int, int]


class Directory:
    """An open directory; a context that closes it.

    Attributes
    ----------
    path : pathlib.Path
        As it was named, for messages.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: Path, identity: Identity | None = None) -> Self:
        """Open the directory that a path leads to; it must have the `identity` it had before, where that is given.

        Raises `OSError` also when it is another directory than it was.
        """
        found = cls(_opened(path), path)
        if identity not in (None, found.identity):
            found.close()
            raise OSError(errno.ESTALE, "has just been replaced by another directory", str(path))
        return found

    @property
    def identity(self) -> Identity:
        """What tells it from every other directory: the numbers of its file system and its inode."""
        return _identity(os.fstat(self._descriptor))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)

    def names(self) -> list[str]:
        """The names of all that is in it, in order."""
        with self._readable() as descriptor:
            return sorted(os.listdir(descriptor))  # noqa: PTH208 - only this takes a descriptor

    def has(self, name: str) -> bool:
        """Whether a name stands for something, be it a link that leads nowhere."""
        with suppress(FileNotFoundError):
            self._status(name)
            return True
        return False

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular file that is there; one that is opened for writing has no second name.

        The descriptor is for the caller to close.
        """
        try:
            # Without waiting for whoever may be at the other end of a FIFO.
            descriptor = os.open(_single(name), flags | os.O_NONBLOCK | _ONLY_HERE, dir_fd=self._descriptor)
        except OSError as error:
            raise self._named(error, name) from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._error(name, "is not a regular file")
            if flags & os.O_ACCMODE != os.O_RDONLY and status.st_nlink > 1:
                raise self._error(name, "has a second name (a hard link) elsewhere, so it is not written")
            os.set_blocking(descriptor, True)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def create_file(self, name: str, mode: int = _FILE_MODE, flags: int = 0) -> int:
        """Make a file whose name is free, open for reading and writing; returns its descriptor."""
        how = os.O_RDWR | os.O_CREAT | os.O_EXCL | flags | _ONLY_HERE
        return os.open(_single(name), how, mode, dir_fd=self._descriptor)

    def read(self, name: str, most_bytes: int) -> bytes:
        """All that is in a regular file.

        Raises `OSError` also for one that is longer than ``most_bytes``.
        """
        with os.fdopen(self.open_file(name), "rb") as file:
            # Before it is read: a file of holes takes no room until then.
            if os.fstat(file.fileno()).st_size > most_bytes or len(content := file.read(most_bytes + 1)) > most_bytes:
                raise OSError(errno.EFBIG, f"it is longer than {most_bytes:,} bytes", str(self.path / name))
            return content

    def replace(self, name: str, content: bytes) -> Path:
        """Have a name stand for a new file with this content: as a whole or, should it fail, for what it stood for."""
        with self.replacing(name) as file:
            file.write(content)
        return self.path / name

    @contextmanager
    def replacing(self, name: str, *, is_new: bool = False) -> Iterator[BufferedRandom]:
        """A new file to write and read, for which a name stands once the context has ended well.

        With ``is_new`` nothing may have that name by then: raises `FileExistsError`.
        """
        unfinished = f"{_single(name)}.{secrets.token_hex(4)}.new"
        try:
            with os.fdopen(self.create_file(unfinished), "w+b") as file:
                self._keep_mode(name, file.fileno())
                yield file
                file.flush()
                sync(file.fileno())
            if is_new:
                # Not by a link, which some file systems do not have: of two who take the name, one is refused.
                os.close(self.create_file(name))
            os.rename(unfinished, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(unfinished, dir_fd=self._descriptor)
            raise (self._named(error, name) if isinstance(error, OSError) else error) from None
        self.sync()

    def _keep_mode(self, name: str, descriptor: int) -> None:
        """Let those read a file that could read the one in whose place it comes, and nobody else."""
        with suppress(OSError):
            status = self._status(name)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                os.fchmod(descriptor, status.st_mode & 0o777)

    def rename(self, old: str, new: str) -> None:
        """Give something in it another name."""
        os.rename(_single(old), _single(new), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str, *, own: bool = False) -> int:
        """Remove a file, or a link itself; returns its size in bytes.

        With ``own`` it must be a regular file of this user's with no second name.

        Raises `FileNotFoundError` or `OSError` also for a directory.
        """
        status = self._status(name)
        if own and not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and self._is_own(status)):
            raise self._error(name, "is not a file of yours with a single name, so it is not removed")
        # Should the name stand for something else by now: a link is removed itself, and a directory not at all.
        try:
            os.unlink(_single(name), dir_fd=self._descriptor)
        except OSError as error:
            raise self._named(error, name) from None
        return status.st_size

    def make_child(self, name: str, mode: int = 0o777) -> None:
        """Make a directory whose name is free."""
        os.mkdir(_single(name), mode, dir_fd=self._descriptor)

    @contextmanager
    def child(self, name: str, *, make: bool = False, own: bool = False) -> Iterator[Directory]:
        """A directory in this one; with ``make`` it is made where it is not there.

        With ``own`` it must be this user's, and on the same mount as this directory.

        Raises `OSError` also for a link to a directory.
        """
        if make:
            with suppress(FileExistsError):
                self.make_child(name)
        flags = os.O_PATH | os.O_DIRECTORY | _ONLY_HERE
        try:
            descriptor = os.open(_single(name), flags, dir_fd=self._descriptor)
        except OSError as error:
            raise self._named(error, name) from None
        with Directory(descriptor, self.path / name) as found:
            if own and not self._is_own(os.fstat(descriptor)):
                raise self._error(name, "belongs to another user")
            if own and _mount(descriptor) != _mount(self._descriptor):
                raise self._error(name, "is a mount point")
            yield found

    def remove_child(self, name: str, identity: Identity) -> None:
        """Remove an empty directory, if its name still stands for the one that had this `identity`."""
        self._check_identity(name, identity)
        os.rmdir(_single(name), dir_fd=self._descriptor)

    def remove_tree(self, name: str, identity: Identity) -> None:
        """Remove a directory with all that is in it, if its name still stands for the one that had this `identity`."""
        self._check_identity(name, identity)
        shutil.rmtree(_single(name), dir_fd=self._descriptor)

    def sync(self) -> None:
        """Have its names on disk, as far as its file system can."""
        with suppress(OSError), self._readable() as descriptor:
            os.fsync(descriptor)

    @contextmanager
    def _readable(self) -> Iterator[int]:
        """The directory once more, for those calls that want to read it: to use its names needs less."""
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _is_own(self, status: os.stat_result) -> bool:
        """Whether something in it is this user's, by the name that its file system gives this user (NFS, FUSE, FAT)."""
        if status.st_uid == os.geteuid():
            return True
        name = f".raidlab-{secrets.token_hex(8)}"
        try:
            descriptor = self.create_file(name, 0o600)
        except OSError:
            return False
        with os.fdopen(descriptor, "rb"):
            os.unlink(name, dir_fd=self._descriptor)
            return os.fstat(descriptor).st_uid == status.st_uid

    def _status(self, name: str) -> os.stat_result:
        return os.stat(_single(name), dir_fd=self._descriptor, follow_symlinks=False)

    def _check_identity(self, name: str, identity: Identity) -> None:
        if _identity(self._status(name)) != identity:
            raise self._error(name, "has been replaced by another directory")

    def _error(self, name: str, message: str) -> OSError:
        return OSError(errno.EPERM, message, str(self.path / name))

    def _named(self, error: OSError, name: str) -> OSError:
        """An error with the whole path, and in plain words where a link stands in the way."""
        is_link = False
        with suppress(OSError):
            is_link = error.errno in (errno.ELOOP, errno.ENOTDIR) and stat.S_ISLNK(self._status(name).st_mode)
        said = "is a symbolic link, which is not followed here" if is_link else error.strerror
        return OSError(error.errno, said, str(self.path / name))


def write_file(path: Path, content: bytes, *, is_new: bool = False) -> None:
    """Write a file that the user has named: whole or not at all, through links as the user has set them.

    A terminal or FIFO (``/dev/stdout``) is written as it is; a block device never is. With ``is_new`` a file that is
    there by now stays: raises `FileExistsError`.
    """
    real = Path(os.path.realpath(path))
    if real.is_block_device():
        raise OSError(errno.EPERM, "is a block device, which holds data of somebody's", str(path))
    if path.exists() and not real.is_file():
        path.write_bytes(content)
        return
    with Directory.open(real.parent) as directory, directory.replacing(real.name, is_new=is_new) as file:
        file.write(content)


def sync(descriptor: int) -> None:
    """Have a file's content on disk; where a file system cannot say when it is, nothing can be waited for."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _opened(path: Path) -> int:
    """Open what a path leads to; from a folder that raidlab made on, through no link."""
    is_own = [part.startswith(OWN_FOLDER) for part in path.parts]
    outside = is_own.index(True) if True in is_own else len(is_own)
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(Path(*path.parts[:outside]), flags)
    for part in path.parts[outside:]:
        above = descriptor
        try:
            descriptor = os.open(part, flags | os.O_NOFOLLOW, dir_fd=above)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            os.close(above)
    return descriptor


def _single(name: str) -> str:
    """A name that stands for something in the directory itself."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, "is no name of a file", name)
    return name


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _mount(descriptor: int) -> tuple[int, str]:
    """What tells a mount from others: a directory bound from the same file system has its device number too."""
    found = ""
    with suppress(OSError):
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
        found = next((line for line in lines if line.startswith("mnt_id:")), "")
    return os.fstat(descriptor).st_dev, found

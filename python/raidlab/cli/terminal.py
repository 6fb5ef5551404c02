"""Standard output and standard error as they may be found: closed, full, or read by somebody who leaves early.

Invariants:

- Whoever reads our output may stop reading (``| head``): that is no failure, and nothing is said about it.
- Output that cannot be written otherwise (a full disk) is one clear error. Only what failed at standard output itself
  is called so: any other file may fail in the midst of printing too.
- What is said on standard error is never worth failing for.
- A text that somebody else wrote (a failure in a run folder, the name of a study or file) does not act on the terminal:
  control characters and marks of direction are written as their escapes here, where everything passes. Only what Rich
  itself puts around texts, for colours, goes through `styled_output`.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from typer import Exit

from raidlab.errors import InputError, OutputError, RefusedError, shown

if TYPE_CHECKING:
    from rich.console import Console

_STANDARD = 3
# What becomes of a place that was named rightly.
_NO_MISTAKES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# What an error of standard output is marked with.
_MARK = "is_of_standard_output"


class _Output(io.FileIO):
    """Standard output, whose errors can be told from those of other files."""

    def write(self, content: Any) -> int:
        """Write, and mark what fails."""
        try:
            # None (it would block) is what a buffered writer understands too.
            return super().write(content)
        except OSError as error:
            setattr(error, _MARK, True)
            raise


class _Text(io.TextIOWrapper):
    """Standard output as text, of which nothing acts on a terminal."""

    def write(self, text: str) -> int:
        """Write what would act on a terminal as its escape."""
        super().write(shown(text))
        return len(text)

    def write_styled(self, text: str) -> int:
        """Write a text whose styles are our own."""
        return super().write(text)


class _Styled:
    """Standard output for Rich, which puts the styles of a terminal around texts that `SafeConsole` has made safe."""

    def write(self, text: str) -> int:
        """Write it as it is."""
        return sys.stdout.write_styled(text) if isinstance(sys.stdout, _Text) else sys.stdout.write(text)

    def __getattr__(self, name: str) -> Any:
        # All else is that of whatever standard output is by now.
        return getattr(sys.stdout, name)


def console() -> Console:
    """Standard output for Rich; a file or a pipe gets plain text of 80 columns."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        """A console whose texts do not act on the terminal, only their styles."""

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(shown(segment.text), segment.style)

    return SafeConsole(highlight=False, soft_wrap=False, file=cast("IO[str]", _Styled()))


def mark_output() -> None:
    """Have the errors of standard output marked, for `printing`, and nothing in it act on the terminal."""
    old = sys.stdout
    with suppress(OSError, ValueError):
        # Where nothing was, `open_missing` has put something that takes everything.
        if old.fileno() != 1:
            return
        raw = _Output(old.fileno(), "wb", closefd=False)
        # A study may have names that the terminal has no letters for.
        errors = old.errors if old.encoding.lower() == "utf-8" else "replace"
        sys.stdout = _Text(io.BufferedWriter(raw), encoding=old.encoding, errors=errors, line_buffering=old.isatty())


def open_missing() -> None:
    """Put something behind standard streams that were closed, lest a result file be opened under their numbers."""
    with suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) < _STANDARD:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for as long as we live


def say(text: str) -> None:
    """A line on standard error, if there is anybody to hear it."""
    with suppress(OSError, ValueError):
        print(shown(text), file=sys.stderr, flush=True)


@contextmanager
def writing(option: str, place: object) -> Iterator[None]:
    """Write within what an option names: a place that cannot be written is the option's mistake, a full one is none."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_MISTAKES:
            raise OutputError(f"{option}: '{place}': cannot be written: {error.strerror}") from None
        raise InputError.one(option, f"cannot be written: {error.strerror}", value=f"'{place}'") from None


def check_new_file(option: str, place: str | None, other: str | None = None) -> None:
    """Refuse, before minutes of work, a file that could not be written after them, or that is somebody's.

    ``other``: another file that will be written by then. A terminal or FIFO (``/dev/stdout``) may be there.
    """
    if place is None:
        return
    path = Path(place)
    if other is not None and path.resolve() == Path(other).resolve():
        message = "is to be written for another option, too"
        raise InputError.one(option, message, value=f"'{place}'", accepted="another new file")
    if path.is_block_device():
        raise RefusedError(f"{option}: '{place}': is a block device; only a new file is written here")
    accepted = "a new file in a directory of yours"
    if path.is_file() or path.is_symlink():
        raise InputError.one(option, "is there already, and is not overwritten", value=f"'{place}'", accepted=accepted)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError.one(option, "cannot be written", value=f"'{place}'", accepted=accepted)


def write_new_file(option: str, place: str, content: bytes) -> None:
    """Write what `check_new_file` let pass; what somebody else has made there meanwhile stays."""
    from raidlab.directory import write_file

    try:
        write_file(Path(place), content, is_new=True)
    except FileExistsError:
        raise OutputError(f"{option}: '{place}': is there by now, and is not overwritten") from None
    except OSError as error:
        raise OutputError(f"{option}: '{place}': cannot be written: {error.strerror}") from None


@contextmanager
def printing() -> Iterator[None]:
    """Print within: what is printed has been written afterwards, or nobody wanted it; else it is an `OutputError`."""
    try:
        try:
            yield
        except Exit:
            # What was printed before a command left with its code is on its way only now.
            sys.stdout.flush()
            raise
        except SystemExit as leaving:
            # Rich answers a broken pipe so.
            if leaving.code != 1:
                raise
            raise BrokenPipeError from None
        sys.stdout.flush()
    except BrokenPipeError as error:
        _silence()
        if isinstance(error.__context__, Exit):
            raise error.__context__ from None
    except OSError as error:
        if not getattr(error, _MARK, False):
            raise
        _silence()
        raise OutputError(f"standard output: cannot be written: {error.strerror}") from None


def settle() -> None:
    """After a failure of which something was said: what is printed still goes where it can, and fails no more."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _silence()


def _silence() -> None:
    """Let whatever is still printed go nowhere, so that leaving does not fail on it again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

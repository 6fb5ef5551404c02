"""The errors a user can meet, and the exit code each one ends the program with.

Invariants:

- Every error a user can cause is a `RaidlabError`; anything else that escapes is a defect of raidlab and has an exit
  code of its own.
- A message is one line a mistake: the place (file, line, key), the value, what is wrong, what would be accepted.
- The exit codes are part of the command line's contract and never change their meaning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INVALID_RESULT = 3
EXIT_REFUSED = 4
EXIT_INTERNAL = 70
EXIT_HUNG_UP = 129
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

# Long enough for a path; whole tables are cut.
_LONGEST_VALUE = 160
# Whatever may act on a terminal instead of showing, or reorder what stands around it.
_NOT_PLAIN = re.compile(r"[^\n\t\x20-\x7e]")
# What joins letters, and parts them, in Persian and in Indian scripts, and is nothing by itself.
_JOINERS = "\u200c\u200d"

# What stands before the colon is enough for a help screen.
EXIT_CODES = {
    EXIT_OK: "done: no check found the result invalid",
    EXIT_FAILED: "failed: a measurement (an I/O error, a worker that died), or the writing of a result",
    EXIT_BAD_INPUT: "bad input: nothing was measured or written",
    EXIT_INVALID_RESULT: "INVALID: measured, but a check says that the figures must not be used",
    EXIT_REFUSED: "refused: a target that must not be written, for safety",
    EXIT_INTERNAL: "a defect: please report it; RAIDLAB_TRACEBACK=1 shows where it is",
    EXIT_HUNG_UP: "terminal closed (SIGHUP): as 130",
    EXIT_INTERRUPTED: "interrupted (Ctrl-C): what was measured until then is kept",
    EXIT_TERMINATED: "killed (SIGTERM): as 130",
}


def shown(text: str) -> str:
    r"""A text as it may go to a terminal: what would act on it is written as its escape.

    Examples
    --------
    >>> print(shown("a\x1b[31m"))
    a\x1b[31m
    >>> shown("\u0646\u200c\u0647") == "\u0646\u200c\u0647", shown("\u202eb")
    (True, '\\u202eb')
    """
    return _NOT_PLAIN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    is_shown = character.isprintable() or unicodedata.category(character) == "Zs" or character in _JOINERS
    return character if is_shown else repr(character)[1:-1]


class RaidlabError(Exception):
    """A failure that is explained to the user in one sentence, without a traceback.

    Attributes
    ----------
    exit_code : int
        What the command line returns for it.
    """

    exit_code = EXIT_FAILED


@dataclass(frozen=True)
class Problem:
    """One mistake in one place of the input."""

    file: str
    """The file at fault, as the user named it; empty for the command line."""
    where: str
    """The key in the file (``array[2].tree``) or the option (``--on``)."""
    message: str
    """What is wrong, in words."""
    value: str | None = None
    """The offending value, as written."""
    accepted: str | None = None
    """What would be accepted in its place."""
    line: int | None = None
    """The line in the file, counted from 1."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        parts = [part for part in (place, _cut(self.where, _LONGEST_VALUE)) if part]
        if self.value is not None:
            parts.append(_cut(self.value, _LONGEST_VALUE))
        text = ": ".join([*parts, _cut(self.message, _LONGEST_MESSAGE)])
        if self.accepted is not None:
            text += f"; accepted: {_cut(self.accepted, _LONGEST_MESSAGE)}"
        return shown(" ".join(text.split()))


# A sentence with a list of names in it; what a stranger's file says there may be without end.
_LONGEST_MESSAGE = 1500


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


class InputError(RaidlabError):
    """Bad input: carries every mistake found, not only the first."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def one(
        cls, where: str, message: str, *, value: str | None = None, accepted: str | None = None, file: str = ""
    ) -> InputError:
        """Build the error of a single mistake.

        Parameters
        ----------
        where : str
            The key, option or line the mistake is at.
        message : str
            What is wrong, as one sentence.
        value : str, optional
            What stands there.
        accepted : str, optional
            What would be accepted.
        file : str
            The file as it is shown to the user; empty where there is none.
        """
        return cls([Problem(file=file, where=where, message=message, value=value, accepted=accepted)])


class EngineError(RaidlabError):
    """What the engine says of a cell; the text begins with the key."""

    def __init__(self, message: str, kind: str = "io", key: str = "", cell: str = "") -> None:
        super().__init__(f"{cell}: {message}" if cell else message)
        self.kind = kind
        self.key = key
        self.cell = cell

    @property
    def message(self) -> str:
        """What is wrong, without the names of the cell and the key."""
        return str(self).removeprefix(f"{self.cell}: ").removeprefix(f"{self.key}: ")

    def at(self, place: str) -> Self:
        """The same, said of a flag or a target that the user has named, in place of the key.

        Parameters
        ----------
        place : str
            The flag or the target, as the user wrote it.
        """
        return type(self)(f"{place}: {self.message}", self.kind)


class RefusedError(EngineError):
    """A target that raidlab will not write: nothing was touched."""

    exit_code = EXIT_REFUSED


class CellFailedError(EngineError):
    """The engine could not run or finish a cell (an I/O error, a device that vanished).

    Attributes
    ----------
    kind : str
        The engine's word: ``bad_input``, ``unsupported`` or ``io``; ``stopped`` for what ended a cell that had begun.
    key : str
        Where in the cell the fault lies; empty when it arose while the cell ran.
    cell : str
        The name of the cell, where one of many failed.
    """


class CellLostError(CellFailedError):
    """A cell that killed every worker it was given to; what runs beside it goes on."""

    def __init__(self, cell: str, deaths: int) -> None:
        message = f"killed {deaths} workers (out of memory, or a fault of the engine) and is left out"
        super().__init__(message, "lost", cell=cell)
        self.deaths = deaths

    def __reduce__(self) -> tuple[type[CellLostError], tuple[str, int]]:
        return type(self), (self.cell, self.deaths)


class OutputError(RaidlabError):
    """A result could not be written; what was written before stands."""

"""Read a fio job file into sections of lines; what the lines mean is `options`' affair.

Invariants:

- Every line keeps the file and the number it stands at, so that whatever is said of it later can name it; a line that
  came in through ``include`` names the included file.
- A section has the lines of every global section above it first, then its own: where two set the same option, the
  later counts.
- Reading is bounded: includes are nested at most `DEEPEST_INCLUDE` deep, a file is at most `LONGEST_FILE_BYTES`, and
  all sections together have at most `MOST_LINES`, those of includes and global sections as often as they come in.

Reference: fio's HOWTO, "Job file format"; like fio, a section whose name begins with "global" is a global one, and a
``;`` or ``#`` ends a line wherever it stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from raidlab.errors import InputError, Problem
from raidlab.formats.fio import values
from raidlab.reading import MARK, read_bytes

DEEPEST_INCLUDE = 16
LONGEST_FILE_BYTES = 1 << 20
MOST_INCLUDES = 1 << 10
# As many jobs as fio runs, of sixty lines each.
MOST_LINES = 1 << 18
_ENVIRONMENT = re.compile(r"\$\{([^}]*)\}")
_INCLUDE = "include"


@dataclass(frozen=True)
class OptionLine:
    """One option as it was written."""

    file: str
    number: int
    """Counted from 1."""
    name: str
    value: str | None
    """With ``${...}`` and fio's keywords put in; None for a bare name."""
    text: str
    """The line as written, without its comment."""
    kb_base: int = 1024
    """How its sizes are read."""

    def problem(self, message: str, accepted: str | None = None) -> Problem:
        """A mistake in this line."""
        return Problem(self.file, f"'{shortened(self.text)}'", message, accepted=accepted, line=self.number)


@dataclass(frozen=True)
class JobSection:
    """One job of a file: its name, where it begins, and its lines after those of the global sections above it."""

    name: str
    file: str
    number: int
    lines: tuple[OptionLine, ...]

    def problem(self, message: str, accepted: str | None = None) -> Problem:
        """A mistake that is no single line's."""
        return Problem(self.file, f"[{shortened(self.name)}]", message, accepted=accepted, line=self.number)


@dataclass
class _Reader:
    environment: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    lines: int = 0
    includes: int = 0

    def sections(self, file: Path) -> list[JobSection]:
        found: list[JobSection] = []
        shared: list[OptionLine] = []
        head: tuple[str, int] | None = None
        own: list[OptionLine] = []

        def close() -> None:
            if head is None:
                return
            name, number = head
            lines = _with_base(own, shared[-1].kb_base if shared else 1024, self.problems)
            if name.startswith("global"):
                shared.extend(lines)
            else:
                self._count(file, len(shared))
                found.append(JobSection(name, str(file), number, (*shared, *lines)))

        for number, text in self._texts(file):
            if text.startswith("["):
                close()
                own = []
                if not text.endswith("]") or len(text) < 3:
                    self.problems.append(_problem(file, number, text, "is not a section", "[name]"))
                head = (text.strip("[]"), number)
            elif head is None:
                self.problems.append(_problem(file, number, text, "stands before the first section", "[name] above it"))
            else:
                own += self._lines(file, number, text, depth=0)
        close()
        return found

    def _texts(self, file: Path) -> list[tuple[int, str]]:
        """The lines of a file that say something, numbered, without comments and blanks."""
        try:
            text = read_bytes(file, LONGEST_FILE_BYTES).decode().removeprefix(MARK)
        except OSError as error:
            raise InputError.one("", f"cannot be read: {error.strerror}", file=str(file)) from None
        except UnicodeDecodeError:
            raise InputError.one(
                "", "is not text in UTF-8", accepted="a job file as fio reads it", file=str(file)
            ) from None
        stripped = ((number, _said(line)) for number, line in enumerate(text.split("\n"), start=1))
        found = [(number, line) for number, line in stripped if line]
        self._count(file, len(found))
        return found

    def _count(self, file: Path, lines: int) -> None:
        """Refuse more lines than anybody writes, before they are gone through."""
        self.lines += lines
        if self.lines > MOST_LINES or self.includes > MOST_INCLUDES:
            message = "is too long, with what it includes and what its global sections say to every job"
            accepted = f"at most {MOST_LINES:,} lines and {MOST_INCLUDES:,} includes"
            raise InputError.one("", message, accepted=accepted, file=str(file))

    def _lines(self, file: Path, number: int, text: str, depth: int) -> list[OptionLine]:
        """An option, or all that an ``include`` brings."""
        if text.startswith(_INCLUDE):
            return self._included(file, number, text, depth)
        name, equals, value = text.partition("=")
        name = name.strip()
        filled = self._filled(file, number, text, value.strip()) if equals else None
        return [OptionLine(str(file), number, name, filled, text)]

    def _included(self, file: Path, number: int, text: str, depth: int) -> list[OptionLine]:
        wanted = text[len(_INCLUDE) + 1 :].strip()
        # As fio does: from where we are, else from beside the file that includes it.
        # A name that can be no file's, such as one too long, is that of none, where a path's own methods raise.
        other = Path(wanted) if os.path.exists(wanted) else file.parent / wanted  # noqa: PTH110
        if not wanted or not os.path.isfile(other):  # noqa: PTH113
            self.problems.append(_problem(file, number, text, "there is no such file", "a file of options"))
            return []
        if depth == DEEPEST_INCLUDE:
            self.problems.append(_problem(file, number, text, f"is the {depth + 1}th include in one another", None))
            return []
        self.includes += 1
        lines: list[OptionLine] = []
        for inner_number, inner in self._texts(other):
            if inner.startswith("["):
                message = "an included file has no sections of its own"
                self.problems.append(_problem(other, inner_number, inner, message, "options only"))
                return lines
            lines += self._lines(other, inner_number, inner, depth + 1)
        return lines

    def _filled(self, file: Path, number: int, text: str, value: str) -> str:
        """A value with the environment's variables and fio's keywords put in."""

        def variable(found: re.Match[str]) -> str:
            if not self.environment.get(found[1]):
                message = f"the environment has no {found[1]}"
                self.problems.append(_problem(file, number, text, message, f"{found[1]}=... before the command"))
                return "0"
            return self.environment[found[1]]

        filled = _ENVIRONMENT.sub(variable, value)
        for word, meaning in _KEYWORDS.items():
            if filled == word:
                return str(meaning())
            if word in filled:
                message = f"raidlab does no arithmetic with {word}"
                self.problems.append(_problem(file, number, text, message, f"{word} alone, or the number itself"))
                return "0"
        return filled


def read_job_file(file: Path, environment: Mapping[str, str] | None = None) -> tuple[list[JobSection], list[Problem]]:
    """Read the jobs of a fio job file, in their order, and what of its form is wrong.

    ``environment`` is what ``${NAME}`` stands for; the process's own by default.
    """
    reader = _Reader(os.environ if environment is None else environment)
    return reader.sections(file), reader.problems


def shortened(text: str) -> str:
    """A piece of a foreign file, fit for one line of an error."""
    shown = text.translate(dict.fromkeys(range(32), "?"))
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _said(line: str) -> str:
    """A line without its comment and the blanks around it."""
    return re.split("[;#]", line, maxsplit=1)[0].strip()


def _with_base(lines: list[OptionLine], base: int, problems: list[Problem]) -> list[OptionLine]:
    """The lines of one section with the ``kb_base`` that holds in all of it, wherever in it that stands."""
    for line in lines:
        if line.name == "kb_base":
            try:
                base = values.count(line.value or "")
            except ValueError:
                base = 0
            if base not in values.KB_BASES:
                problems.append(line.problem("is no base of units", "1024 or 1000"))
                base = values.KB_BASES[0]
    return [replace(line, kb_base=base) for line in lines]


def _problem(file: Path, number: int, text: str, message: str, accepted: str | None) -> Problem:
    return Problem(str(file), f"'{shortened(text)}'", message, accepted=accepted, line=number)


def _memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


_KEYWORDS: dict[str, Callable[[], int]] = {
    "$pagesize": lambda: os.sysconf("SC_PAGE_SIZE"),
    "$mb_memory": _memory_mb,
    "$ncpus": lambda: os.sysconf("SC_NPROCESSORS_ONLN"),
}

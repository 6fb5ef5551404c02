"""TOML files read as a table, with every mistake in its line: studies, and what stands beside them.

Invariant: a file that cannot be read, is no TOML or has mistakes is an `InputError`, never anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from raidlab.errors import InputError, Problem
from raidlab.reading import Plain, read_text, toml
from raidlab.study.explain import explain, truths_for_numbers
from raidlab.study.places import Place, line_index, line_of, value_text, written

_Model = TypeVar("_Model", bound=BaseModel)


def read_named(file: Path) -> dict[str, Plain]:
    """A TOML file that a study names, as plain data; a `ValueError` has a sentence."""
    try:
        return toml(read_text(file))
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is not text (UTF-8)") from None
    except ValueError as error:
        raise ValueError(f"{file.name} is not valid TOML: {error}") from None


@dataclass
class Reporter:
    """Turns places in a parsed file into one-line problems with line numbers."""

    file: str
    lines: dict[Place, int]
    problems: list[Problem] = field(default_factory=list)

    def add(self, place: Place, message: str, value: object = None, accepted: str | None = None) -> None:
        """Note a mistake."""
        self.problems.append(
            Problem(
                file=self.file,
                where=written(place),
                message=message,
                value=None if value is None else value_text(value),
                accepted=accepted,
                line=line_of(self.lines, place),
            )
        )

    def validated(self, model: type[_Model], document: dict[str, Plain]) -> _Model | None:
        """The document as a table; None, with every mistake noted, where it is none."""
        try:
            found = model.model_validate(document)
            mistakes = list(truths_for_numbers(model, document))
        except ValidationError as error:
            found, mistakes = None, list(explain(model, document, error))
        for mistake in mistakes:
            self.add(mistake.place, mistake.message, mistake.value, mistake.accepted)
        return None if mistakes else found

    def complain(self) -> None:
        """Raise what was noted as an `InputError`, in the order of the lines and each mistake once, if anything was."""
        if self.problems:
            order = sorted(self.problems, key=lambda problem: (problem.line or 0, problem.where))
            raise InputError(list(dict.fromkeys(order)))


def shown_file(file: Path) -> str:
    """A short way to write a file: relative to the current directory when it lies below it."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def text_of(file: Path, accepted: str) -> str:
    """The text of a file; an `InputError` where there is none, in which ``accepted`` says what should be there."""
    try:
        return read_text(file)
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        message = f"is not text (UTF-8) from byte {error.start} on"
    raise InputError([Problem(shown_file(file), "", message, accepted=accepted)])


def parsed(text: str, file: Path) -> dict[str, Plain]:
    """A TOML text as plain data; an `InputError` when it is none."""
    try:
        return toml(text)
    except ValueError as error:
        # Not only what TOML calls an error: a number of thousands of digits is one of Python's own.
        message = f"is not valid TOML: {str(error).partition(';')[0]}"
    raise InputError([Problem(shown_file(file), "", message)])


def read_table(file: Path, model: type[_Model]) -> tuple[_Model, Reporter]:
    """A TOML file as a table, and where its further mistakes are noted."""
    text = text_of(file, "a file of TOML")
    reporter = Reporter(shown_file(file), line_index(text))
    found = reporter.validated(model, parsed(text, file))
    reporter.complain()
    assert found is not None, "a table that is not valid has a mistake"
    return found, reporter

"""Taking parameters out of a block, one by one, until none is left.

Invariants:

- A parameter is taken once. ``finish`` names every one that nobody took: an unknown one is an error.
- What is not modelled becomes a note with file, line, key and value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from raidlab.errors import InputError
from raidlab.formats.disksim.grammar import Block, Document, Entry, SourcePlace
from raidlab.reading import read_text
from raidlab.study.find import did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Note:
    """Something in the file that the model does not have."""

    place: SourcePlace
    key: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.place.file.name}:{self.place.line}: {self.key} = {self.value}: {self.why}"


@dataclass
class Fields:
    """The parameters of a block."""

    block: Block
    document: Document
    notes: list[Note]
    taken: set[str] = field(default_factory=set)

    def entry(self, key: str) -> Entry:
        """A parameter that must be there."""
        found = self.optional(key)
        if found is None:
            where = f"{self.block.kind} {self.block.name}".strip()
            raise self.block.place.error(where, f"lacks '{key}'{self._misspelt(key)}")
        return found

    def _misspelt(self, key: str) -> str:
        """Where something like a key stands that nobody has taken."""
        others = [other for other in self.block.parameters if other not in self.taken]
        close = difflib.get_close_matches(key, others, n=1, cutoff=0.8)
        return f"; line {self.block.parameters[close[0]].place.line} has '{close[0]}'" if close else ""

    def optional(self, key: str) -> Entry | None:
        """A parameter that may be there."""
        self.taken.add(key)
        return self.block.parameters.get(key)

    def number(
        self, key: str, low: float | None = 0.0, high: float | None = None, default: float | None = None
    ) -> float:
        """A number within bounds."""
        entry = self.optional(key) if default is not None else self.entry(key)
        if entry is None:
            assert default is not None
            return default
        return number_of(entry, key, low, high)

    def whole(self, key: str, low: int | None = 0, high: int | None = None) -> int:
        """A whole number within bounds."""
        return whole_of(self.entry(key), key, low, high)

    def flag(self, key: str) -> bool:
        """0 or 1."""
        return bool(self.whole(key, 0, 1))

    def choice(self, key: str, meanings: dict[int, T]) -> T:
        """One of several numbers, by what it means."""
        entry = self.entry(key)
        value = whole_of(entry, key)
        if value not in meanings:
            raise entry.place.error(key, "is not known", value=str(value), accepted=", ".join(map(str, meanings)))
        return meanings[value]

    def inner(self, key: str) -> Fields:
        """A block within this one, given there or by its name."""
        entry = self.entry(key)
        block = self._block_of(entry)
        if block is None:
            raise entry.place.error(key, "is no block", value=entry.shown(), accepted="kind { ... } or a block's name")
        return Fields(block, self.document, self.notes)

    def blocks(self, key: str, kind: str) -> list[Fields]:
        """A list of blocks of one kind, given there or by their names."""
        found = []
        for item in self.filled_list(key, "is no list of blocks"):
            block = self._block_of(item)
            if block is None or block.kind != kind:
                message, accepted = "is not what belongs here", f"{kind} {{ ... }}"
                raise item.place.error(key, message, value=item.shown(), accepted=accepted)
            found.append(Fields(block, self.document, self.notes))
        return found

    def _block_of(self, entry: Entry) -> Block | None:
        value = self.document.named(entry.value) if isinstance(entry.value, str) else entry.value
        return self.document.whole(value) if isinstance(value, Block) else None

    def filled_list(self, key: str, message: str) -> list[Entry]:
        """What a list holds that must hold something."""
        entry = self.entry(key)
        if not isinstance(entry.value, list) or not entry.value:
            raise entry.place.error(key, message, value=entry.shown())
        return entry.value

    def file_lines(self, key: str) -> tuple[Path, list[str]]:
        """A file that is named relative to the one that names it, and its lines."""
        entry = self.entry(key)
        file = entry.place.file.parent / str(entry.value)
        try:
            return file, read_text(file, "latin-1").splitlines()
        except OSError as error:
            raise entry.place.error(key, f"cannot be read: {error.strerror}", value=entry.shown()) from None

    def refuse(self, key: str, message: str, accepted: str | None = None) -> InputError:
        """The error of a parameter whose value cannot be taken."""
        entry = self.entry(key)
        return entry.place.error(key, message, value=entry.shown(), accepted=accepted)

    def listed(self, key: str) -> list[Entry]:
        """What a list holds; nothing if it is not there."""
        entry = self.optional(key)
        if entry is None:
            return []
        if not isinstance(entry.value, list):
            raise entry.place.error(key, "is no list", value=entry.shown(), accepted="[1, 2, ...]")
        return entry.value

    def numbers(self, key: str) -> list[float]:
        """A list of numbers; empty if it is not there."""
        return [number_of(item, key) for item in self.listed(key)]

    def wholes(self, key: str) -> list[int]:
        """A list of whole numbers from 0 up; empty if it is not there."""
        return [whole_of(item, key, 0) for item in self.listed(key)]

    def irrelevant(self, keys: Iterable[str]) -> None:
        """Parameters that change nothing in what a disk does."""
        self.taken.update(keys)

    def not_modelled(self, key: str, neutral: float, why: str) -> None:
        """A parameter of something the model lacks: named unless it switches that off."""
        entry = self.optional(key)
        if entry is not None and number_of(entry, key) != neutral:
            self.note(key, why)

    def note(self, key: str, why: str) -> None:
        """Name a parameter."""
        entry = self.block.parameters[key]
        self.notes.append(Note(entry.place, key, entry.shown(), why))

    def finish(self) -> None:
        """Refuse what nobody has taken."""
        for key, entry in self.block.parameters.items():
            if key not in self.taken:
                hint = did_you_mean(key, self.taken)
                raise entry.place.error(key, f"is no parameter of {self.block.kind}{hint}", value=entry.shown())


def number_of(entry: Entry, key: str, low: float | None = None, high: float | None = None) -> float:
    """The number that an entry holds."""
    value = entry.value
    if isinstance(value, (str, list, Block)):
        raise entry.place.error(key, "is no number", value=entry.shown())
    if (low is not None and value < low) or (high is not None and value > high):
        raise entry.place.error(key, "is out of range", value=entry.shown(), accepted=_range(low, high))
    return float(value)


def whole_of(entry: Entry, key: str, low: int | None = None, high: int | None = None) -> int:
    """The whole number that an entry holds."""
    value = number_of(entry, key, low, high)
    if value != int(value):
        raise entry.place.error(key, "is no whole number", value=entry.shown())
    return int(value)


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    return f"{low:g} or more" if high is None else f"{low:g} to {high:g}"

"""The grammar of DiskSim's parameter files: blocks, parameters, lists, and files within files.

    kind name { Key words = value, Other = [1, 2], Inner = kind { ... }, Model = source FILE }
    instantiate [ disk0 .. disk3 ] as name
    topology kind name [ kind name [ ... ] ]

Comments begin with ``#`` or lie between ``/*`` and ``*/``. ``source FILE`` stands for the text of that file, wherever
it stands; the name is relative to the file that holds it.

Invariants:

- Every value and every parameter knows its file and line.
- What follows the grammar is read whatever its keys; what does not is an error at its line.
- Reading is bounded: files that are named again, names of ranges and all words together are counted.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from raidlab.errors import InputError, Problem
from raidlab.reading import MOST_DEPTH, read_text

_TOKEN = re.compile(r"[ \t\f\r]+|#[^\n]*|/\*.*?\*/|\n|[{}\[\],=;]|[^ \t\n\r\f;{},\[\]=]+", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d+|0[xX][0-9a-fA-F]+")
# Of a number, and names of a range: beyond what any disk or set-up has.
_MOST_DIGITS = 40
_MOST_NAMES = 1 << 16
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# The same in the lines of other files: of ASCII digits, and no more of them than a number has.
WHOLE = rf"[0-9]{{1,{_MOST_DIGITS}}}"
NUMBER = rf"[+-]?(?:{WHOLE}\.?[0-9]{{0,{_MOST_DIGITS}}}|\.{WHOLE})(?:[eE][+-]?[0-9]{{1,4}})?"
# Within one another, and altogether.
_MOST_FILES = 32
_MOST_SOURCES = 1 << 10
# Five times as many as the largest layout that came with DiskSim has.
_MOST_WORDS = 1 << 20


@dataclass(frozen=True)
class SourcePlace:
    """Where something was read."""

    file: Path
    line: int

    def error(self, where: str, message: str, *, value: str | None = None, accepted: str | None = None) -> InputError:
        """Say what is wrong here."""
        return InputError([Problem(str(self.file), where, message, value=value, accepted=accepted, line=self.line)])


@dataclass(frozen=True)
class Entry:
    """A value and where it was read."""

    value: int | float | str | list[Entry] | Block
    place: SourcePlace

    def shown(self) -> str:
        """The value in one line."""
        if isinstance(self.value, Block):
            return f"{self.value.kind} {{ ... }}"
        if isinstance(self.value, list):
            return f"[{', '.join(entry.shown() for entry in self.value)}]"
        return str(self.value)


@dataclass
class Block:
    """``kind name { ... }``; a block within another may have no name."""

    kind: str
    name: str
    place: SourcePlace
    parameters: dict[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """A component of the topology and what hangs below it."""

    kind: str
    name: str
    below: tuple[Node, ...]


@dataclass
class Document:
    """A whole parameter file."""

    blocks: list[Block] = field(default_factory=list)
    """Those of the outermost level, in order."""
    types: dict[str, str] = field(default_factory=dict)
    """The block that each instance is made of, by the instance's name."""
    topology: list[Node] = field(default_factory=list)
    _by_name: dict[str, Block] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Put in a block of the outermost level; of two with one name the first is meant by it."""
        self.blocks.append(block)
        self._by_name.setdefault(block.name, block)

    def named(self, name: str) -> Block | None:
        """The block of this name, with what it inherits."""
        found = self._by_name.get(name)
        return None if found is None else self.whole(found)

    def whole(self, block: Block) -> Block:
        """A block whose kind is another block's name takes over that one's kind and parameters."""
        seen = {id(block)}
        while (parent := self._by_name.get(block.kind)) and id(parent) not in seen:
            seen.add(id(parent))
            if len(seen) > MOST_DEPTH:
                raise block.place.error(block.name, f"takes over from more than {MOST_DEPTH - 1} blocks in a row")
            block = Block(parent.kind, block.name, block.place, {**parent.parameters, **block.parameters})
        return block


@dataclass(frozen=True)
class _Token:
    text: str
    place: SourcePlace


def parse_file(file: Path) -> Document:
    """Read a parameter file and everything it names with ``source``."""
    tokens = []
    for token in _tokens(file, (), []):
        tokens.append(token)
        if len(tokens) > _MOST_WORDS:
            raise token.place.error("", f"is too long (more than {_MOST_WORDS:,} words)")
    return _Parser(tokens).document()


def _tokens(file: Path, within: tuple[Path, ...], sources: list[str]) -> Iterator[_Token]:
    """The words of a file, with those of the files that it names; ``sources``: every file that was named so far."""
    try:
        text = read_text(file, "latin-1")
    except OSError as error:
        raise InputError.one(
            "", f"cannot be read: {error.strerror}", accepted="a DiskSim parameter file", file=str(file)
        ) from None
    line, sourcing = 1, False
    end = 0
    for match in _TOKEN.finditer(text):
        word, place = match.group(), SourcePlace(file, line)
        if match.start() != end:
            raise place.error("", "cannot be understood", value=text[end : match.start()])
        end = match.end()
        line += word.count("\n")
        if word.isspace() or word[0] == "#" or word.startswith("/*"):
            continue
        if sourcing:
            sources.append(word)
            if len(sources) > _MOST_SOURCES:
                raise place.error("source", f"is the {_MOST_SOURCES + 1:,}th file that is named", value=word)
            yield from _source(word, place, (*within, file.resolve()), sources)
            sourcing = False
        elif word == "source":
            sourcing = True
        else:
            yield _Token(word, place)
    if sourcing:
        raise SourcePlace(file, line).error("source", "the file ends before it names one")


def _source(name: str, place: SourcePlace, within: tuple[Path, ...], sources: list[str]) -> Iterator[_Token]:
    file = place.file.parent / name
    # A name too long for a file is that of none, where a path's own method raises.
    if not os.path.isfile(file):  # noqa: PTH113
        raise place.error("source", "there is no such file", value=name, accepted=f"a file beside {place.file.name}")
    if file.resolve() in within or len(within) >= _MOST_FILES:
        raise place.error("source", "the file names itself", value=name)
    yield from _tokens(file, within, sources)


class _Parser:
    """Recursive descent over the tokens of all files."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.names = 0

    def document(self) -> Document:
        document = Document()
        while self.at < len(self.tokens):
            token = self._word("a block, instantiate or topology")
            if token.text == "instantiate":
                self._instantiate(document)
            elif token.text == "topology":
                document.topology.append(self._topology(self._word("the kind of a component").text))
            else:
                name = self._word("the block's name")
                document.add(self._block(token.text, name.text, token.place))
        return document

    def _peek(self, ahead: int = 0) -> str:
        position = self.at + ahead
        return self.tokens[position].text if position < len(self.tokens) else ""

    def _next(self, expected: str) -> _Token:
        if self.at >= len(self.tokens):
            place = self.tokens[-1].place if self.tokens else SourcePlace(Path(), 0)
            raise place.error("", f"the file ends where {expected} should follow")
        self.at += 1
        return self.tokens[self.at - 1]

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Within one more bracket; of too many whoever walks through them would fail."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            message = f"is nested too deeply (more than {MOST_DEPTH} levels)"
            raise self.tokens[self.at - 1].place.error("", message)
        yield
        self.depth -= 1

    def _word(self, expected: str) -> _Token:
        token = self._next(expected)
        if token.text in "{}[],=;":
            raise token.place.error("", f"'{token.text}' stands where {expected} should", accepted=expected)
        return token

    def _expect(self, text: str, context: str) -> _Token:
        token = self._next(f"'{text}'")
        if token.text != text:
            raise token.place.error(context, f"'{token.text}' stands where '{text}' should", accepted=f"'{text}'")
        return token

    def _block(self, kind: str, name: str, place: SourcePlace) -> Block:
        block = Block(kind, name, place)
        self._expect("{", kind)
        with self._inside():
            while self._peek() != "}":
                self._parameter(block)
                if self._peek() != "}":
                    self._expect(",", f"{kind} {name}".strip())
        self.at += 1
        return block

    def _parameter(self, block: Block) -> None:
        place = self.tokens[self.at].place if self.at < len(self.tokens) else block.place
        if self._peek() == "[":
            # Several keys get one value.
            listed = self._list()
            keys = [str(entry.value) for entry in listed]
            if not keys:
                raise place.error("", "'[]' names no parameter", accepted="[one, another] = value")
        else:
            words = [self._word("a parameter").text]
            while self._peek() not in ("=", ""):
                words.append(self._word("'='").text)
            keys = [" ".join(words)]
        self._expect("=", keys[0])
        entry = Entry(self._value(), place)
        for key in keys:
            if key in block.parameters:
                raise place.error(key, "is given twice in one block")
            block.parameters[key] = entry

    def _value(self) -> int | float | str | list[Entry] | Block:
        if self._peek() == "[":
            return self._list()
        token = self._word("a value")
        if self._peek() == "{":
            return self._block(token.text, "", token.place)
        if self._peek(1) == "{":
            return self._block(token.text, self._word("the block's name").text, token.place)
        is_whole = _INTEGER.fullmatch(token.text)
        if not is_whole and not _NUMBER.fullmatch(token.text):
            return token.text
        if len(token.text) > _MOST_DIGITS or not (is_whole or math.isfinite(float(token.text))):
            raise token.place.error("", "is too large a number", value=token.text)
        return int(token.text, 16 if "x" in token.text.lower() else 10) if is_whole else float(token.text)

    def _list(self) -> list[Entry]:
        self._expect("[", "list")
        entries: list[Entry] = []
        with self._inside():
            while self._peek() != "]":
                place = self.tokens[self.at].place if self.at < len(self.tokens) else SourcePlace(Path(), 0)
                if self._peek() == ",":
                    self.at += 1
                    continue
                if ".." in (self._peek(1), self._peek()[-2:]):
                    entries.extend(Entry(name, place) for name in self._range())
                else:
                    entries.append(Entry(self._value(), place))
        self.at += 1
        return entries

    def _range(self) -> list[str]:
        first = self._word("a name")
        self._word("'..'")
        last = self._word("a name")
        begin, end = (re.fullmatch(r"(.*?)(\d+)", word.text) for word in (first, last))
        if begin is None or end is None or begin[1] != end[1] or max(len(begin[2]), len(end[2])) > _MOST_DIGITS:
            raise first.place.error("", f"'{first.text} .. {last.text}' is no range", accepted="such as disk0 .. disk3")
        count = int(end[2]) - int(begin[2]) + 1
        self.names += count
        if self.names > _MOST_NAMES:
            raise first.place.error("", f"all ranges together have more than {_MOST_NAMES:,} names")
        if count < 1:
            raise first.place.error("", f"'{first.text} .. {last.text}' is no range", accepted="such as disk0 .. disk3")
        return [f"{begin[1]}{number}" for number in range(int(begin[2]), int(end[2]) + 1)]

    def _instantiate(self, document: Document) -> None:
        names = [str(entry.value) for entry in self._list()]
        self._expect("as", "instantiate")
        kind = self._word("a block's name").text
        document.types.update(dict.fromkeys(names, kind))

    def _topology(self, kind: str) -> Node:
        name = self._word("the component's name").text
        self._expect("[", f"topology {name}")
        below: list[Node] = []
        with self._inside():
            while self._peek() != "]":
                if self._peek() == ",":
                    self.at += 1
                    continue
                below.append(self._topology(self._word("the kind of a component").text))
        self.at += 1
        return Node(kind, name, tuple(below))

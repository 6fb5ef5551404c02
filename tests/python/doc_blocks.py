"""The fenced blocks of a page, and how it says that some are only read.

A comment on the line before a fence says so, with the reason:

    <!-- parsed only: needs six disks -->
    <!-- not run: sets up the clone -->
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# A block with a title is a file of the source tree, shown by a recipe (test_recipes.py).
RUN, PARSED, LEFT, FILE = "run", "parsed only", "not run", "file"
_FENCE = re.compile(r"(?:^<!-- (parsed only|not run): [^\n]+ -->\n)?^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
_TITLE = re.compile(r'title="([^"]+)"')
_SAVED = re.compile(r"(?:[Ss]ave|[Ww]rite) this (?:as|to) `([\w.-]+)`[^\n]*\n*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, what is done with it, and the file that a reader saves it as."""

    language: str
    text: str
    how: str
    file: str | None

    def commands(self) -> Iterator[list[str]]:
        """The commands of a shell's block, or those that a block of output was printed by; comments left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "text":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for words in _split(lines):
            # What a shell does with the output is not the command's.
            ends = [index for index, word in enumerate(words) if word in (">", "|", "&&", ";")]
            if words:
                yield words[: ends[0]] if ends else words


def _split(lines: list[str]) -> Iterator[list[str]]:
    """The words of each command; a quoted word may go on over lines."""
    begun = ""
    for line in lines:
        begun += line
        try:
            words = shlex.split(begun, comments=True)
        except ValueError:
            begun += "\n"
        else:
            begun = ""
            yield words
    if begun:
        raise ValueError(f"a quotation has no end: {begun}")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        how, language, head, inside = match.groups()
        title = _TITLE.search(head)
        saved = title or _SAVED.search(text[: match.start()])
        found.append(Block(language, inside, how or (FILE if title else RUN), saved[1] if saved else None))
    return found

"""Where facts are read: sysfs, procfs, device nodes, and the tools that some facts need.

Invariants:

- Everything is read and nothing is changed; a tool is only ever asked, never told.
- A fact that cannot be read is None, and `FactReader.unknown` says why: "could not be determined, because ..." is an
  answer, a guess is not.
- The roots are arguments, so that a kernel that is not at hand can be stood in for by a tree of files.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raidlab.results.facts import Volume

_TOOL_TIMEOUT_S = 20.0


def ask_tool(words: Sequence[str]) -> str:
    """What a tool prints.

    Raises `OSError` with one sentence, when there is no such tool or it fails.
    """
    try:
        done = subprocess.run(
            list(words), capture_output=True, text=True, check=False, timeout=_TOOL_TIMEOUT_S, env=_plain_words()
        )
    except FileNotFoundError:
        raise OSError(f"{words[0]} is not installed") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise OSError(f"{words[0]} could not be asked: {error}") from None
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split()) or f"it ended with code {done.returncode}"
        raise OSError(f"{words[0]} says: {said}")
    return done.stdout


def _plain_words() -> dict[str, str]:
    """Tools answer in the language of the user; what is parsed must be in theirs. System tools may lie off the path."""
    path = os.environ.get("PATH", "")
    return {**os.environ, "LC_ALL": "C", "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin"}


@dataclass(frozen=True)
class Sources:
    """The roots that facts are read under, and how a tool is asked."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    ask: Callable[[Sequence[str]], str] = ask_tool

    def block(self, number: int) -> Path | None:
        """The directory in which sysfs describes a block device, by its number; None when it knows none."""
        entry = self.sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
        return entry.resolve() if entry.exists() else None


@dataclass
class FactReader:
    """Reads the facts of one volume and keeps the reasons for those that could not be had."""

    unknown: dict[str, str] = field(default_factory=dict)

    def text(self, key: str, file: Path) -> str | None:
        """The text of a file, without the end of its line."""
        try:
            return file.read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            self.unknown[key] = f"this kernel has no {file.name} here"
        except OSError as error:
            self.unknown[key] = f"{file} cannot be read: {error.strerror}"
        return None

    def number(self, key: str, file: Path) -> int | None:
        """The first number of a file; while an array is reshaped, md writes the old one after it."""
        text = self.text(key, file)
        if text is None:
            return None
        word = text.split()[0] if text.split() else ""
        try:
            return int(word)
        except ValueError:
            self.unknown[key] = f"{file.name} says '{text}', which is not a number"
            return None

    def tool(self, keys: Sequence[str], sources: Sources, words: Sequence[str]) -> str | None:
        """What a tool prints; if it cannot be had, the reason stands beside each of the facts it would have given."""
        try:
            return sources.ask(words)
        except OSError as error:
            self.unknown.update(dict.fromkeys(keys, str(error)))
            return None


def new_volume(kind: str, name: str, unknown: dict[str, str]) -> Volume:
    """A volume of which nothing is known yet but what it is called."""
    return {
        "kind": kind,
        "name": name,
        "level": None,
        "chunk_bytes": None,
        "state": None,
        "kernel_state": None,
        "activity": None,
        "activity_share": None,
        "missing_members": None,
        "members": [],
        "details": {},
        "unknown": unknown,
    }


def slaves(node: Path) -> list[Path]:
    """The block devices a block device is made of, as sysfs has them."""
    folder = node / "slaves"
    return sorted(entry.resolve() for entry in folder.iterdir()) if folder.is_dir() else []


def read_text(file: Path) -> str | None:
    """The text of a small file as it is; names may hold brackets. None where it cannot be had."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return None


def read_word(file: Path) -> str | None:
    """The text of a small file, or the word in brackets where several are offered; None where it cannot be had."""
    text = read_text(file)
    if text is None:
        return None
    begin, end = text.find("["), text.find("]")
    return text[begin + 1 : end] if 0 <= begin < end else text

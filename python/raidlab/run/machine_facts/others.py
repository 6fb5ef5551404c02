"""What other programs took of the processors, and how long anybody waited for one.

Reference: proc_pid_stat(5); the kernel's Documentation/accounting/psi.rst (cpu, "some": the time in which at least one
task waited for a processor).
"""

from __future__ import annotations

import os
from pathlib import Path

from raidlab.results.facts import OtherPrograms
from raidlab.run.kernel_facts import Sources
from raidlab.run.target_facts.stack import read_word_plain

# The parent of the kernel's own threads, which work for whoever asks.
_KTHREADD = 2


def fact(sources: Sources) -> OtherPrograms:
    """``programs``: ticks of each other program by its number; ``waited_us`` since boot; None where it is not told."""
    return {"programs": _programs(sources.proc), "waited_us": _waited_us(sources.proc)}


def _programs(proc: Path) -> dict[str, int] | None:
    """Ticks of every program but this one and those that it started."""
    found: dict[int, tuple[int, int]] = {}
    try:
        folders = [folder for folder in proc.iterdir() if folder.name.isdigit()]
    except OSError:
        return None
    for folder in folders:
        # The name in brackets may hold anything, brackets too.
        words = (read_word_plain(folder / "stat") or "").rpartition(")")[2].split()
        if len(words) > 12:
            found[int(folder.name)] = (int(words[1]), int(words[11]) + int(words[12]))
    own = {os.getpid()}
    for _ in range(len(found)):
        more = {number for number, (parent, _) in found.items() if parent in own} - own
        if not more:
            break
        own |= more
    return {
        str(number): ticks
        for number, (parent, ticks) in found.items()
        if number not in own and _KTHREADD not in (number, parent)
    }


def _waited_us(proc: Path) -> int | None:
    line = (read_word_plain(proc / "pressure" / "cpu") or "").partition("\n")[0]
    total = line.partition("total=")[2]
    return int(total) if line.startswith("some") and total.isdigit() else None

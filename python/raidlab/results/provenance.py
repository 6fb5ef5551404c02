"""Where a result comes from: the machine, the version, the command.

Invariants:

- Everything here is the same for two runs of one command on one machine: times stand elsewhere (`folder`).
- What cannot be read is None, never a guess.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from pathlib import Path

from raidlab.results.facts import Host, TraceFile, Version


def host_facts() -> Host:
    """Facts of this machine that can change a measurement."""
    return {
        "cpu": _after_colon("/proc/cpuinfo", "model name"),
        "cpus": os.cpu_count(),
        "memory_kib": _number(_after_colon("/proc/meminfo", "MemTotal")),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def version_facts() -> Version:
    """Raidlab's version and, in a source tree, the commit and whether the tree differs from it."""
    from raidlab import __version__

    package = Path(__file__).resolve().parent.parent
    if not (package.parent.parent / ".git").exists():
        return {"version": __version__, "git_commit": None, "git_dirty": None}
    status = _git(package, "status", "--porcelain", "--untracked-files=no")
    return {
        "version": __version__,
        "git_commit": _git(package, "rev-parse", "HEAD"),
        "git_dirty": None if status is None else bool(status),
    }


def trace_facts(file: Path, format_name: str | None) -> TraceFile:
    """Which trace a file is: its format, length and hash; None for what cannot be told of one that is not there."""
    from raidlab import _core

    try:
        format_name = _core.trace_format(str(file), format_name)
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            return {"format": format_name, "bytes": file.stat().st_size, "sha256": digest}
    except (OSError, _core.CellError):
        return {"format": format_name, "bytes": None, "sha256": None}


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _after_colon(file: str, key: str) -> str | None:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), None)


def _number(text: str | None) -> int | None:
    digits = (text or "").split()
    return int(digits[0]) if digits and digits[0].isdigit() else None

"""Run folders by what users call them: a path, a name in ``--out``, or ``last``.

Invariant: looking changes nothing, and a folder that cannot be read is not looked at twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUNS = Path("runs")
# The first ends with the run itself, the second when it is resumed.
RUNNING, CUT_SHORT, UNREADABLE = "running", "cut short", "unreadable"


def runs_in(out: Path) -> Iterator[dict[str, Any]]:
    """What runs there are, the oldest first: ``run``, ``started``, ``status``, ``targets``."""
    from raidlab.reading import json_value
    from raidlab.results.parts import opened

    found = []
    for folder in out.iterdir() if out.is_dir() else ():
        try:
            with opened(folder / "run.json") as file:
                facts = json_value(file.read())
            status = str(facts["status"])
        except (OSError, ValueError, KeyError, TypeError):
            facts, status = _unfinished(folder)
        try:
            row = (str(facts["times"]["started"]), folder.name, status, " ".join(facts["targets"]))
        except (KeyError, TypeError):
            if not _is_run(folder):
                continue
            row = ("", folder.name, UNREADABLE, "")
        found.append(row)
    for started, name, status, targets in sorted(found):
        yield {"run": name, "started": started, "status": status, "targets": targets}


def _is_run(folder: Path) -> bool:
    """Whether a folder is, or was, one of a run: others are not listed."""
    from raidlab.results.parts import PARTS

    return any((folder / name).is_file() for name in ("run.json", PARTS))


def _unfinished(folder: Path) -> tuple[dict[str, Any], str]:
    """The facts of a run that has no ``run.json`` yet, and whether it goes on."""
    from raidlab.results.parts import first_facts, is_being_written

    return first_facts(folder), RUNNING if is_being_written(folder) else CUT_SHORT


def folder_of(run: str, out: Path, option: str = "RUN") -> Path:
    """The folder that is meant.

    Raises
    ------
    InputError
        For ``last`` where there is none, or while it is being written; for nothing.
    """
    from raidlab.errors import InputError

    if run == "last":
        rows = [row for row in runs_in(out) if row["status"] != UNREADABLE]
        if not rows:
            raise InputError.one(option, f"there is no run in {out}/", value="'last'", accepted="a run folder")
        if rows[-1]["status"] == RUNNING:
            # The one before is not what was meant, and would be taken for it.
            message = f"is {rows[-1]['run']}, which is still being written by its run"
            raise InputError.one(option, message, value="'last'", accepted="a run that has ended")
        return out / str(rows[-1]["run"])
    if not run:
        raise InputError.one(option, "names no run", value="''", accepted="a run folder, its name in --out, or 'last'")
    return Path(run) if Path(run).is_dir() else out / run

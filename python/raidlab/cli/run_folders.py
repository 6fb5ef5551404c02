"""Run folders by what users call them: a path, a name in ``--out``, or ``last``.

Invariant: looking changes nothing, and a folder that cannot be read is not looked at twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from raidlab.errors import InputError

if TYPE_CHECKING:
    from raidlab.results.facts import Facts, UnfinishedFacts

RUNS = Path("runs")
# The first ends with the run itself, the second when it is resumed.
RUNNING, CUT_SHORT, UNREADABLE = "running", "cut short", "unreadable"


class RunListing(TypedDict):
    """A run in a list: its folder's name, when it began, how it stands, where it ran."""

    run: str
    started: str
    status: str
    targets: str


def runs_in(out: Path) -> Iterator[RunListing]:
    """The runs in a directory, the oldest first; folders of something else are left out."""
    found = []
    for folder in out.iterdir() if out.is_dir() else ():
        facts, status = _facts_and_status(folder)
        if facts is not None:
            found.append((facts["times"]["started"], folder.name, status, " ".join(facts["targets"])))
        elif _is_run(folder):
            found.append(("", folder.name, UNREADABLE, ""))
    for started, name, status, targets in sorted(found):
        yield {"run": name, "started": started, "status": status, "targets": targets}


def _is_run(folder: Path) -> bool:
    """Whether a folder is, or was, one of a run: others are not listed."""
    from raidlab.results.parts import PARTS

    return any((folder / name).is_file() for name in ("run.json", PARTS))


def _facts_and_status(folder: Path) -> tuple[Facts | UnfinishedFacts | None, str]:
    """The facts of a run, if they can be read, and how it stands; while it has no ``run.json``, whether it goes on."""
    from raidlab.directory import Directory
    from raidlab.results.load import facts_in
    from raidlab.results.parts import first_facts, is_being_written

    try:
        with Directory.open(folder) as place:
            facts = facts_in(place)
            return facts, facts["status"]
    except (OSError, InputError):
        return first_facts(folder), RUNNING if is_being_written(folder) else CUT_SHORT


def folder_of(run: str, out: Path, option: str = "RUN") -> Path:
    """The folder that is meant; ``last`` is an error where there is none, or while it is being written."""
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

"""How what measures ends: what is said of it, and the exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from raidlab.cli.terminal import say
from raidlab.errors import (
    EXIT_FAILED,
    EXIT_HUNG_UP,
    EXIT_INTERRUPTED,
    EXIT_INVALID_RESULT,
    EXIT_OK,
    EXIT_TERMINATED,
)

if TYPE_CHECKING:
    from raidlab.analysis.checks import Finding
    from raidlab.results import Run

_OF_SIGNAL = {"SIGHUP": EXIT_HUNG_UP, "SIGTERM": EXIT_TERMINATED}


def say_cut_short(what: str, status: str, failure: str | None, *, is_empty: bool = False) -> None:
    """Say that something did not get to its end, and what failed; nothing of what is complete.

    ``is_empty``: nothing had been measured by then.
    """
    if status != "complete" or is_empty:
        ended = "was interrupted" if status == "interrupted" else "failed"
        shown = "nothing had been measured yet" if is_empty else "what was measured until then is shown above"
        say(f"the {what} {ended}; {shown}")
    if failure:
        say(f"error: {failure}")


def code_of_status(status: str, signal_name: object, verdicts: Collection[str] = ()) -> int:
    """What the program ends with, by how a measurement ended, on which signal, and what checks say of it."""
    if status == "interrupted":
        return _OF_SIGNAL.get(str(signal_name), EXIT_INTERRUPTED)
    if status == "failed":
        return EXIT_FAILED
    return EXIT_INVALID_RESULT if "INVALID" in verdicts else EXIT_OK


def exit_code(run: Run, findings: Iterable[Finding]) -> int:
    """What a run ends the program with."""
    return code_of_status(run.facts["status"], run.facts.get("interrupted_by"), {one.verdict for one in findings})


def code_of(findings: Iterable[Finding]) -> int:
    """What findings alone end the program with."""
    return code_of_status("complete", None, {finding.verdict for finding in findings})

"""``raidlab report``: write the page of a run again, for instance with a newer raidlab."""

from __future__ import annotations

from typing import Annotated

import typer

from raidlab.cli.endings import code_of
from raidlab.cli.options import Out, Prices, RunName, option
from raidlab.cli.run_folders import RUNS, folder_of
from raidlab.cli.terminal import say


def report(
    run: RunName,
    foreign: Annotated[
        list[str] | None,
        option(
            "FILE",
            "Results of others, drawn beside the study's figures: a CSV file with controller, level, "
            "workload, depth, iops, and perhaps source, drives, write_cache, note. May be repeated; kept with the run.",
        ),
    ] = None,
    out: Out = RUNS,
    prices: Prices = None,
) -> None:
    """Write the report of a run again and print its path; the exit code is 3 if a check says INVALID."""
    from raidlab.analysis.checks import run_checks
    from raidlab.api import analyse, why_left_out, write_report

    folder = folder_of(run, out)
    opened = analyse(folder)
    if left_out := why_left_out(opened.run):
        say(left_out)
    print(write_report(folder, foreign=foreign or (), prices=prices))
    raise typer.Exit(code_of(run_checks(analyse(folder))))

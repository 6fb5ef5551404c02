"""``raidlab report``: write the page of a run again, for instance with a newer raidlab."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, such as runs/NAME-DATE-001.")],
    foreign: Annotated[
        list[str] | None,
        typer.Option(
            "--foreign",
            metavar="FILE",
            help="Results of others, drawn beside the study's figures: a CSV file with controller, level, "
            "workload, depth, iops, and perhaps source, drives, write_cache, note. May be repeated; kept with the run.",
        ),
    ] = None,
) -> None:
    """Write the report of a run again; prints its path."""
    from raidlab.api import write_report

    print(write_report(folder, foreign=foreign or ()))

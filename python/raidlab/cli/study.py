"""``raidlab study``: list the studies there are, show what one asks."""

from __future__ import annotations

from typing import Annotated

import typer

from raidlab.cli.run import complete_study

app = typer.Typer(help="List studies, or show what one asks.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_studies() -> None:
    """List the studies that can be run by name."""
    from raidlab.cli.output import print_studies

    print_studies()


@app.command("show")
def show(
    study: Annotated[
        str,
        typer.Argument(metavar="STUDY", help="A study's name, or the path of its file.", autocompletion=complete_study),
    ],
) -> None:
    """Check a study file and show its arrays, workloads, loads, and how many cells it runs."""
    from raidlab.cli.output import print_study
    from raidlab.run import check_study
    from raidlab.study import load_study

    loaded = load_study(study)
    check_study(loaded)
    print_study(loaded)

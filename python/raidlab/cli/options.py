"""Arguments and options that several subcommands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raidlab.cli.run import complete_study

STUDY_HELP = "A study's name, or the path of its file."
Study = Annotated[str, typer.Argument(metavar="STUDY", help=STUDY_HELP, autocompletion=complete_study)]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run folder, its name in --out, or 'last'.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the run folders are.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Prices = Annotated[
    str | None,
    typer.Option("--prices", metavar="FILE", help="Your prices (TOML) for the study's rules of choice; kept."),
]

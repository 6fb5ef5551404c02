"""Arguments and options: how one is declared, and those that several subcommands have.

An option is called as its parameter (``file_size`` is ``--file-size``), unless other names are given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def argument(metavar: str, meaning: str, **more: Any) -> Any:
    """What stands on the command line without a name."""
    return typer.Argument(metavar=metavar, help=meaning, **more)


def option(metavar: str, meaning: str, *names: str, **more: Any) -> Any:
    """An option that takes a word, which the help calls ``metavar``."""
    return typer.Option(*names, metavar=metavar, help=meaning, **more)


def number(meaning: str, least: float | None = None, most: float | None = None) -> Any:
    """An option that takes a number."""
    return typer.Option(min=least, max=most, help=meaning)


def flag(name: str, meaning: str) -> Any:
    """An option that takes nothing; it has a name, for Typer would offer the opposite of a parameter too."""
    return typer.Option(name, help=meaning)


def complete_study(incomplete: str) -> list[str]:
    """Names of studies, for the shell."""
    from raidlab.study.find import study_names

    return [name for name in study_names() if name.startswith(incomplete)]


STUDY_HELP = "A study's name, or the path of its file."
Study = Annotated[str, argument("STUDY", STUDY_HELP, autocompletion=complete_study)]
RunName = Annotated[str, argument("RUN", "A run folder, its name in --out, or 'last'.")]
Out = Annotated[Path, option("DIR", "Where the run folders are.", "--out")]
Json = Annotated[bool, flag("--json", "Print JSON.")]
Prices = Annotated[str | None, option("FILE", "Your prices (TOML) for the study's rules of choice; kept.", "--prices")]

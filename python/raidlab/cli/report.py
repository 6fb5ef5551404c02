"""``raidlab report``: write the page of a run again, for instance with a newer raidlab."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, such as runs/NAME-DATE-001.")],
) -> None:
    """Write the report of a run again; prints its path."""
    from raidlab.api import write_report

    print(write_report(folder))

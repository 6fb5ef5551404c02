"""``raidlab fio``: studies as job files of fio's, and fio's job files on raidlab's engine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

app = typer.Typer(
    name="fio", help="fio's job files: write them from studies, read them, run them.", no_args_is_help=True
)

EXPORT_EXAMPLES = """\b
Examples:
  raidlab fio export quickstart --array raid5 > raid5.fio
  raidlab fio export quickstart --out jobs/ --target /dev/md0
  TARGET=/dev/md0 fio raid5.fio"""


@app.command("export", epilog=EXPORT_EXAMPLES)
def export(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study's name, or the path of its file.")],
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="Only this workload; may be repeated.")
    ] = None,
    array: Annotated[
        list[str] | None, typer.Option("--array", help="Only the file for this array; may be repeated.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="PATH",
            help="A block device, a file, or a directory to make one in, that stands for the array; one for each "
            "volume. By default the file takes it from the environment's TARGET.",
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Write a file for each array here, instead of printing.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The study's quick loads and times.")] = False,
) -> None:
    """Write a study's workloads as job files of fio's.

    A job for each workload and load, one after another; comments say what fio only approximates. What it cannot do at
    all is refused with its key.
    """
    from pathlib import Path

    from raidlab.errors import InputError
    from raidlab.run.to_fio import study_to_fio
    from raidlab.study import load_study

    files = study_to_fio(
        load_study(study), workloads=workload or (), arrays=array or (), targets=target or (), quick=quick
    )
    if out is None:
        if len(files) > 1:
            arrays = ", ".join(file.array for file in files)
            raise InputError.one(
                "--array", f"there is a file for each array: {arrays}", accepted="one of them, or --out DIR"
            )
        print(files[0].text, end="")
        return
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file.name).write_text(file.text, encoding="utf-8")
            print(folder / file.name, file=sys.stderr)
    except OSError as error:
        raise InputError.one("--out", f"cannot be written: {error.strerror}", value=f"'{out}'") from None

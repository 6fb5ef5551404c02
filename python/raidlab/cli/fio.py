"""``raidlab fio``: studies as job files of fio's, and fio's job files on raidlab's engine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of_status, say_cut_short
from raidlab.cli.options import Json, Study, argument, flag, number, option
from raidlab.cli.terminal import printing, say, writing
from raidlab.errors import InputError

if TYPE_CHECKING:
    from raidlab.formats.fio.cells import Import

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
    study: Study,
    workload: Annotated[list[str] | None, option("NAME", "Only this workload; may be repeated.")] = None,
    array: Annotated[list[str] | None, option("NAME", "Only the file for this array; may be repeated.")] = None,
    target: Annotated[
        list[str] | None,
        option(
            "PATH",
            "A block device, a file, or a directory to make one in, that stands for the array; one for each "
            "volume. By default the file takes it from the environment's TARGET.",
        ),
    ] = None,
    out: Annotated[str | None, option("DIR", "Write a file for each array here, instead of printing.")] = None,
    quick: Annotated[bool, flag("--quick", "The study's quick loads and times.")] = False,
) -> None:
    """Write a study's workloads as job files of fio's.

    A job for each workload and load, one after another; comments say what fio only approximates. What it cannot do at
    all is refused with its key.
    """
    from pathlib import Path

    from raidlab.directory import Directory
    from raidlab.run.to_fio import study_to_fio
    from raidlab.study import load_study

    files = study_to_fio(
        load_study(study), workloads=workload or (), arrays=array or (), targets=target or (), quick=quick
    )
    if out is None:
        if len(files) > 1:
            message = f"there is a file for each array: {', '.join(file.array for file in files)}"
            raise InputError.one("--array", message, accepted="one of them, or --out DIR")
        with printing():
            print(files[0].text, end="")
        return
    with writing("--out", out):
        Path(out).mkdir(parents=True, exist_ok=True)
        with Directory.open(Path(out)) as place:
            for file in files:
                say(str(place.replace(file.name, file.text.encode())))


IMPORT_EXAMPLES = """\b
Examples:
  raidlab fio import job.fio
  raidlab fio import job.fio --json
  raidlab fio import job.fio --run --runtime 5s --size 256MiB --directory /mnt/disk1

\b
Options of fio's that are honoured:
"""


def _honoured() -> str:
    """The options that are honoured, as the help lists them; imports nothing heavy."""
    import textwrap

    from raidlab.formats.fio.options import ALIASES, HONOURED, QUIET

    names = ", ".join(sorted([*HONOURED, *ALIASES, "kb_base", "include", "${NAME}"]))
    quiet = ", ".join(sorted(QUIET))
    honoured = textwrap.fill(names, 96, initial_indent="  ", subsequent_indent="  ")
    left_out = textwrap.fill(quiet, 96, initial_indent="  ", subsequent_indent="  ")
    return f"{honoured}\n\n\b\nAbout fio's own process and report, left out with a note:\n{left_out}"


@app.command("import", epilog=IMPORT_EXAMPLES + _honoured())
def import_(
    job_file: Annotated[str, argument("JOB.fio", "A job file of fio's.")],
    run: Annotated[bool, flag("--run", "Run the jobs; without it they are only shown.")] = False,
    section: Annotated[list[str] | None, option("NAME", "Only the job of this name; may be repeated.")] = None,
    runtime: Annotated[str | None, option("TIME", "Run no job longer than this.")] = None,
    size: Annotated[str | None, option("SIZE", "Use no more than this of each file.")] = None,
    directory: Annotated[str | None, option("DIR", "Where relative files lie, in place of the job's.")] = None,
    seed: Annotated[int, number("The root seed, for jobs without a randseed.", 0, 2**63 - 1)] = 1,
    destroy: Annotated[
        list[str] | None, option("DEVICE", "A block device of the file that may be overwritten.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show or run a job file of fio's.

    The jobs in raidlab's words: groups divided by stonewall, a cell for each job. A line that raidlab cannot honour is
    an error that names it; what fio does otherwise is a note.
    """
    from pathlib import Path

    from raidlab.cli import fio_output
    from raidlab.formats.fio.cells import ImportSettings, import_jobs
    from raidlab.formats.fio.options import load_job_file
    from raidlab.measure.words import parse_with
    from raidlab.study.units import BYTES_ACCEPTED, TIME_ACCEPTED, parse_bytes, parse_time_ns

    most_bytes = None if size is None else parse_with(parse_bytes, "--size", size, BYTES_ACCEPTED)
    most_ns = None if runtime is None else parse_with(parse_time_ns, "--runtime", runtime, TIME_ACCEPTED)
    settings = ImportSettings(seed, tuple(destroy or ()), directory, most_bytes, most_ns)
    imported = import_jobs(load_job_file(Path(job_file), sections=tuple(section or ())), settings)
    if run:
        raise typer.Exit(_run(imported, as_json=as_json))
    with printing():
        if as_json:
            fio_output.print_json(imported, None, [])
        else:
            fio_output.print_plan(imported)


def _run(imported: Import, *, as_json: bool) -> int:
    """Run the jobs, print what was measured, and return the exit code."""
    from raidlab.cli import fio_output
    from raidlab.run.from_fio import JobFileRun, by_job
    from raidlab.run.interrupt import catching_signals
    from raidlab.run.progress import progress_on

    job_run = JobFileRun(imported, progress_on(sys.stderr))
    with catching_signals(job_run.stop):
        jobs = by_job(list(job_run.results()))
        with printing():
            if as_json:
                fio_output.print_json(imported, job_run, jobs)
            else:
                fio_output.print_results(jobs)
                fio_output.print_notes([*imported.notes, *job_run.warnings])
    say_cut_short("run", job_run.status, job_run.failure)
    return code_of_status(job_run.status, job_run.stop.signal_name)

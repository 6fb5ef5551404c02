"""``raidlab run``: run a study, print the comparison, keep the result."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from raidlab.cli.endings import exit_code
from raidlab.cli.options import argument, complete_study, flag, number, option

if TYPE_CHECKING:
    from raidlab.analysis.checks import Finding
    from raidlab.results import Run
    from raidlab.run.interrupt import StopFlag
    from raidlab.run.progress import Progress
    from raidlab.run.stream_cells import CopySink

EXAMPLES = """\b
Examples:
  raidlab run quickstart --quick
  raidlab run quickstart --on sim --seed 1
  raidlab run my-study.toml --on /mnt/disk1/ --on /mnt/disk2/
  raidlab run jlab1998 --on /mnt/box/ --cluster tcp://10.0.0.1:8786 --machine stage1:/scratch
  raidlab run uselton2000 --on 0/a=/mnt/1/,/mnt/2/,/mnt/3/ --on 1/b=/mnt/4/,/mnt/5/,/mnt/6/
  raidlab run my-study.toml --on /mnt/disk1/ --on raid10=/dev/md0,raid6=/dev/md1
  raidlab run my-sweep.toml --on sim --cluster tcp://10.0.0.1:8786
  raidlab run --resume last"""


def complete_target(incomplete: str) -> list[str]:
    """Words that ``--on`` knows, for the shell."""
    from raidlab.study.check import TARGET_WORDS

    return [word for word in TARGET_WORDS if word.startswith(incomplete)]


def run(
    study: Annotated[
        str | None,
        argument(
            "STUDY",
            "A study's name, or the path of its file. With --resume that of the run by default.",
            autocompletion=complete_study,
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        list[str] | None,
        option(
            "TARGET",
            "sim, original (the hardware the study describes), emulated (modelled disks on the real clock), "
            "memory, a directory to make member files in, "
            "a block device, a group of these (NAME/NAME=PLACE,PLACE,...), "
            "or arrays of the study that stand already (ARRAY=PLACE,ARRAY=PLACE); may be repeated. "
            "The study's own choice by default.",
            autocompletion=complete_target,
        ),
    ] = None,
    out: Annotated[str, option("DIR", "Where the run folder is made.")] = "runs",
    seed: Annotated[int | None, number("The root seed; the study's by default.")] = None,
    quick: Annotated[bool, flag("--quick", "A short run: for a first look, not for a decision.")] = False,
    destroy: Annotated[list[str] | None, option("DEVICE", "A block device of --on that may be overwritten.")] = None,
    resume: Annotated[
        str | None,
        option(
            "RUN",
            "Go on with a run that was killed, interrupted or failed: its folder, its name in --out, or 'last'. "
            "Its targets, seed and --quick are kept; --destroy, --machine and --loaded-by are named anew.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        option(
            "HOST:/DIR",
            "Where streams to another machine go: a directory of a host of --cluster. Without it they are left out.",
        ),
    ] = None,
    loaded_by: Annotated[
        str | None,
        option(
            "JOB",
            "Run under load: a study, or a job file of fio's (JOB.fio), that other processes run again and again "
            "meanwhile, a study on the same targets with --quick, in files of its own, a job file where it says.",
        ),
    ] = None,
    prices: Annotated[
        str | None,
        option("FILE", "Your prices (TOML) for a study with rules of choice; its own by default. Kept with the run."),
    ] = None,
    records: Annotated[
        bool,
        flag(
            "--records",
            "Keep a row of every single request too (arrival, start, end, place), as Parquet, a file a cell.",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        option(
            "CLUSTER",
            "Simulate on a Dask cluster: its scheduler's address (tcp://HOST:8786, tls://HOST:8786), or local:N for N "
            "processes of this machine. --machine names one of its hosts. Needs raidlab[dask].",
        ),
    ] = None,
    no_cache: Annotated[
        bool, flag("--no-cache", "Simulate every cell anew, and keep none: by default what is known already is taken.")
    ] = False,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of tables.")] = False,
) -> None:
    """Run a study and print the comparison.

    Measures, simulates or both, prints a table for each target, and keeps the result with a report in a new folder.
    """
    from raidlab.analysis.checks.incomplete import ended_words
    from raidlab.cli.terminal import say
    from raidlab.errors import InputError
    from raidlab.measure.copies import host_disk
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.loaded import under_load
    from raidlab.run.progress import progress_on

    stop, far = StopFlag(), None
    if prices is not None and study is not None:
        check_prices(study, prices)
    with ExitStack() as opened:
        if machine is not None:
            if cluster is None:
                message, accepted = "is to be a host of a Dask cluster", "--machine HOST:/DIR --cluster ADDRESS"
                raise InputError.one("--machine", message, value=f"'{machine}'", accepted=accepted)
            far = opened.enter_context(host_disk(machine, cluster))
        # Whoever interrupts a run still wants its report.
        opened.enter_context(catching_signals(stop))
        options = _RunOptions(on, seed, quick, destroy or [], progress_on(sys.stderr), stop, far, not no_cache, cluster)
        with under_load(loaded_by, options.on or [], stop, options.progress):
            if resume is None:
                result = _new_run(study, out, options, loaded_by, records=records)
            else:
                if records:
                    message, accepted = "was settled when the run began", "--resume without it"
                    raise InputError.one("--records", message, accepted=accepted)
                result = _resumed_run(resume, study, out, options)
        if result.cells.is_empty():
            say(f"{result.facts['status']} before anything was measured; {result.folder}")
            say_failure(result)
            raise typer.Exit(exit_code(result, []))
        page, findings = _report(result, study, prices, as_json=as_json)
    say(f"report: {page}")
    say_fits(result)
    if result.facts["status"] != "complete":
        say(f"the {ended_words(result.facts['status'])}; what was measured until then is kept")
        say_failure(result)
        say(f"the rest: raidlab run --resume {result.folder}")
    raise typer.Exit(exit_code(result, findings))


def _report(result: Run, study: str | None, prices: str | None, *, as_json: bool) -> tuple[Path, list[Finding]]:
    """Print a run and write its page, after keeping the user's prices with it; the page's path, and the findings."""
    from raidlab.analysis.checks import run_checks
    from raidlab.api import analyse, choice_of, published_beside, sheet_of, study_of, with_prices
    from raidlab.cli.comparison import print_conclusions
    from raidlab.cli.output import print_json, print_run
    from raidlab.cli.terminal import printing
    from raidlab.published.rules import choice_text
    from raidlab.report import write_page

    analysis = analyse(result)
    of_run = study or study_of(result)
    if prices is not None and of_run is not None:
        with_prices(result, of_run, prices)
    choice = choice_of(analysis, of_run) if of_run is not None else None
    sheet = sheet_of(analysis, of_run) if of_run is not None else None
    published = published_beside(analysis, study) if study is not None else None
    page = write_page(analysis, published, choice, sheet)
    findings = run_checks(analysis)
    with printing():
        if as_json:
            print_json(analysis, findings)
        else:
            print_run(analysis, findings)
            if published is not None:
                print_conclusions(published)
            if choice is not None:
                print(f"\n{choice_text(choice)}", end="")
    return page, findings


def check_prices(study: str, prices: str) -> None:
    """Refuse prices that are none of the study's before anything is run."""
    from raidlab.published.rules import load_choice, load_prices
    from raidlab.study import load_study

    load_prices(Path(prices), load_choice(load_study(study).file))


class _RunOptions(NamedTuple):
    """What the command says of how to run."""

    on: list[str] | None
    seed: int | None
    quick: bool
    destroy: list[str]
    progress: Progress
    stop: StopFlag
    machine: CopySink | None
    cache: bool
    cluster: str | None


def _new_run(study: str | None, out: str, options: _RunOptions, loaded_by: str | None, *, records: bool) -> Run:
    from raidlab.api import run_study
    from raidlab.errors import InputError

    if study is None:
        raise InputError.one("STUDY", "is missing", accepted="a study's name or file, or --resume RUN")
    argv = command(study, options.on or [], options.seed, options.quick, options.destroy)
    if options.machine is not None:
        argv += ["--cluster", str(options.cluster), "--machine", options.machine.name]
    argv += ["--loaded-by", loaded_by] if loaded_by is not None else []
    argv += ["--records"] if records else []
    return run_study(study, out=out, argv=argv, records=records, **options._asdict())


def _resumed_run(run: str, study: str | None, out: str, options: _RunOptions) -> Run:
    from raidlab.api import resume_run
    from raidlab.cli.run_folders import folder_of
    from raidlab.run.targets import refuse_empty

    refuse_empty("--resume", [run])
    return resume_run(folder_of(run, Path(out), "--resume"), study, **options._asdict())


def say_fits(run: Run) -> None:
    """Say of which fitted devices the validation failed."""
    from raidlab.cli.terminal import say
    from raidlab.report.answer import listed
    from raidlab.study.device import fit_warning

    facts = run.facts
    devices = {**facts["devices"], **facts.get("array_devices", {})}
    # A study's device is that of every target that it may be run on.
    ran = set(run.cells["target"])
    sheets = {target: sheet for target, sheet in facts.get("sheets", {}).items() if target in ran}
    # The same device may stand for several targets, or arrays.
    users: dict[tuple[str | None, str], list[str]] = {}
    for user, sheet in {**sheets, **facts.get("array_sheets", {})}.items():
        if (warning := fit_warning("", sheet.get("fit", {}))) is not None:
            users.setdefault((devices[user].get("name"), warning), []).append(user)
    for (name, warning), names in users.items():
        say(f"note: the device{'' if name is None else f' {name!r}'} used by {listed(names)}{warning}")


def say_failure(run: Run) -> None:
    """Say why a run failed, if it did."""
    from raidlab.cli.terminal import say

    if run.facts["failure"]:
        say(f"error: {run.facts['failure']}")


def command(study: str, on: list[str], seed: int | None, quick: bool, destroy: list[str]) -> list[str]:
    """The command that runs the same, wherever its result goes and however it is printed."""
    words = ["raidlab", "run", study]
    words += [word for target in on for word in ("--on", target)]
    words += ["--seed", str(seed)] if seed is not None else []
    words += ["--quick"] if quick else []
    return words + [word for device in destroy for word in ("--destroy", device)]

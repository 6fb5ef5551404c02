"""The application: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from raidlab.cli import (
    agent,
    check,
    device,
    fio,
    layout,
    measure,
    measure_files,
    measure_network,
    measure_streams,
    model,
    plan_io,
    report,
    results,
    run,
    study,
    trace,
    version,
)
from raidlab.cli.room import make_sure_of_room
from raidlab.cli.terminal import mark_output, open_missing, printing, say
from raidlab.errors import (
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    InputError,
    RaidlabError,
)

# Shows the traceback of what should never happen.
TRACEBACK = "RAIDLAB_TRACEBACK"
_NO_MEMORY = ("failed to map segment", "Cannot allocate memory", "out of memory", "memory allocation of")
_NO_PROCESSES = (
    "can't start new thread",
    "Resource temporarily unavailable",
    "ThreadPoolBuildError",
)


class _Commands(TyperGroup):
    """The subcommands, with our own answer where Typer has one for a reader who leaves and for Ctrl-C."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the words; ``--help`` is printed here."""
        with printing():
            return super().make_context(*arguments, **options)
        raise typer.Exit(EXIT_OK)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Run the subcommand."""
        make_sure_of_room()
        try:
            with printing():
                return super().invoke(*arguments, **options)
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        raise typer.Exit(EXIT_OK)


# Typer's own Rich output would import Rich for every `--help`, which costs more than all the rest.
app = typer.Typer(
    name="raidlab",
    cls=_Commands,
    help="Compare arrangements of disks: measure them here, simulate them anywhere, and see what each one costs.",
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("measure", epilog=measure.EXAMPLES)(measure.measure)
app.command("measure-files", epilog=measure_files.EXAMPLES)(measure_files.measure_files)
app.command("measure-streams", epilog=measure_streams.EXAMPLES)(measure_streams.measure_streams)
app.command("measure-network", epilog=measure_network.EXAMPLES)(measure_network.measure_network)
app.command("agent")(agent.agent)
app.command("check", epilog=check.EXAMPLES)(check.check)
app.add_typer(study.app, name="study")
app.add_typer(fio.app, name="fio")
app.add_typer(device.app, name="device")
app.add_typer(trace.app, name="trace")
app.add_typer(model.app, name="model")
app.add_typer(results.app, name="results")
app.command("report")(report.report)
app.command("layout")(layout.layout)
app.command("plan-io", epilog=plan_io.EXAMPLES)(plan_io.plan_io)
app.command("version")(version.version)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    open_missing()
    mark_output()
    try:
        app()
    except Exception as error:
        sys.exit(_explain(error))
    except BaseException as error:
        # What the engine's Rust panics with is no `Exception`; leaving (`SystemExit`) is for the interpreter.
        if type(error).__name__ != "PanicException":
            raise
        sys.exit(_explain(error))
    finally:
        # The exit code is decided; Ctrl-C pressed once more must not replace it while the interpreter tidies up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _lacking(error: BaseException) -> str | None:
    """What this process was refused by the system, in words; None where that is not what is wrong.

    Libraries say it in many ways; Python's own threads and those of Polars (Rust's panics) in none that has a type.
    """
    number, text = getattr(error, "errno", None), str(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or any(word in text for word in _NO_MEMORY):
        return "out of memory (ulimit -v, a container's limit, or the machine's own)"
    if number == errno.EAGAIN or any(word in text for word in _NO_PROCESSES):
        return "no more processes or threads can be started (ulimit -u, or a container's limit)"
    if number == errno.EFBIG:
        return "a file would be larger than it may be (ulimit -f)"
    return None


def _explain(error: BaseException) -> int:
    """Say what went wrong in one line a mistake; returns the exit code."""
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, InputError):
        for problem in error.problems:
            say(f"error: {problem}")
        if len(error.problems) > 1:
            say(f"{len(error.problems)} mistakes; nothing was run")
        return error.exit_code
    if isinstance(error, RaidlabError):
        say(f"error: {error}")
        return error.exit_code
    lacking = _lacking(error)
    if lacking is not None:
        say(f"error: {lacking}; what a run had measured is kept in its folder")
        return EXIT_FAILED
    if isinstance(error, OSError) and error.strerror:
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        say(f"error: {place}{error.strerror}")
        return EXIT_FAILED
    told = " ".join(str(error).split())
    say(
        f"internal error: {type(error).__name__}: {told}; please report it, with what {TRACEBACK}=1 shows "
        "of the same command"
    )
    return EXIT_INTERNAL

"""The application: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from raidlab import log
from raidlab.cli import (
    check,
    device,
    fio,
    layout,
    margins,
    measure,
    model,
    plan_io,
    predict,
    probe,
    recommend,
    report,
    results,
    run,
    study,
    trace,
    version,
)
from raidlab.cli.room import make_sure_of_room
from raidlab.cli.terminal import mark_output, open_missing, printing, say, settle
from raidlab.cli.usage import mistake_of
from raidlab.errors import (
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    InputError,
    RaidlabError,
)
from raidlab.reading import is_unicode

# Of the help screen: where the meanings begin, and what the names have.
_HELP_COLUMN, _NAME_WIDTH = 14, 8
# Shows the traceback of what should never happen.
TRACEBACK = "RAIDLAB_TRACEBACK"
_NO_MEMORY = ("failed to map segment", "Cannot allocate memory", "out of memory", "memory allocation of")
_NO_PROCESSES = (
    "can't start new thread",
    "Resource temporarily unavailable",
    "ThreadPoolBuildError",
)


# The first help screen.
_SECTIONS = {
    "Decide": ("recommend",),
    "Run": ("run", "study", "fio"),
    "Measure": ("measure", "predict", "probe", "check"),
    "Understand": ("margins", "layout", "plan-io", "model", "device", "trace"),
    "Keep": ("results", "report", "version"),
}
# What was once spelt otherwise.
_MOVED = {
    "measure-files": "raidlab measure files",
    "measure-streams": "raidlab measure streams",
    "measure-network": "raidlab measure network",
    "agent": "dask worker SCHEDULER",
}
# Of an agent, whose place a cluster's workers have taken; by command.
_MOVED_OPTIONS = {"run": {"--key"}, "measure": {"--key", "--lab"}}


def _check_unicode(words: Sequence[str]) -> None:
    """Refuse names that are no Unicode, of the current directory too: they cannot be kept in a run, which is JSON."""
    try:
        here = str(Path.cwd())
    except OSError as error:
        message = f"cannot be found: {error.strerror}"
        raise InputError.one("the current directory", message, accepted="one that is there") from None
    for place, word in (("the current directory", here), *zip(("raidlab", *words), words, strict=False)):
        where = place if place.startswith(("-", "the ")) else ""
        if not is_unicode(word):
            raise InputError.one(where, "is not UTF-8", value=f"'{word}'", accepted="a name in UTF-8")
        if not is_unicode(os.path.realpath(word)):
            message = "leads to a name that is not UTF-8"
            raise InputError.one(where, message, value=f"'{word}'", accepted="a name in UTF-8")


@contextmanager
def _plain_mistakes() -> Iterator[None]:
    """Have what the parser of commands refuses said like any other mistake."""
    try:
        yield
    except Exception as error:
        mistake = mistake_of(error)
        if mistake is None:
            raise
        raise mistake from error


@contextmanager
def _interrupted() -> Iterator[None]:
    """Have Ctrl-C said in a word, and end the program with its own code."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(EXIT_INTERRUPTED) from None


class _Commands(TyperGroup):
    """The subcommands, with our own answer where Typer has one for a reader who leaves and for Ctrl-C."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The subcommands in the order of the help screen."""
        return [name for names in _SECTIONS.values() for name in names]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the name in the line of usage."""
        return ["COMMAND ..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The subcommands first, in their sections; then the options."""
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                room = formatter.width - _HELP_COLUMN
                rows = [(f"{name:<{_NAME_WIDTH}}", self.commands[name].get_short_help_str(room)) for name in names]
                formatter.write_dl(rows)
        options = [item.get_help_record(ctx) for item in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in options if record is not None])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the subcommand; one that was renamed is an error that says how it is spelt now."""
        if args and args[0] in _MOVED and not ctx.resilient_parsing:
            raise InputError.one("raidlab", f"'{args[0]}' is now '{_MOVED[args[0]]}'")
        for word in args[1:] if not ctx.resilient_parsing else ():
            if word.partition("=")[0] in _MOVED_OPTIONS.get(args[0], ()):
                message = "is no more: machines are workers of a Dask cluster now, and not agents"
                raise InputError.one(word, message, accepted="--cluster ADDRESS")
        return super().resolve_command(ctx, args)

    def make_context(self, info_name: str | None, args: list[str], *arguments: Any, **options: Any) -> Any:
        """Read the words; ``--help`` is printed here."""
        with _interrupted(), printing(), _plain_mistakes():
            _check_unicode(args)
            return super().make_context(info_name, args, *arguments, **options)
        raise typer.Exit(EXIT_OK)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Run the subcommand."""
        make_sure_of_room()
        log.check()
        with _interrupted(), printing(), _plain_mistakes():
            return super().invoke(*arguments, **options)
        raise typer.Exit(EXIT_OK)


# Typer's own Rich output would import Rich for every `--help`, which costs more than all the rest.
app = typer.Typer(
    name="raidlab",
    cls=_Commands,
    help="Compare arrangements of disks: measure them here, simulate them anywhere, and see what each one costs.",
    epilog="Exit codes: " + ", ".join(f"{code} {meaning.split(': ')[0]}" for code, meaning in EXIT_CODES.items()) + ".",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("recommend", epilog=recommend.EXAMPLES, short_help="Which array to build, how sure that is, and why.")(
    recommend.recommend
)
app.add_typer(study.app, name="study", short_help="Studies: list, show, fit, hold against what they published.")
app.add_typer(fio.app, name="fio", short_help="fio's job files: run them, or write them from studies.")
app.add_typer(measure.app, name="measure", short_help="How fast are requests, files, streams or a network here?")
app.command("predict", epilog=predict.EXAMPLES, short_help="How fast should an array that stands be, and is it?")(
    predict.predict
)
app.command("probe", epilog=probe.EXAMPLES, short_help="Which array is inside this box, by timing alone?")(probe.probe)
app.command("check", epilog=check.EXAMPLES, short_help="What can be said of targets before they are measured?")(
    check.check
)
app.add_typer(model.app, name="model", short_help="Closed forms: what theory says, against the simulator.")
app.add_typer(device.app, name="device", short_help="Device models: list, show, import, hold against a trace.")
app.add_typer(trace.app, name="trace", short_help="Traces of requests: what one holds, and other formats.")
app.add_typer(results.app, name="results", short_help="List, show, query, compare and export what was run.")
app.command("margins", epilog=margins.EXAMPLES, short_help="From where on would another array be best?")(
    margins.margins
)
app.command("report", short_help="Write the page of a run again.")(report.report)
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
        settle()


def _lacking(error: BaseException) -> str | None:
    """What this process was refused by the system, in words; None where that is not what is wrong.

    Libraries say it in many ways; Python's own threads and those of Polars (Rust's panics) in none that has a type.
    """
    number, text = getattr(error, "errno", None), str(error)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or any(word in text for word in _NO_MEMORY):
        return "out of memory (ulimit -v, a container's limit, or the machine's own)"
    if number == errno.EAGAIN or any(word in text for word in _NO_PROCESSES):
        return "no more processes or threads can be started (ulimit -u, or a container's limit)"
    if number in (errno.EMFILE, errno.ENFILE):
        return "no more files can be opened (ulimit -n, or the machine's own limit)"
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

"""The application: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import sys

import typer

from raidlab.cli import fio, layout, measure, plan_io, report, run, study, version
from raidlab.errors import EXIT_CODES, EXIT_FAILED, EXIT_INTERRUPTED, InputError, RaidlabError

# Typer's own Rich output would import Rich for every `--help`, which costs more than all the rest.
app = typer.Typer(
    name="raidlab",
    help="Compare arrangements of disks: measure them here, simulate them anywhere, and see what each one costs.",
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("measure", epilog=measure.EXAMPLES)(measure.measure)
app.add_typer(study.app, name="study")
app.add_typer(fio.app, name="fio")
app.command("report")(report.report)
app.command("layout")(layout.layout)
app.command("plan-io", epilog=plan_io.EXAMPLES)(plan_io.plan_io)
app.command("version")(version.version)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    try:
        app()
    except InputError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        if len(error.problems) > 1:
            print(f"{len(error.problems)} mistakes; nothing was run", file=sys.stderr)
        sys.exit(error.exit_code)
    except RaidlabError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted; nothing had been measured yet", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); that is its right.
        sys.stderr.close()
        sys.exit(EXIT_FAILED)

"""``raidlab results``: the runs there are, and what can be asked of them."""

from __future__ import annotations

import decimal
import json
import math
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from raidlab.cli import compare
from raidlab.cli.endings import code_of
from raidlab.cli.options import Json, Out, RunName, argument, option
from raidlab.cli.run_folders import RUNS, folder_of, runs_in
from raidlab.cli.terminal import printing, say, writing
from raidlab.errors import InputError

app = typer.Typer(help="List, show, query, compare and export what was run.", no_args_is_help=True)

_SELECT = 'a SELECT over the run\'s tables; the columns "array", "group" and "check" want quotes'
EXAMPLES = """\b
Examples:
  raidlab results query last 'SELECT "array", workload, sum(all_bytes) FROM cells GROUP BY ALL'
  raidlab results export last --format csv --to figures/"""


@app.command("list")
def list_runs(out: Out = RUNS, as_json: Json = False) -> None:
    """List the runs, the oldest first."""
    rows = list(runs_in(out))
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    if not rows:
        print(f"no runs in {out}/")
    for row in rows:
        print(f"{row['run']:<38} {row['started'][:16]:<16} {row['status']:<11} {row['targets']}")


@app.command("show")
def show(run: RunName, out: Out = RUNS, as_json: Json = False) -> None:
    """Print a run as a report: the answer, plots, tables, checks; the exit code is 3 if a check says INVALID."""
    from raidlab.analysis.checks import run_checks
    from raidlab.api import analyse, choice_of, published_again, study_of, why_left_out
    from raidlab.cli.output import print_json
    from raidlab.cli.show import print_report
    from raidlab.published.rules import choice_text

    analysis = analyse(folder_of(run, out))
    findings = run_checks(analysis)
    with printing():
        if as_json:
            print_json(analysis, findings)
        else:
            if left_out := why_left_out(analysis.run):
                say(left_out)
            print_report(analysis, findings, published_again(analysis, keep=False))
            study = study_of(analysis.run)
            choice = choice_of(analysis, study) if study is not None else None
            if choice is not None:
                print(f"\n{choice_text(choice)}", end="")
    raise typer.Exit(code_of(findings))


@app.command("query", epilog=EXAMPLES)
def query(
    run: RunName,
    sql: Annotated[str, argument("SQL", "DuckDB's SQL over the run's tables.")],
    out: Out = RUNS,
    as_json: Json = False,
) -> None:
    """Ask the tables of a run with SQL: cells, histograms, members, stations, snapshots, holds and others.

    The table findings is worked out: what all checks say, as results show does. Checks has the engine's own alone.
    """
    import duckdb

    from raidlab.analysis.checks.run_with_findings import load_run

    try:
        frame = load_run(folder_of(run, out)).sql(sql)
    except duckdb.Error as error:
        # Behind an empty line it draws where in the query it stopped.
        said = " ".join(takewhile(str.strip, str(error).splitlines()))
        raise InputError.one("SQL", said, accepted=_SELECT) from None
    if as_json:
        print(json.dumps(_finite(frame.to_dicts()), indent=2, default=_plain, allow_nan=False))
    else:
        _print_frame(frame)


app.command("compare", epilog=compare.EXAMPLES)(compare.compare)


@app.command("export", epilog=EXAMPLES)
def export(
    run: RunName,
    form: Annotated[str, option("FORMAT", "csv, parquet, fio_json, hlog or prometheus.", "--format")] = "csv",
    to: Annotated[Path | None, option("DIR", "Where to; the run's folder by default.")] = None,
    out: Out = RUNS,
) -> None:
    """Write a run for other tools; the exit code is 3 if a check says INVALID."""
    from raidlab.analysis.checks import run_checks
    from raidlab.api import analyse
    from raidlab.directory import Directory
    from raidlab.report.export import EXPORTS
    from raidlab.study.find import did_you_mean

    if form not in EXPORTS:
        message = f"is no format{did_you_mean(form, EXPORTS)}"
        raise InputError.one("--format", message, value=f"'{form}'", accepted=", ".join(EXPORTS))
    folder = folder_of(run, out)
    target = to if to is not None else folder / "export" / form
    analysis = analyse(folder)
    with writing("--to", target), ExitStack() as opened:
        if to is None:
            place = opened.enter_context(analysis.run.directory())
            for name in ("export", form):
                place = opened.enter_context(place.child(name, make=True))
        else:
            target.mkdir(parents=True, exist_ok=True)
            place = opened.enter_context(Directory.open(target))
        written = EXPORTS[form](analysis, place)
    for file in written:
        print(file)
    raise typer.Exit(code_of(run_checks(analysis)))


def _finite(value: Any) -> Any:
    """An answer without infinities and what is no number, of which JSON has neither; in lists and structures, too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any) -> float | str:
    """What JSON has no form of its own for: SQL's decimals are numbers, all else is text."""
    return float(value) if isinstance(value, decimal.Decimal) else str(value)


def _print_frame(frame: Any) -> None:
    """A frame as plain columns, numbers to the right."""
    texts = [[_text(value) for value in row] for row in frame.iter_rows()]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(frame.columns)]
    numeric = [dtype.is_numeric() for dtype in frame.dtypes]

    def line(cells: list[str]) -> str:
        padded = (
            f"{cell:>{w}}" if right else f"{cell:<{w}}" for cell, w, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    print(line(list(frame.columns)))
    for row in texts:
        print(line(row))


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

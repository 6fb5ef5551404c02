"""``raidlab study``: the studies there are, what one asks, and how it compares with what it published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of
from raidlab.cli.options import Json, Prices, Study, argument, flag, number, option
from raidlab.cli.run_folders import folder_of
from raidlab.cli.terminal import printing, say
from raidlab.errors import EXIT_BAD_INPUT, InputError

if TYPE_CHECKING:
    from raidlab.results import Run
    from raidlab.study import LoadedStudy

app = typer.Typer(
    help="List studies, show what one asks, compare one with what it published.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_studies() -> None:
    """List the studies that can be run by name."""
    from raidlab.cli.output import print_studies

    print_studies()


@app.command("show")
def show(
    study: Study,
    all_rows: Annotated[bool, flag("--all", "List every array, workload and parameter of a study of many.")] = False,
) -> None:
    """Check a study file and show how many cells it runs, its loads, arrays and workloads."""
    from raidlab.api import check_figures
    from raidlab.cli.comparison import print_parameters
    from raidlab.cli.output import print_study
    from raidlab.run.execute import check_study
    from raidlab.study import load_study

    loaded = load_study(study)
    check_study(loaded)
    check_figures(loaded)
    print_study(loaded, all_rows=all_rows)
    # Today's disks may stand behind the study's own hardware.
    for hardware in {one.name: one for one in loaded.hardware.values()}.values():
        if hardware.parameters:
            print_parameters(hardware.name, hardware.parameters, all_rows=all_rows)


@app.command("compare")
def compare(
    study: Study,
    run: Annotated[
        str | None, option("RUN", "A run folder, its name in --out, or 'last'; the study is run first when left out.")
    ] = None,
    out: Annotated[str, option("DIR", "Where run folders are.")] = "runs",
    seed: Annotated[int | None, number("The root seed; the study's by default.")] = None,
    quick: Annotated[bool, flag("--quick", "A short run: wider intervals.")] = False,
    all_rows: Annotated[bool, flag("--all", "List every figure and claim, and what is not evaluated.")] = False,
    details: Annotated[
        bool, flag("--details", "Also print the expression of each claim and conclusion, and the figures in it.")
    ] = False,
) -> None:
    """Set every published figure of a study beside what its own hardware gives in the simulator.

    Prints the errors of each table, what misses, and the study's claims and conclusions in words. Every figure is in
    comparison.csv, which it writes into the run's folder; the report is written again where that has changed. The exit
    code is 3 if a check says INVALID of the run.
    """
    import sys
    from pathlib import Path

    from raidlab.analysis.checks import run_checks
    from raidlab.api import analyse, choice_of, is_page_current, published_beside, run_study, sheet_of
    from raidlab.cli.comparison import print_comparison
    from raidlab.published.compare import FILE
    from raidlab.published.quantities import check_measures
    from raidlab.report import PAGE, write_page
    from raidlab.results import load_run
    from raidlab.run.progress import progress_on
    from raidlab.study import load_study
    from raidlab.study.mapping import load_mapping

    loaded = load_study(study)
    # What cannot be compared is not run first.
    mapping = load_mapping(loaded.file)
    check_measures(loaded.file.parent)
    target = mapping.quantities.target
    if run is not None:
        given = "--seed" if seed is not None else "--quick" if quick else ""
        if given:
            raise InputError.one(given, "says how the study is run, and --run names a run", accepted="one of the two")
        result = load_run(folder_of(run, Path(out), "--run"))
        _check_is_of(result, loaded)
    else:
        result = run_study(loaded, on=[target], out=out, seed=seed, quick=quick, progress=progress_on(sys.stderr))
    analysis = analyse(result)
    comparison = published_beside(analysis, loaded)
    if comparison is None:
        targets = ", ".join(dict.fromkeys(result.cells["target"]))
        raise InputError.one(
            "--run",
            f"has no figures of '{target}', which quantities.toml of the study compares",
            value=f"a run on {targets or 'nothing'}",
            accepted=f"a run on {target} or on real or emulated members; or conclusions ([conclusion.NAME]), which are "
            "tested on every target",
            file=str(result.folder),
        )
    with printing():
        print_comparison(comparison, all_rows=all_rows, details=details)
    if is_page_current(result):
        say(f"report, with the same comparison: {result.folder / PAGE} (raidlab report writes it again)")
    else:
        page = write_page(analysis, comparison, choice_of(analysis, loaded), sheet_of(analysis, loaded))
        say(f"written: {result.folder / FILE}; report: {page}")
    if comparison.errors:
        raise typer.Exit(EXIT_BAD_INPUT)
    findings = run_checks(analysis)
    if (code := code_of(findings)) != 0:
        say("a check says INVALID of this run: do not use its figures (raidlab results show has the evidence)")
    raise typer.Exit(code)


@app.command("fit")
def fit(
    study: Study,
    write: Annotated[bool, flag("--write", "Write what was found into the files of the study's hardware.")] = False,
    leave_one_out: Annotated[
        bool,
        flag("--leave-one-out", "Also leave each table out in turn, and print what the rest alone predicts of it."),
    ] = False,
) -> None:
    """Find the fitted parameters of a study's own hardware anew, from the figures it published.

    Prints each parameter before and after, the errors of the figures it was held to, and those of figures left out.
    """
    from raidlab.cli.comparison import print_fit
    from raidlab.published.compare import write_left_out
    from raidlab.run.fit import fit_study, write_values
    from raidlab.study import load_study
    from raidlab.study.mapping import load_mapping

    loaded = load_study(study)
    mapping = load_mapping(loaded.file)
    found = fit_study(loaded, mapping, leave_one_out=leave_one_out, note=say)
    with printing():
        print_fit(found)
    if write:
        for file in write_values(loaded, mapping.quantities.target, found.values):
            say(f"written: {file}")
        if leave_one_out:
            rows = [row for group in found.left_out for row in group.rows]
            say(f"written: {write_left_out(rows, loaded.file.parent)}")


@app.command("sheet")
def sheet(
    study: Study,
    run: Annotated[
        list[str],
        option(
            "RUN",
            "The folder of a quiet run, which decides. Several runs, one a box: NAME=RUN, or NAME=RUN:ARRAY for "
            "one of its arrays.",
        ),
    ],
    loaded: Annotated[
        list[str] | None, option("RUN", "A run under load, shown beside; of several boxes NAME=RUN.")
    ] = None,
    facts: Annotated[str | None, option("FILE", "What is entered by hand about each box (TOML).")] = None,
    network: Annotated[
        list[str] | None, option("BOX=FILE", "What `raidlab measure network --json` printed of a box.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the evaluation sheet of each box of an acceptance test, and all boxes side by side.

    What the tests require is in the study's sheet.toml.
    """
    from pathlib import Path

    from raidlab.cli.sheet_runs import boxes_named
    from raidlab.published.scorecard import load_facts, load_network, load_plan, make_sheet, sheet_json, sheet_markdown
    from raidlab.study import load_study

    plan = load_plan(load_study(study).file)
    entered = load_facts(Path(facts)) if facts is not None else {}
    steps = dict(load_network(text) for text in network or [])
    made = make_sheet(plan, boxes_named(run, loaded or []), entered, steps)
    with printing():
        print(sheet_json(made) if as_json else sheet_markdown(made), end="")


@app.command("choice")
def choice(
    study: Study,
    run: Annotated[str, option("RUN", "A run folder; its report is written again.")],
    prices: Prices = None,
    of: Annotated[
        list[str] | None,
        option(
            "CANDIDATE=RUN",
            "Take a candidate's figures from another run, such as p6w=runs/on-my-raid5; the array there, where it "
            "is not the only one, stands behind a colon.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a study's rules of choice with the figures of a run, and with your prices.

    Candidates, figures and rules are in the study's choice.toml.
    """
    from raidlab.api import analyse, choice_of, others_of, published_beside, sheet_of, with_prices
    from raidlab.published.rules import choice_json, choice_text, kept_prices, load_choice, make_choice
    from raidlab.report import write_page
    from raidlab.results import load_run
    from raidlab.study import load_study

    loaded = load_study(study)
    plan = load_choice(loaded.file)
    result = load_run(run)
    if not of:
        _check_is_of(result, loaded)
    if prices is not None:
        with_prices(result, loaded, prices)
    analysis = analyse(result)
    made = make_choice(plan, analysis, kept_prices(result.folder, plan), others_of(plan, of or []))
    with printing():
        print(choice_json(made) if as_json else choice_text(made), end="\n" if as_json else "")
    if not of and choice_of(analysis, loaded) is not None:
        page = write_page(analysis, published_beside(analysis, loaded), made, sheet_of(analysis, loaded))
        say(f"report: {page}")


def _check_is_of(result: Run, loaded: LoadedStudy) -> None:
    """Its report would be written again, as another study's."""
    if result.study.name != loaded.study.name:
        raise InputError.one(
            "--run",
            f"is a run of '{result.study.name}'",
            value=f"'{result.folder}'",
            accepted=f"a run of '{loaded.study.name}'",
        )


@app.command("sizes")
def sizes(
    directory: Annotated[str, argument("DIR", "A directory; files below it are counted, not opened.")],
    classes: Annotated[int, number("How many sizes the table has.", 1, 1000)] = 10,
) -> None:
    """Print the sizes of the files below a directory as a line for a study of whole files.

    Each class stands for the same number of files, by its mean.
    """
    from pathlib import Path

    from raidlab.study.scan import scan_sizes

    found = scan_sizes(Path(directory), classes)
    print(found.toml())
    mean = found.total_bytes / found.files
    empty = f"; {found.empty} empty ones left out" if found.empty else ""
    say(f"{found.files:,} files, {found.total_bytes / 1e6:,.1f} MB, mean {mean:,.0f} bytes{empty}")

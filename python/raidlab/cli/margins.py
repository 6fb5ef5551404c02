"""``raidlab margins``: from where on another array would be first, found by simulation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from raidlab.cli.options import Json, Out, RunName, argument, complete_study, number, option
from raidlab.cli.run_folders import RUNS, folder_of

EXAMPLES = """\b
Examples:
  raidlab margins last
  raidlab margins last --along read,chunk --workload oltp
  raidlab margins runs/my-study-2026-11-23-001 my-study.toml --json"""


def margins(
    run: RunName,
    study: Annotated[
        str | None,
        argument("STUDY", "Its study, if it is not where it was.", autocompletion=complete_study, show_default=False),
    ] = None,
    along: Annotated[
        str, option("AXES", "What is moved: read, chunk, response, depth; several with commas between.")
    ] = "read,chunk,response,depth",
    workload: Annotated[
        list[str] | None, option("NAME", "A workload whose best is looked at; may be repeated. All by default.")
    ] = None,
    repeats: Annotated[int, number("How often each place is simulated.", 6, 1000)] = 6,
    out: Out = RUNS,
    as_json: Json = False,
) -> None:
    """Find by simulation what would change each best of a run, and show it beside what the run tells by itself.

    First and second of each answer are simulated with the same seeds, and where they are level is bisected to 2 % of
    the axis. Only modelled disks are asked: nothing is ever measured. What is found is kept in the run's folder,
    where reports have it.
    """
    from raidlab.analysis.margins import margins_json
    from raidlab.api import simulate_margins, write_report
    from raidlab.cli.terminal import printing
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on
    from raidlab.wrapping import wrapped

    stop = StopFlag()
    with catching_signals(stop):
        axes = [word.strip() for word in along.split(",")]
        found = simulate_margins(
            folder_of(run, out),
            study,
            along=axes,
            workloads=workload or [],
            repeats=repeats,
            progress=progress_on(sys.stderr),
            stop=stop,
        )
    page = write_report(folder_of(run, Path(out)))
    with printing():
        if as_json:
            print(margins_json(found))
            return
        for one in found:
            print(f"{one.target}, {one.workload}")
            for turn in one.turns:
                said = turn.condition("their" if one.level else "its")
                for line in wrapped(said, indent=4, hanging=6):
                    print(line)
            for line in wrapped(one.sentence, indent=2) if one.sentence else ():
                print(line)
    print(f"report: {page}", file=sys.stderr)

"""``raidlab predict``: how fast should this array be, and is it?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import exit_code
from raidlab.cli.options import argument, complete_study, flag, number, option

if TYPE_CHECKING:
    from raidlab.analysis.checks import Finding
    from raidlab.analysis.metrics import Analysis

EXAMPLES = """\b
Examples:
  raidlab predict /dev/md0 --device hdd-nearline-4tb
  raidlab predict /mnt/pool/ --device ssd-sata --study my-study.toml
  raidlab predict /dev/sda --device hdd-nearline-4tb --tree 'raid6(8, chunk=256KiB)'"""


def complete_device(incomplete: str) -> list[str]:
    """Names of device models, for the shell."""
    from raidlab.study.find import device_names

    return [name for name in device_names() if name.startswith(incomplete)]


def predict(
    volume: Annotated[
        str,
        argument(
            "VOLUME",
            "The array: its block device (read only, unless --destroy names it), a directory of its file system, "
            "or a file there.",
        ),
    ],
    device: Annotated[
        str,
        option(
            "DEVICE",
            "The model of its disks: a name of `raidlab device list`, or the path of a device file.",
            autocompletion=complete_device,
        ),
    ],
    study: Annotated[
        str,
        option(
            "STUDY",
            "Whose workloads and loads are run, on the array and in the simulator.",
            autocompletion=complete_study,
        ),
    ] = "slow-box",
    tree: Annotated[
        str | None,
        option("TREE", "What the array is made of, where the kernel cannot tell: a controller's volume."),
    ] = None,
    out: Annotated[str, option("DIR", "Where the run folder is made, and its study beside it.")] = "runs",
    seed: Annotated[int | None, number("The root seed; the study's by default.")] = None,
    quick: Annotated[bool, flag("--quick", "A short run: for a first look, not for a decision.")] = False,
    destroy: Annotated[list[str] | None, option("DEVICE", "The volume, if it may be overwritten.")] = None,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of tables.")] = False,
) -> None:
    """Predict how fast an array should be, measure it, and say where the two differ.

    What the array is made of is read from the kernel; its twin, the same tree over modelled disks, is simulated under
    the same work. The verdict is by the error that the model's file states of itself.
    """
    from raidlab.analysis.checks import run_checks
    from raidlab.api import analyse
    from raidlab.api import predict as predicted
    from raidlab.cli.run import say_failure, say_fits
    from raidlab.cli.terminal import printing, say
    from raidlab.report import write_page
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on

    stop = StopFlag()
    with catching_signals(stop):
        run = predicted(
            volume,
            device,
            study,
            tree=tree,
            out=out,
            seed=seed,
            quick=quick,
            destroy=destroy or [],
            progress=progress_on(sys.stderr),
            stop=stop,
        )
        if run.cells.is_empty():
            say(f"{run.facts['status']} before anything was measured; {run.folder}")
            say_failure(run)
            raise typer.Exit(exit_code(run, []))
        analysis = analyse(run)
        findings = run_checks(analysis)
        page = write_page(analysis)
        with printing():
            if as_json:
                _print_json(analysis, findings)
            else:
                _print(analysis, findings)
    say(f"report: {page}")
    say_fits(run)
    say_failure(run)
    raise typer.Exit(exit_code(run, findings))


def _print_json(analysis: Analysis, findings: list[Finding]) -> None:
    from raidlab.analysis.prediction import predictions_of
    from raidlab.analysis.prediction.compare import documents_of

    document = {
        "run": str(analysis.run.folder),
        "status": analysis.run.facts["status"],
        "predictions": documents_of(predictions_of(analysis, findings)),
        "checks": [finding.row() for finding in findings],
    }
    print(json.dumps(document, indent=2))


def _print(analysis: Analysis, findings: list[Finding]) -> None:
    from raidlab.cli.output import print_findings, print_predictions, print_standing
    from raidlab.cli.terminal import console

    out = console()
    print_standing(out, analysis)
    print_findings(out, findings)
    print_predictions(out, analysis, findings)

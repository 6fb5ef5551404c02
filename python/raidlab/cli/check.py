"""``raidlab check``: what can be said of targets before anything is measured on them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of
from raidlab.cli.measure.requests import TARGET_HELP, complete_target
from raidlab.cli.options import Json, argument, option
from raidlab.cli.terminal import console, printing

if TYPE_CHECKING:
    from raidlab.analysis.checks import Finding
    from raidlab.results.facts import Member

EXAMPLES = """\b
Examples:
  raidlab check /dev/nvme0n1
  raidlab check /mnt/a/ /mnt/b/
  raidlab check 'raid0(2)@/mnt/a/,/mnt/b/'
  raidlab check /dev/sdx --destroy /dev/sdx
  raidlab check data.img --json"""


def check(
    targets: Annotated[list[str], argument("TARGET...", TARGET_HELP, autocompletion=complete_target)],
    file_size: Annotated[str, option("SIZE", "The size of the file made in each directory.")] = "128MiB",
    destroy: Annotated[
        list[str] | None, option("DEVICE", "A block device among the targets that may be overwritten.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check targets, without a study: caches, compression, holes, limits, other load, and how they are set.

    Devices and files are only read; what is written, to see whether content matters, goes into a directory, or onto a
    device that --destroy names. INVALID means: figures of this target, as it is, would say nothing of it.
    """
    from raidlab.analysis.checks import check_targets
    from raidlab.measure.trials import examine
    from raidlab.measure.words import parse_with
    from raidlab.run.progress import progress_on
    from raidlab.study.units import BYTES_ACCEPTED, parse_bytes

    size = parse_with(parse_bytes, "--file-size", file_size, BYTES_ACCEPTED)
    members, machine = examine(targets, destroy or [], file_bytes=size, progress=progress_on(sys.stderr))
    findings = check_targets(members, machine)
    with printing():
        if as_json:
            document = {"targets": members, "machine": machine, "checks": [finding.row() for finding in findings]}
            print(json.dumps(document, indent=2, default=str))
        else:
            _print(findings, members)
    raise typer.Exit(code_of(findings))


def _print(findings: list[Finding], members: list[Member]) -> None:
    """A paragraph a target; what passed is said too, for it holds figures that nobody has seen yet."""
    from rich.text import Text

    from raidlab.cli.output import VERDICT_STYLE

    out = console()
    for target in dict.fromkeys(finding.target for finding in findings):
        title = {"machine": "this machine", "all": "all targets together"}.get(target, target)
        out.print(Text(f"\n{title}", style="bold"))
        for finding in findings:
            if finding.target == target:
                text = Text(f"{finding.verdict} {finding.check}: ", style=VERDICT_STYLE[finding.verdict])
                out.print(text.append(Text(f"{finding.evidence} {finding.remedy}".strip(), style="default")))
    for member in members:
        for trial, reason in member.get("untried", {}).items():
            out.print(Text(f"{member.get('name')}: {trial} could not be tried: {reason}", style="dim"))

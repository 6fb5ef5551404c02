"""``raidlab probe``: what is inside this box?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of_status
from raidlab.cli.options import Json, argument, number, option
from raidlab.cli.terminal import console, say, writing
from raidlab.errors import InputError, OutputError

if TYPE_CHECKING:
    from raidlab.measure.probe import ProbeAnswer, ProbeRequest
    from raidlab.study.device import DeviceModel

EXAMPLES = """\b
Examples:
  raidlab probe /dev/md0
  raidlab probe /dev/md0 --member ./my-disk.toml --out .
  raidlab probe --sim 'raid5(5, chunk=64KiB)' --member hdd-7200"""


def probe(
    target: Annotated[str | None, argument("[TARGET]", "A block device or a file; it is only read.")] = None,
    sim: Annotated[
        str | None, option("TREE", "In place of TARGET: a simulated array, to see what a probe makes of it.")
    ] = None,
    device: Annotated[
        str | None,
        option("DEVICE", "With --sim, and needed there: what its members are; by default those of --member."),
    ] = None,
    member: Annotated[str | None, option("DEVICE", "What the members are, a device's name or file; if known.")] = None,
    members: Annotated[str, option("N-N", "From how many members to how many.")] = "2-12",
    destroy: Annotated[
        str | None,
        option("DEVICE", "The device once more, if it may be overwritten: writes are asked too. With --sim: 'sim'."),
    ] = None,
    budget: Annotated[
        str, option("TIME", "How long to measure a target at most; a simulated one takes its time.")
    ] = "10min",
    out: Annotated[
        str | None, option("DIR", "Where a picture of the tests goes, as SVG and PNG.", "--out", "-o")
    ] = None,
    seed: Annotated[int, number("The root of all randomness.", 0, 2**40)] = 1,
    as_json: Json = False,
) -> None:
    """Name the array inside a box, from timing alone.

    Reads at multiples of chosen periods keep one member busy or all of them, as its level, its members and its chunk
    would have it. Each array that raidlab knows is simulated under the same tests; what explains them is named with its
    probability, and what timing cannot tell apart is said together with what would. A device is only read unless
    --destroy names it.
    """
    import sys
    import tempfile

    from raidlab.cli.trees import parse_tree
    from raidlab.measure.probe import ProbeRequest, probe_simulated, probe_target
    from raidlab.measure.words import parse_with
    from raidlab.run.interrupt import StopFlag
    from raidlab.run.progress import progress_on
    from raidlab.study.device import fit_warning
    from raidlab.study.units import TIME_ACCEPTED, parse_time_ns

    if (target is None) == (sim is None):
        raise InputError.one("TARGET, --sim", "exactly one of them is needed", accepted="raidlab probe /dev/md0")
    if device is not None and sim is None:
        raise InputError.one("--device", "says of what a simulated array is", accepted="it beside --sim, or --member")
    if sim is not None and destroy not in (None, "sim"):
        raise InputError.one("--destroy", "is not what is probed", value=f"'{destroy}'", accepted="sim, beside --sim")
    asked = ProbeRequest(
        title=target or sim or "",
        members=_range(members),
        member=None if member is None else _device("--member", member),
        writes=destroy is not None,
        budget_ns=parse_with(parse_time_ns, "--budget", budget, TIME_ACCEPTED),
        seed=seed,
    )
    if out is not None:
        # A probe takes minutes; what hinders its picture is said before.
        with writing("--out", out):
            Path(out).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=out).close()
    progress, stop = progress_on(sys.stderr), StopFlag()
    try:
        if sim is not None:
            answer = probe_simulated(json.loads(parse_tree(sim)), _simulated_device(device, asked), asked, progress)
        else:
            answer = probe_target(asked.title, asked, [destroy] if destroy else [], progress=progress, stop=stop)
    except KeyboardInterrupt:
        say("interrupted: half a probe says nothing")
        raise typer.Exit(code_of_status("interrupted", stop.signal_name)) from None
    _show(answer, out, as_json=as_json)
    if asked.member is not None and (warning := fit_warning(asked.member.name, asked.member.fit)) is not None:
        say(f"note: {warning}")


def _range(text: str) -> tuple[int, int]:
    from raidlab.measure.probe import LEAST_MEMBERS, MOST_MEMBERS

    low, _, high = text.partition("-")
    if low.isdigit() and (high or low).isdigit():
        least, most = int(low), int(high or low)
        if LEAST_MEMBERS <= least <= most <= MOST_MEMBERS:
            return least, most
    accepted = f"such as 4 or 3-8, from {LEAST_MEMBERS} to {MOST_MEMBERS}"
    raise InputError.one("--members", "is no range of members", value=f"'{text}'", accepted=accepted)


def _device(flag: str, word: str) -> DeviceModel:
    from raidlab.devices.catalogue import load

    try:
        return load(word)
    except InputError as error:
        if error.problems[0].where != "device":
            raise
        raise InputError([replace(error.problems[0], where=flag)]) from None


def _simulated_device(word: str | None, asked: ProbeRequest) -> DeviceModel:
    if word is not None:
        return _device("--device", word)
    if asked.member is None:
        accepted = "--device DEVICE, or --member DEVICE if the probe is to know them"
        raise InputError.one("--sim", "has no members", accepted=accepted)
    return asked.member


def _show(answer: ProbeAnswer, out: str | None, *, as_json: bool) -> None:
    from raidlab.measure.probe.words import as_document

    figures, failed = [], None
    try:
        figures = _drawn(answer, out)
    except OSError as error:
        # What took minutes is said all the same.
        failed = OutputError(f"--out: '{out}': cannot be written: {error.strerror}")
    if as_json:
        print(json.dumps(as_document(answer) | {"figures": [str(figure) for figure in figures]}, indent=2))
    else:
        _print(answer)
        for figure in figures:
            console().print(f"figure  {figure}", soft_wrap=True)
        for note in answer.notes:
            say(f"note: {note}")
    if failed is not None:
        raise failed


def _drawn(answer: ProbeAnswer, out: str | None) -> list[Path]:
    if out is None or not answer.lines:
        return []
    from raidlab.directory import Directory
    from raidlab.measure.probe.picture import picture

    with Directory.open(Path(out)) as folder:
        return picture(answer).save(folder)


def _print(answer: ProbeAnswer) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table
    from raidlab.measure.probe.words import candidate_rows, measured_words, sentence

    screen = console()
    screen.print(Text(f"{answer.title}: {measured_words(answer)}", style="bold"))
    screen.print(Text(sentence(answer)))
    if answer.classes:
        rows = list(candidate_rows(answer))
        screen.print(plain_table("", ("likely", "array"), rows, right=("likely",)))
    if answer.lines:
        lines = (
            (
                line.name,
                f"{line.rate_per_s:,.0f}",
                f"{line.predicted_per_s:,.0f}",
                "-" if line.runner_up_per_s is None else f"{line.runner_up_per_s:,.0f}",
                f"{line.residual_sigma:+.1f}",
            )
            for line in answer.lines
        )
        head = ("test", "measured/s", "first/s", "second/s", "sigma")
        screen.print(plain_table("", head, lines, right=head[1:]))
        screen.print(f"first   {answer.classes[0].arrays[0].title}")
        if answer.runner_up is not None:
            screen.print(f"second  {answer.runner_up.title}")

"""``raidlab trace``: traces of requests recorded elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from raidlab.formats.traces import TraceFacts

app = typer.Typer(
    name="trace",
    help="Traces of requests recorded elsewhere: what one holds, and another format.",
    no_args_is_help=True,
)

# Volumes that are shown without --json; a cloud's trace has thousands.
_MOST_SHOWN = 40
_FORMATS = "msr, spc, blkparse, fio_v2, fio_v3, disksim, disksim_validation, alibaba, tencent"

File = Annotated[str, typer.Argument(metavar="FILE", help="A trace, as text.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help=f"Its format, if its first lines do not tell: {_FORMATS}."),
]
CONVERT_EXAMPLES = """\b
Examples:
  raidlab trace show web_0.csv
  raidlab trace convert web_0.csv --to fio_v3 -o web_0.log"""


@app.command("show")
def show(
    file: File,
    format_name: Format = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a trace holds: requests, shares, sizes, rates, working set, volume by volume.

    Reads it once, to its end; a line that is no request is an error that names it.
    """
    from raidlab.formats.traces import trace_facts

    facts = trace_facts(Path(file), format_name)
    if as_json:
        print(json.dumps(facts.as_json(), indent=2))
    else:
        _print_facts(facts)


@app.command("convert", epilog=CONVERT_EXAMPLES)
def convert(
    file: File,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"The format to write: {_FORMATS}.")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The new file; it must not be there yet.")],
    format_name: Format = None,
) -> None:
    """Write a trace in another format.

    What the new format cannot say is lost: times below its resolution, names of volumes where it has numbers. A request
    that it cannot say at all is an error, and no file is left.
    """
    from raidlab.cli.terminal import say
    from raidlab.formats.traces import convert_trace

    requests = convert_trace(Path(file), Path(out), to, format_name)
    say(f"{requests} requests written to {out}")


def _print_facts(facts: TraceFacts) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table, short_bytes
    from raidlab.cli.terminal import console

    out, told = console(), facts.told
    told_by = ", told by its first lines" if facts.is_guessed else ""
    out.print(Text(f"{facts.file}: {facts.requests:,} requests, format {facts.format}{told_by}", style="bold"))
    if not facts.requests:
        return
    rate = "all at once" if facts.rate_per_s is None else f"{facts.rate_per_s:,.4g} requests/s"
    out.print(
        f"{facts.span_s:,.6g} s, {rate} in the mean, {told['most_in_a_second']:,} in the busiest second; "
        f"stamps of {_resolution(int(told['resolution_ns']))}"
    )
    out.print(
        f"{facts.read_share:.1%} reads, {short_bytes(facts.bytes)} in all, {facts.sequential_share:.1%} sequential, "
        f"working set {short_bytes(facts.working_set_bytes)} in pages of 4 KiB"
    )
    sizes = facts.size_percentiles
    shown = (
        f"of more than {len(told['sizes']['bytes'])} kinds"
        if sizes is None
        else ", ".join(f"p{percent} {short_bytes(size)}" for percent, size in sizes.items())
    )
    out.print(f"sizes: mean {short_bytes(facts.bytes // facts.requests)}, {shown}")
    if told["response_mean_ns"] is not None:
        out.print(f"recorded response: mean {told['response_mean_ns'] / 1e6:.3g} ms")
    for count, what in (
        (told["out_of_order"], "requests are older than the one before them"),
        (told["other_lines"], "lines are no requests of data"),
        (told["empty_requests"], "requests have no bytes and are not replayed"),
    ):
        if count:
            out.print(f"{count:,} {what}")
    rows = plain_table("")
    for heading in ("volume", "requests", "reads", "read", "written", "sequential", "working set", "needs"):
        rows.add_column(heading, justify="left" if heading == "volume" else "right", overflow="fold")
    for volume in facts.volumes[:_MOST_SHOWN]:
        rows.add_row(
            volume.name,
            f"{volume.requests:,}",
            f"{volume.reads / max(volume.requests, 1):.1%}",
            short_bytes(volume.read_bytes),
            short_bytes(volume.write_bytes),
            f"{volume.sequential / max(volume.requests, 1):.1%}",
            short_bytes(volume.working_set_bytes),
            short_bytes(volume.end_bytes),
        )
    out.print(rows)
    if len(facts.volumes) > _MOST_SHOWN:
        out.print(f"and {len(facts.volumes) - _MOST_SHOWN} more volumes; --json lists all")


def _resolution(resolution_ns: int) -> str:
    """A unit of time in a word."""
    for unit_ns, word in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if resolution_ns >= unit_ns:
            return f"{resolution_ns // unit_ns} {word}"
    return f"{resolution_ns} ns"

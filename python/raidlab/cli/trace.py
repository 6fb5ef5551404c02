"""``raidlab trace``: traces of requests recorded elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.options import Json, argument, option
from raidlab.cli.terminal import console, say

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

File = Annotated[str, argument("FILE", "A trace, as text.")]
Format = Annotated[str | None, option("FORMAT", f"Its format, if its first lines do not tell: {_FORMATS}.", "--format")]
CONVERT_EXAMPLES = """\b
Examples:
  raidlab trace show web_0.csv
  raidlab trace convert web_0.csv --to fio_v3 -o web_0.log"""


@app.command("show")
def show(
    file: File,
    format_name: Format = None,
    as_json: Json = False,
) -> None:
    """Say what a trace holds: requests, shares, sizes, rates, working set, volume by volume.

    Reads it once, to its end; a line that is no request is an error that names it.
    """
    from raidlab.formats.traces import trace_facts

    facts = trace_facts(Path(file), format_name)
    if as_json:
        print(facts.as_json())
    else:
        _print_facts(facts)


@app.command("convert", epilog=CONVERT_EXAMPLES)
def convert(
    file: File,
    to: Annotated[str, option("FORMAT", f"The format to write: {_FORMATS}.")],
    out: Annotated[str, option("FILE", "The new file; it must not be there yet.", "--out", "-o")],
    format_name: Format = None,
) -> None:
    """Write a trace in another format.

    What the new format cannot say is lost: times below its resolution, names of volumes where it has numbers. A request
    that it cannot say at all is an error, and no file is left.
    """
    from raidlab.formats.traces import convert_trace

    requests = convert_trace(Path(file), Path(out), to, format_name)
    say(f"{requests} requests written to {out}")


def _print_facts(facts: TraceFacts) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table, short_bytes
    from raidlab.study.units import format_time_ns

    out, summary, moved = console(), facts.summary, facts.total("read_bytes", "write_bytes")
    told_by = ", told by its first lines" if facts.is_guessed else ""
    out.print(Text(f"{facts.file}: {facts.requests:,} requests, format {summary['format']}{told_by}", style="bold"))
    if not facts.requests:
        return
    rate = "all at once" if facts.rate_per_s is None else f"{facts.rate_per_s:,.4g} requests/s"
    out.print(
        f"{facts.span_s:,.6g} s, {rate} in the mean, {summary['most_in_a_second']:,} in the busiest second; "
        f"stamps of {_resolution(summary['resolution_ns'])}"
    )
    out.print(
        f"{facts.read_share:.1%} reads, {short_bytes(moved)} in all, "
        f"{facts.total('sequential') / facts.requests:.1%} sequential, "
        f"working set {short_bytes(facts.total('working_set_bytes'))} in pages of 4 KiB"
    )
    sizes = facts.size_percentiles
    shown = (
        f"of more than {len(summary['sizes']['bytes'])} kinds"
        if sizes is None
        else ", ".join(f"p{percent} {short_bytes(size)}" for percent, size in sizes.items())
    )
    out.print(f"sizes: mean {short_bytes(moved // facts.requests)}, {shown}")
    if summary["response_mean_ns"] is not None:
        out.print(f"recorded response: mean {format_time_ns(summary['response_mean_ns'])}")
    for count, what in (
        (summary["out_of_order"], "requests are older than the one before them"),
        (summary["other_lines"], "lines are no requests of data"),
        (summary["empty_requests"], "requests have no bytes and are not replayed"),
    ):
        if count:
            out.print(f"{count:,} {what}")
    figures = ("requests", "reads", "read", "written", "sequential", "working set", "needs")
    rows = (
        (
            volume["name"],
            f"{(requests := volume['reads'] + volume['writes']):,}",
            f"{volume['reads'] / max(requests, 1):.1%}",
            short_bytes(volume["read_bytes"]),
            short_bytes(volume["write_bytes"]),
            f"{volume['sequential'] / max(requests, 1):.1%}",
            short_bytes(volume["working_set_bytes"]),
            short_bytes(volume["end_bytes"]),
        )
        for volume in summary["volumes"][:_MOST_SHOWN]
    )
    out.print(plain_table("", ("volume", *figures), rows, right=figures))
    if len(summary["volumes"]) > _MOST_SHOWN:
        out.print(f"and {len(summary['volumes']) - _MOST_SHOWN} more volumes; --json lists all")


def _resolution(resolution_ns: int) -> str:
    """A unit of time in a word."""
    for unit_ns, word in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if resolution_ns >= unit_ns:
            return f"{resolution_ns // unit_ns} {word}"
    return f"{resolution_ns} ns"

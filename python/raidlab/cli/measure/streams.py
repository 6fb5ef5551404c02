"""``raidlab measure streams``: how fast data move from end to end, alone and together."""

from __future__ import annotations

import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of_status, say_cut_short
from raidlab.cli.options import argument, flag, number, option

if TYPE_CHECKING:
    from raidlab.measure.streams import StreamsPlan
    from raidlab.measure.turns import Row, Turns
    from raidlab.results.answer import CheckAnswer
    from raidlab.run.streams import StreamsResult

# Of a line in the terminal.
_COLUMNS = 80

EXAMPLES = """\b
Examples:
  raidlab measure streams memory /mnt/disk/written
  raidlab measure streams memory /mnt/disk/written /mnt/disk/source tape:10MB,stop=2s
  raidlab measure streams /dev/sdx null --size 4GiB --block 1MiB"""


def streams(
    ends: Annotated[
        list[str],
        argument(
            "FROM TO...",
            "Pairs of ends: null, memory, tape:RATE (tape:10MB,stop=2s), a file (made if it is not there, written "
            "only if raidlab made it) or a block device (written only with --destroy).",
        ),
    ],
    size: Annotated[str, option("SIZE", "How much each stream moves.")] = "1GiB",
    block: Annotated[str, option("SIZE", "How much is moved at a time.")] = "256KiB",
    rate: Annotated[str | None, option("RATE", "The pace of each stream, such as 8MB/s; none: no pace.")] = None,
    buffers: Annotated[int, number("Blocks under way; with 1 reading and writing take turns, as in dd.", 1)] = 2,
    together: Annotated[bool, flag("--together", "Several streams: only together, not also each alone.")] = False,
    runtime: Annotated[str | None, option("TIME", "No block is begun later. None by default.")] = None,
    repeats: Annotated[int, number("How often, in shuffled order.", 1, 100)] = 3,
    destroy: Annotated[
        list[str] | None, option("DEVICE", "A block device among the ends that may be overwritten.")
    ] = None,
    data: Annotated[
        str | None, option("FILE", "What memory and tapes hand over; incompressible bytes by default.")
    ] = None,
    keep: Annotated[bool, flag("--keep", "Leave files that were made.")] = False,
    cluster: Annotated[
        str | None,
        option(
            "CLUSTER",
            "Run the streams on all machines of this Dask cluster at once (tcp://HOST:8786), each between ends of its "
            "own and all together.",
        ),
    ] = None,
    hosts: Annotated[int | None, number("How many of its machines; all by default.", 1, 10_000)] = None,
    seed: Annotated[int, number("The root of all randomness.", 0, 2**63 - 1)] = 1,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of a table.")] = False,
) -> None:
    """Measure how fast data move from one end to another, each stream alone and all together.

    Every stream says which of its ends bounds it.
    """
    from raidlab.cli.measure.requests import connected_hosts, refuse_hosts_alone
    from raidlab.measure.streams import StreamsPlan, measure_all_streams, streams_of
    from raidlab.measure.words import parse_with
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on
    from raidlab.study.cell import StreamsCell
    from raidlab.study.units import BYTES_ACCEPTED, TIME_ACCEPTED, parse_bytes, parse_time_ns

    pace = None if rate is None else parse_with(parse_bytes, "--rate", rate.removesuffix("/s"), "such as 8MB/s") / 1e6
    cell = StreamsCell(
        streams=streams_of(
            ends,
            size_bytes=parse_with(parse_bytes, "--size", size, BYTES_ACCEPTED),
            block_bytes=parse_with(parse_bytes, "--block", block, BYTES_ACCEPTED),
            rate_mb_s=pace,
            buffers=buffers,
        ),
        seed=seed,
        destroy=[Path(device) for device in destroy or []],
        duration=None if runtime is None else parse_with(parse_time_ns, "--runtime", runtime, TIME_ACCEPTED),
        data=None if data is None else Path(data),
    )
    refuse_hosts_alone(hosts, cluster)
    # Of several machines, a stream alone would be that stream on all of them.
    plan = StreamsPlan(cell, repeats, alone=not together and cluster is None, keep=keep)
    stop = StopFlag()
    with catching_signals(stop), ExitStack() as made:
        several = None if cluster is None else made.enter_context(connected_hosts(cluster, hosts, stop))
        turns = measure_all_streams(plan, progress=progress_on(sys.stderr), stop=stop, hosts=several)
    raise typer.Exit(_print(plan, turns, stop.signal_name, as_json=as_json))


def _print(plan: StreamsPlan, turns: Turns[str, StreamsResult], signal_name: str | None, *, as_json: bool) -> int:
    from raidlab.cli.terminal import printing
    from raidlab.measure.streams import stream_rows, streams_checks

    rows, checks = stream_rows(turns), streams_checks(turns)
    if rows:
        with printing():
            print(_json(plan, turns, rows, checks) if as_json else _table(rows, checks))
    say_cut_short("measurement", turns.status, turns.failure, is_empty=not rows)
    return code_of_status(turns.status, signal_name, [check["verdict"] for check in checks])


def _table(rows: list[Row], checks: list[CheckAnswer]) -> str:
    from raidlab.cli.measure.result import figure, half_width, intervals_sentence

    lines = [f"{'stream':<34}{'MB/s':>8}{'±':>8}{'bound by':>10}{'alone':>8}{'together':>10}"]
    for row in rows:
        label = row["stream"]
        if len(label) >= 34:
            lines += textwrap.wrap(label, _COLUMNS, break_on_hyphens=False)
            label = ""
        share = row.get("together_percent")
        cells = [
            f"{figure(row['throughput_mb_s']):>8}",
            f"{(half_width(row, 'throughput_mb_s') or '-').removeprefix('±'):>8}",
            f"{row.get('bound_by') or '':>10}",
            f"{figure(row['alone_mb_s']) if row.get('alone_mb_s') else '':>8}",
            f"{f'{share:.0f}%' if share is not None else '':>10}",
        ]
        lines.append(f"{label:<34}" + "".join(cells))
        lines += [f"  {note}" for note in _notes(row)]
    if any(row.get("together_percent") is not None for row in rows):
        lines.append("'together' is the rate among the others, in percent of the rate alone")
    lines += intervals_sentence(rows)
    for check in checks:
        said = f"{check['verdict']} {check['name']}: {check['evidence']} {check['mend']}"
        lines += textwrap.wrap(said, _COLUMNS, break_long_words=False)
    return "\n".join(lines)


def _notes(row: Row) -> list[str]:
    from raidlab.study.units import format_time_ns

    low, high = row.get("together_percent_low"), row.get("together_percent_high")
    notes = [] if low is None or high is None else [f"together: {low:.0f} to {high:.0f} % (95 % interval of the pairs)"]
    if row.get("stops"):
        notes.append(f"the tape stopped {row['stops']} times in {row['repeats']} repeats")
    if row.get("late_ns_p99") is not None:
        notes.append(f"99 % of the blocks were at most {format_time_ns(row['late_ns_p99'])} late")
    return notes


def _json(plan: StreamsPlan, turns: Turns[str, StreamsResult], rows: list[Row], checks: list[CheckAnswer]) -> str:
    import json

    from raidlab.study.cell import text_of

    first = next(results[0] for results in turns.results.values() if results)
    document = {
        "status": turns.status,
        "failure": turns.failure,
        "request": json.loads(text_of(plan.cell)),
        "results": rows,
        "facts": first.facts,
        "checks": [
            {"check": check["name"], "verdict": check["verdict"], "evidence": check["evidence"]} for check in checks
        ],
    }
    return json.dumps(document, indent=2)

"""``raidlab measure files``: opening and reading whole files, alone and among others."""

from __future__ import annotations

import sys
import textwrap
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from raidlab.cli.endings import code_of_status, say_cut_short
from raidlab.cli.options import argument, flag, number, option

if TYPE_CHECKING:
    from raidlab.measure.files import FilesOutcome, FilesPlan
    from raidlab.measure.turns import Row
    from raidlab.results.answer import CheckAnswer

EXAMPLES = """\b
Examples:
  raidlab measure files /mnt/disk/ --readers 1,2,4
  raidlab measure files /mnt/a/ /mnt/b/ --size table:50kB,100kB,500kB --count 360 --lists 12
  raidlab measure files data/*.root --readers 1,8
  raidlab measure files /mnt/box/ --cluster tcp://10.0.0.1:8786"""

_LABEL, _WIDTH = 12, 9
_OF_A_CHECK: tuple[Literal["verdict", "evidence", "mend"], ...] = ("verdict", "evidence", "mend")


def files(
    paths: Annotated[
        list[str], argument("PATH...", "Directories to make files in (removed afterwards), or files to read.")
    ],
    readers: Annotated[str, option("LIST", "How many read at the same time; one or more numbers.")] = "1,2,4",
    size: Annotated[str, option("SIZE", "The files' sizes, as for requests: exponential:1MiB and so on.")] = "1MiB",
    count: Annotated[int, number("How many files are made.", 1)] = 200,
    lists: Annotated[int, number("Disjoint lists the files are dealt into; reader k reads list k.", 1)] = 1,
    order: Annotated[
        str, option("WORD", "once, shuffled (again and again) or random; these two want --runtime.")
    ] = "once",
    block: Annotated[str, option("SIZE", "How much a read asks for; whole for all of the file.")] = "128KiB",
    io: Annotated[str, option("WORD", "auto (direct where the file system can), direct or buffered.")] = "auto",
    sync: Annotated[str, option("WORD", "Written files reach the disk: each by itself, or at the end.")] = "each",
    verify: Annotated[str, option("WORD", "Compare contents with what was written: sample, full or off.")] = "sample",
    drop_caches: Annotated[
        bool, flag("--drop-caches", "Have the kernel forget directories and inodes before reading (root).")
    ] = False,
    runtime: Annotated[str | None, option("TIME", "No file is begun later. None by default.")] = None,
    repeats: Annotated[int, number("How often, in shuffled order.", 1, 100)] = 3,
    cluster: Annotated[
        str | None,
        option(
            "ADDRESS",
            "Do it on all machines of this Dask cluster at once (tcp://HOST:8786): each makes files of its own, or "
            "reads those that it has under these names, with so many readers.",
        ),
    ] = None,
    hosts: Annotated[int | None, number("How many of its machines; all by default.", 1, 10_000)] = None,
    seed: Annotated[int, number("The root of all randomness.", 0, 2**63 - 1)] = 1,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of a table.")] = False,
) -> None:
    """Measure how long it takes to open and read whole files, alone and among others.

    In directories, files are made, put out of the page cache, and removed afterwards. Files that are there are only
    read.
    """
    from raidlab.cli.measure.requests import connected_hosts, refuse_hosts_alone
    from raidlab.measure.files import FilesPlan, files_of, measure_whole_files
    from raidlab.measure.words import parse_counts, parse_kind, parse_with, validated
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on
    from raidlab.study.cell import FilesCell, FilesMeasure, MadeFiles
    from raidlab.study.units import BYTES_ACCEPTED, TIME_ACCEPTED, parse_bytes, parse_time_ns

    numbers = "even" if size.startswith("table:") else "drawn"
    sizes = {"sizes": parse_kind(size), "numbers": numbers, "count": count, "sync": sync}
    made = validated(MadeFiles, {"directories": [], **sizes})
    duration = None if runtime is None else parse_with(parse_time_ns, "--runtime", runtime, TIME_ACCEPTED)
    asked = {
        "files": made,
        "seed": seed,
        "lists": lists,
        "order": order,
        "block_bytes": "whole" if block == "whole" else parse_with(parse_bytes, "--block", block, BYTES_ACCEPTED),
        "io": io,
        "verify": verify,
        "drop_caches": drop_caches,
        "measure": FilesMeasure(duration=duration),
    }
    cell = validated(FilesCell, asked)
    refuse_hosts_alone(hosts, cluster)
    plan = FilesPlan(cell, readers=parse_counts("--readers", readers), repeats=repeats)
    stop = StopFlag()
    with catching_signals(stop), ExitStack() as opened:
        several = None if cluster is None else opened.enter_context(connected_hosts(cluster, hosts, stop))
        named = files_of(paths, made) if several is None else several.open_files(paths, made)
        plan = replace(plan, cell=cell.model_copy(update={"files": named}))
        outcome = measure_whole_files(plan, progress=progress_on(sys.stderr), stop=stop, hosts=several)
    raise typer.Exit(_print(plan, outcome, stop.signal_name, as_json=as_json))


def _print(plan: FilesPlan, outcome: FilesOutcome, signal_name: str | None, *, as_json: bool) -> int:
    from raidlab.cli.terminal import printing
    from raidlab.measure.files import findings, reading_rows

    rows, found = reading_rows(outcome), findings(outcome)
    if rows:
        with printing():
            print(_json(plan, outcome, rows, found) if as_json else _table(outcome, rows, found))
    say_cut_short("measurement", outcome.turns.status, outcome.turns.failure, is_empty=not rows)
    return code_of_status(outcome.turns.status, signal_name, [check["verdict"] for check in found])


def _table(outcome: FilesOutcome, rows: list[Row], found: list[CheckAnswer]) -> str:
    from raidlab.cli.measure.result import figure, half_width, intervals_sentence

    written = outcome.written.fill if outcome.written is not None else None
    heads = ["files/s", "MB/s", "open", "first", "mean", "p50", "p90"]
    lines = []
    if written is not None and written.mb_s is not None:
        lines.append(f"{written.files} files written at {figure(written.mb_s)} MB/s, synchronising included")
    lines += ["times in ms, from opening on: first to the first byte, mean to p90 to the last", ""]
    lines.append(f"{'readers':<{_LABEL}}" + "".join(f"{head:>{_WIDTH}}" for head in heads))
    names = ["files_per_s", "throughput_mb_s", "open_time_ns_mean", "first_byte_time_ns_mean"]
    names += ["total_time_ns_mean", "total_time_ns_p50", "total_time_ns_p90"]
    for row in rows:
        values = [row[name] if name[-2:] == "_s" else row[name] and row[name] / 1e6 for name in names]
        lines.append(f"{row['readers']:<{_LABEL}}" + "".join(f"{figure(value):>{_WIDTH}}" for value in values))
        halves = [half_width(row, name) or "" for name in names]
        if any(halves):
            lines.append(f"{'':<{_LABEL}}" + "".join(f"{half:>{_WIDTH}}" for half in halves))
        if row["in_flight_mean"] < 0.9 * row["readers"]:
            lines.append(f"  only {row['in_flight_mean']:.1f} were reading on average: some had nothing left to do")
    lines += intervals_sentence(rows)
    for check in found:
        said = f"{check['verdict']} {check['name']}: {check['evidence']} {check['mend']}"
        lines += ["", *textwrap.wrap(said, 80, break_long_words=False)]
    return "\n".join(lines)


def _json(plan: FilesPlan, outcome: FilesOutcome, rows: list[Row], found: list[CheckAnswer]) -> str:
    import json

    from raidlab.study.cell import text_of

    written = outcome.written.fill if outcome.written is not None else None
    document = {
        "status": outcome.turns.status,
        "failure": outcome.turns.failure,
        "request": json.loads(text_of(plan.cell)),
        "written": None
        if written is None
        else {
            "files": written.files,
            "bytes": written.bytes,
            "elapsed_ns": written.elapsed_ns,
            "content_ns": written.content_ns,
            "sync_ns": written.sync_ns,
            "throughput_mb_s": written.mb_s,
        },
        "results": rows,
        "facts": outcome.results[0].facts,
        "checks": [{"check": check["name"], **{key: check[key] for key in _OF_A_CHECK}} for check in found],
    }
    return json.dumps(document, indent=2)

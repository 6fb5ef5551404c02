"""``raidlab measure network``: what machines get together from a storage on the network."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of_status, say_cut_short
from raidlab.cli.options import argument, flag, number, option

if TYPE_CHECKING:
    from raidlab.measure.hosts import Hosts
    from raidlab.measure.network import NetworkOutcome

EXAMPLES = """\b
Examples:
  raidlab measure network /mnt/box/ --cluster tcp://10.0.0.1:8786
  raidlab measure network /mnt/box/ --cluster tcp://10.0.0.1:8786 --hosts 4 --json > net.json"""


def network(
    target: Annotated[
        str, argument("TARGET", "The storage as each machine sees it: a directory in most cases, a file or a device.")
    ],
    cluster: Annotated[
        str | None, option("ADDRESS", "The Dask cluster whose workers load it (tcp://HOST:8786); needed.")
    ] = None,
    hosts: Annotated[int | None, number("How many of its machines; all by default.", 1, 10_000)] = None,
    block: Annotated[str, option("SIZE", "How much is moved at a time.")] = "256KiB",
    depth: Annotated[int, number("How many of them each machine has outstanding.", 1, 4096)] = 2,
    runtime: Annotated[str | None, option("TIME", "How long each step measures. 3s by default.")] = None,
    warmup: Annotated[
        str | None, option("TIME", "How long it runs before, uncounted. A tenth of it and 500ms at least by default.")
    ] = None,
    repeats: Annotated[int, number("How often, in shuffled order.", 1, 100)] = 3,
    file_size: Annotated[str, option("SIZE", "The size of the file made in a directory, by each machine.")] = "512MiB",
    destroy: Annotated[list[str] | None, option("DEVICE", "A block device that may be overwritten.")] = None,
    seed: Annotated[int | None, number("The root of all randomness. 1 by default.", 0, 2**63 - 1)] = None,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of a table.")] = False,
) -> None:
    """Measure what one machine, two, ... all get from a storage together, front to back.

    They write, and read; with four machines two also read while two write.
    """
    from raidlab.cli.measure.requests import connected_hosts
    from raidlab.errors import InputError
    from raidlab.measure import BudgetFlags, Drive, LoadFlags, WorkloadFlags, request_of_flags
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on

    if cluster is None:
        accepted = "a Dask scheduler with a worker on each machine (tcp://HOST:8786), or local:N"
        raise InputError.one("--cluster", "is needed to know the machines", accepted=accepted)
    asked = request_of_flags(
        [target],
        WorkloadFlags(rw="rw", size=block),
        LoadFlags(depth=str(depth)),
        BudgetFlags(runtime=runtime, warmup=warmup, repeats=repeats),
        Drive(),
        destroy=destroy or [],
        file_size=file_size,
        seed=seed,
    )
    stop = StopFlag()
    with catching_signals(stop), connected_hosts(cluster, hosts, stop) as machines:
        # Not at the head: Dask is slow to import, and need not be installed.
        from raidlab.measure.network import measure_network

        outcome = measure_network(asked, machines, progress=progress_on(sys.stderr), stop=stop)
        raise typer.Exit(_print(outcome, machines, stop.signal_name, as_json=as_json))


def _print(outcome: NetworkOutcome, hosts: Hosts, signal_name: str | None, *, as_json: bool) -> int:
    from raidlab.cli.terminal import printing

    if outcome.rows:
        with printing():
            print(_json(outcome, hosts) if as_json else _table(outcome))
    say_cut_short("measurement", outcome.status, outcome.failure, is_empty=not outcome.rows)
    return code_of_status(outcome.status, signal_name, [check["verdict"] for check in outcome.checks])


def _table(outcome: NetworkOutcome) -> str:
    from dataclasses import asdict

    from raidlab.cli.measure.result import figure, intervals_sentence
    from raidlab.study.units import format_number

    lines = [f"{'test':<31}{'':<6}{'MB/s':>7}{'95 % interval':>18}{'each host':>18}"]
    for row in outcome.rows:
        low, high, slowest, fastest = map(figure, (row.low, row.high, row.slowest_mb_s, row.fastest_mb_s))
        interval = "single run" if row.low is None else f"{low} to {high}"
        total, each = figure(row.total_mb_s), f"{slowest} to {fastest}"
        lines.append(f"{row.test:<31}{row.work:<6}{total:>7}{interval:>18}{each:>18}")
    lines += intervals_sentence(asdict(row) for row in outcome.rows)
    apart_ms = max(row.apart_ms for row in outcome.rows)
    lines += ["", f"hosts of a step began within {format_number(apart_ms)} ms of each other"]
    for check in outcome.checks:
        if check["verdict"] != "PASS":
            said = f"{check['verdict']} {check['name']}: {check['evidence']} {check['mend']}"
            lines += ["", *textwrap.wrap(said, 80, break_long_words=False)]
    return "\n".join(lines)


def _json(outcome: NetworkOutcome, hosts: Hosts) -> str:
    import json
    from dataclasses import asdict

    document = asdict(outcome)
    document = {"results": document.pop("rows"), "hosts": [host.facts for host in hosts.hosts], **document}
    return json.dumps(document, indent=2)

"""``raidlab measure [requests]``: how fast is this, measured so that the figures can be believed.

Invariants:

- The result goes to standard output: tables at 80 columns, or one JSON document. Everything else goes to standard
  error.
- However a measurement ends, what was measured is printed, and the exit code says how it ended.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import exit_code, say_cut_short
from raidlab.cli.options import argument, flag, number, option
from raidlab.errors import InputError

if TYPE_CHECKING:
    from raidlab.measure import MeasureRequest
    from raidlab.measure.hosts import Hosts
    from raidlab.results import Run
    from raidlab.run.interrupt import StopFlag

EXAMPLES = """\b
Examples:
  raidlab measure /dev/nvme0n1
  raidlab measure /mnt/disk/ --rw randrw --read 70% --depth 1,8,32
  raidlab measure /dev/sdx --rw randwrite --destroy /dev/sdx --precision 2.5%
  raidlab measure /dev/md0 --size exponential:8KiB --hold p90=20ms
  raidlab measure 'raid5(5)@/mnt/disk/' --rate 1000/s
  raidlab measure /mnt/disk/ --witness fio
  raidlab measure null"""

TARGET_HELP = (
    "A file (read only, unless raidlab made it), a directory (a file is made in it and removed), a block device, "
    "memory, null (completes at once: measures raidlab itself), or TREE@PLACE[,PLACE...]: an array built over "
    "directories, devices or memory."
)


def complete_target(incomplete: str) -> list[str]:
    """Words that TARGET knows, for the shell."""
    return [word for word in ("memory", "null") if word.startswith(incomplete)]


def requests(
    targets: Annotated[list[str], argument("TARGET...", TARGET_HELP, autocompletion=complete_target)],
    rw: Annotated[
        str | None,
        option(
            "WORD",
            "read, write, rw, randread, randwrite or randrw: fio's words for --read and --address together; rw "
            "and randrw leave the share to --read (50% by default then).",
        ),
    ] = None,
    read: Annotated[str | None, option("SHARE", "The share of reads, such as 70%. 100% by default.")] = None,
    address: Annotated[
        str | None,
        option("KIND", "uniform, sequential, zipf:0.99 or another kind of a study file. uniform by default."),
    ] = None,
    size: Annotated[
        str | None,
        option("SIZE", "4KiB, exponential:8KiB, 'normal:8KiB,sd=2KiB', 'table:4KiB=3,64KiB=1'. 4KiB by default."),
    ] = None,
    align: Annotated[
        str | None, option("SIZE", "What requests start on; their size if it is fixed, else the sector.")
    ] = None,
    depth: Annotated[
        str | None,
        option(
            "LIST",
            "Closed loop: requests outstanding over all targets together; one or more, such as 1,8,32. 32 by default.",
            "--depth",
            "--depths",
        ),
    ] = None,
    rate: Annotated[str | None, option("LIST", "Open loop: requests a second, such as 1000/s or 100,200.")] = None,
    arrival: Annotated[str | None, option("KIND", "How they arrive: poisson, uniform or h2:cv2=4. poisson.")] = None,
    hold: Annotated[
        str | None, option("PERCENTILE=TIME", "Find the depth at which p90=20ms, say, is met; closed loop.")
    ] = None,
    study: Annotated[str | None, option("STUDY", "Take workload, load and seed from a study instead of flags.")] = None,
    workload: Annotated[str | None, option("NAME", "Which workload of --study; its first by default.")] = None,
    runtime: Annotated[str | None, option("TIME", "How long each repeat measures. 3s by default.")] = None,
    warmup: Annotated[
        str | None,
        option(
            "TIME",
            "How long it runs before, uncounted. auto, the default: a tenth of the runtime and 500ms at least; "
            "where the runtime is 11s or more, as long as a pilot takes to settle (MSER-5).",
        ),
    ] = None,
    repeats: Annotated[int | None, number("How often, in shuffled order. 3 by default.", 1, 100)] = None,
    precision: Annotated[
        str | None,
        option(
            "PERCENT",
            "Go on repeating (at least 34 and up to 60 times) until the 95% interval of each throughput is this "
            "narrow, to either side.",
        ),
    ] = None,
    until_steady: Annotated[
        bool,
        flag(
            "--until-steady",
            "Before measuring, load each point for rounds of 12s or more until five in a row are steady (up to "
            "25): shows credits, heat and caches that fill.",
        ),
    ] = False,
    each: Annotated[
        bool, flag("--each", "Several targets: one after the other, interleaved, not all at once.")
    ] = False,
    workers: Annotated[int, number("Threads that offer requests.", 1, 1024)] = 1,
    cpus: Annotated[str | None, option("LIST", "Processors they are bound to, such as 0,2.")] = None,
    interface: Annotated[str, option("WORD", "auto, io_uring or threads (pread and pwrite).")] = "auto",
    batch: Annotated[int | None, number("Most requests submitted or taken in one turn.", 1, 4096)] = None,
    buffered: Annotated[
        bool, flag("--buffered", "Through the page cache: measures memory as long as it lasts.")
    ] = False,
    busy: Annotated[bool, flag("--busy", "Watch for completions instead of sleeping.")] = False,
    poll_completions: Annotated[
        bool, flag("--poll-completions", "Ask the device for completions; not every driver can.")
    ] = False,
    compressible: Annotated[str, option("SHARE", "The share of what is written that compresses away.")] = "0%",
    verify: Annotated[
        str,
        option(
            "WORD",
            "Compare what is read with what raidlab wrote: full (all of it, in the measuring window too), sample "
            "(a share that costs less than 1%, and a sample of the writes afterwards) or off.",
        ),
    ] = "sample",
    file_size: Annotated[str, option("SIZE", "The size of the file made in each directory.")] = "512MiB",
    span: Annotated[
        str, option("SHARE", "The part of each target that is used: 10% for its beginning, 40%-60% for a part within.")
    ] = "100%",
    destroy: Annotated[
        list[str] | None, option("DEVICE", "A block device among the targets that may be overwritten.")
    ] = None,
    seed: Annotated[int | None, number("The root of all randomness. 1 by default.", 0, 2**63 - 1)] = None,
    witness: Annotated[
        str | None,
        option(
            "TOOL",
            "fio: run it beside raidlab, in alternation on the same target, and print the ratios; --repeats are "
            "pairs then, 5 by default.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        option(
            "ADDRESS",
            "Measure from all machines of this Dask cluster at once (tcp://HOST:8786): each drives the targets as it "
            "sees them, with its share of the depth or rate.",
        ),
    ] = None,
    hosts: Annotated[int | None, number("How many of its machines; all by default.", 1, 10_000)] = None,
    out: Annotated[str | None, option("DIR", "Keep the result in a run folder below this directory.")] = None,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of tables.")] = False,
) -> None:
    """Measure throughput, response times and costs of targets; the word requests may be left out.

    By default: random reads of 4 KiB, 32 outstanding, three repeats of three seconds. Nothing is written
    unless the workload writes, and no block device is unless --destroy names it.
    """
    from raidlab.cli.measure.witness import refuse_beside_witness, repeats_of, witness_and_print
    from raidlab.measure import BudgetFlags, Drive, LoadFlags, WorkloadFlags, request_of_flags
    from raidlab.measure.words import known_cpus, parse_cpus, parse_share, validated

    driven = {
        "workers": workers,
        "cpus": known_cpus(parse_cpus(cpus)),
        "interface": interface,
        "buffered": buffered,
        "busy": busy,
        "poll_completions": poll_completions,
        "batch": batch,
        "compressible_percent": round(100 * parse_share("--compressible", compressible)),
        "verify": verify,
    }
    asked = request_of_flags(
        targets,
        WorkloadFlags(rw=rw, read=read, address=address, size=size, align=align),
        LoadFlags(depth=depth, rate=rate, arrival=arrival, hold=hold),
        BudgetFlags(
            runtime=runtime,
            warmup=warmup,
            repeats=repeats_of(witness, repeats),
            precision=precision,
            until_steady=until_steady,
        ),
        validated(Drive, driven),
        study=study,
        workload=workload,
        destroy=destroy or [],
        file_size=file_size,
        span=span,
        each=each,
        seed=seed,
    )
    if witness is not None:
        refuse_beside_witness(
            {
                "--cluster": cluster,
                "--out": out,
                "--precision": precision,
                "--until-steady": "on" if until_steady else None,
            }
        )
        raise typer.Exit(witness_and_print(asked, as_json=as_json))
    refuse_hosts_alone(hosts, cluster)
    if cluster is not None and each:
        raise InputError.one("--each", "is not for several machines", accepted="it without --cluster")
    argv = ["raidlab", *sys.argv[1:]]
    raise typer.Exit(measure_and_print(asked, out=out, as_json=as_json, argv=argv, cluster=cluster, count=hosts))


def measure_and_print(
    asked: MeasureRequest,
    *,
    out: str | None,
    as_json: bool,
    argv: Sequence[str],
    cluster: str | None = None,
    count: int | None = None,
) -> int:
    """Measure, print, and return the exit code.

    ``out``, if any, is where a run folder is kept; ``cluster`` and ``count`` say which machines measure together.
    """
    from raidlab.measure import measure
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on

    stop = StopFlag()
    with ExitStack() as made:
        made.enter_context(catching_signals(stop))
        hosts = None if cluster is None else made.enter_context(connected_hosts(cluster, count, stop))
        # What is not kept still wants a place until it is printed.
        place, elsewhere = (_temporary(made), _in_memory(made)) if out is None else (Path(out), None)
        run = measure(
            asked, place, progress=progress_on(sys.stderr), argv=argv, stop=stop, elsewhere=elsewhere, hosts=hosts
        )
        return _print(run, as_json=as_json, kept=out is not None)


def refuse_hosts_alone(hosts: int | None, cluster: str | None) -> None:
    """``--hosts`` says nothing without ``--cluster``."""
    if hosts is not None and cluster is None:
        raise InputError.one("--hosts", "are those of a cluster", value=str(hosts), accepted="it beside --cluster")


def connected_hosts(cluster: str, count: int | None, stop: StopFlag) -> Hosts:
    """The machines that ``--cluster`` and ``--hosts`` say."""
    # Not at the head: Dask is slow to import, and need not be installed.
    from raidlab.measure.hosts import Hosts

    return Hosts(cluster, count, stop)


def _temporary(made: ExitStack, parent: str | None = None) -> Path:
    import tempfile

    return Path(made.enter_context(tempfile.TemporaryDirectory(prefix="raidlab-", dir=parent)))


def _in_memory(made: ExitStack) -> Path | None:
    """Where results fit should the disk of temporary files fill up, which may well be the target."""
    with suppress(OSError):
        return _temporary(made, "/dev/shm")
    return None


def _print(run: Run, *, as_json: bool, kept: bool) -> int:
    from raidlab.analysis.checks import run_checks
    from raidlab.analysis.metrics import Analysis
    from raidlab.cli.measure.result import measurement_json, print_measurement
    from raidlab.cli.terminal import printing, say

    if run.cells.is_empty():
        say_cut_short("measurement", run.facts["status"], run.facts["failure"], is_empty=True)
        return exit_code(run, [])
    analysis = Analysis(run)
    findings = run_checks(analysis)
    with printing():
        if as_json:
            print(measurement_json(analysis, findings, kept=kept))
        else:
            print_measurement(analysis, findings)
    if kept:
        say(f"kept: {run.folder} (a page of it: raidlab report {run.folder})")
    say_cut_short("measurement", run.facts["status"], run.facts["failure"])
    return exit_code(run, findings)

"""What ``raidlab fio import`` prints: the plan, and the results.

Invariants:

- Everything here goes to standard output and reads well at 80 columns.
- Nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

import json

from rich.text import Text

from raidlab.cli.output import plain_table, short
from raidlab.cli.terminal import console
from raidlab.formats.fio.cells import Import, Lane
from raidlab.run.from_fio import JobFileRun, JobResult
from raidlab.study.units import format_bytes, format_time_ns

PERCENTILES = (50, 90, 99)


def print_plan(imported: Import) -> None:
    """Print what would be run: a line a lane, then the notes."""
    out = console()
    rows = (
        (str(number), lane.job.title, _requests(lane), _load(lane), _places(lane), _amount(lane))
        for number, group in enumerate(imported.groups, start=1)
        for lane in group
    )
    out.print(plain_table("", ("group", "job", "requests", "load", "on", "measured"), rows))
    out.print("Groups run one after another, the jobs of a group at once. Nothing was run; --run runs them.")
    print_notes(imported.notes)


def print_notes(notes: tuple[str, ...] | list[str]) -> None:
    """Print what fio does otherwise."""
    out = console()
    for note in notes:
        out.print(Text(f"note: {note}", style="dim"))


def print_results(jobs: list[JobResult]) -> None:
    """Print what was measured: a row a job."""
    if not jobs:
        return
    rows = []
    for job in jobs:
        times = [job.response.percentile_ns(percentile) for percentile in PERCENTILES]
        shown = [short(None if value is None else value / 1e6) for value in times]
        rows.append(
            (str(job.group + 1), job.title, str(job.requests), short(job.iops), short(job.throughput_mb_s), *shown)
        )
    figures = ("requests", "IOPS", "MB/s", *(f"p{percentile} ms" for percentile in PERCENTILES))
    console().print(plain_table("", ("group", "job", *figures), rows, right=figures))


def print_json(imported: Import, run: JobFileRun | None, jobs: list[JobResult]) -> None:
    """Print the groups with their cells, the notes, and what was measured if anything was."""
    groups = [
        [
            {"job": lane.job.title, "line": lane.job.section.number, "cell": lane.cell.model_dump(exclude_none=True)}
            for lane in group
        ]
        for group in imported.groups
    ]
    document: dict[str, object] = {"groups": [{"jobs": group} for group in groups], "notes": imported.notes}
    if run is not None:
        document |= {"status": run.status, "failure": run.failure, "warnings": run.warnings}
        document["results"] = [_result(job) for job in jobs]
    print(json.dumps(document, indent=2))


def _result(job: JobResult) -> dict[str, object]:
    times = {f"response_time_ns_p{percentile}": job.response.percentile_ns(percentile) for percentile in PERCENTILES}
    return {
        "group": job.group,
        "job": job.title,
        "requests": job.requests,
        "bytes": job.bytes,
        "elapsed_s": max(lane.elapsed_s for lane in job.lanes),
        "iops": job.iops,
        "throughput_mb_s": job.throughput_mb_s,
        **times,
        "read_requests": sum(int(lane.answer["read"]["requests"]) for lane in job.lanes),
        "write_requests": sum(int(lane.answer["write"]["requests"]) for lane in job.lanes),
        "failed": sum(int(lane.answer["all"]["failed"]) for lane in job.lanes),
        "facts": [lane.answer["facts"] for lane in job.lanes],
    }


def _requests(lane: Lane) -> str:
    workload = lane.cell.workload
    share = workload.read
    way = {1.0: "reads", 0.0: "writes"}.get(share, f"{share:.0%} reads")
    size = workload.size
    lengths = sorted(size.bytes) if size.kind == "table" else [size.typical_bytes]
    shown = format_bytes(lengths[0]) if len(lengths) == 1 else f"{format_bytes(lengths[0])}-{format_bytes(lengths[-1])}"
    return f"{shown} {workload.address.kind} {way}"


def _load(lane: Lane) -> str:
    load, workers = lane.cell.load, lane.cell.workers
    by = f", {workers} workers" if workers > 1 else ""
    cache = ", buffered" if lane.cell.buffered else ""
    if load.kind == "open" and load.arrival.kind != "trace":
        return f"{load.arrival.rate_per_s:g}/s {load.arrival.kind}{by}{cache}"
    if load.kind == "hold":
        return f"p{load.percentile:g} at {load.target / 1e6:g} ms{by}{cache}"
    return f"depth {load.depth if load.kind == 'closed' else 0}{by}{cache}"


def _places(lane: Lane) -> str:
    first = lane.parts[0]
    more = f" and {len(lane.parts) - 1} more" if len(lane.parts) > 1 else ""
    where = f" from {format_bytes(first.offset_bytes)}" if first.offset_bytes else ""
    return f"{first.path}{more} ({format_bytes(first.size_bytes)}{where})"


def _amount(lane: Lane) -> str:
    measure = lane.cell.measure
    parts = [] if measure.requests is None else [f"{measure.requests} requests"]
    parts += [] if measure.duration is None else [format_time_ns(measure.duration)]
    return " or ".join(parts)

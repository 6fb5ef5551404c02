"""The parts of the reference that are read from the code: kinds, options, metrics, checks, figures, columns.

    .venv/bin/python docs/generate.py            # write them into docs/reference/*.md
    .venv/bin/python docs/generate.py --check    # say which pages differ; status 1 if any does

A generated part lies between `<!-- generated: NAME -->` and `<!-- end -->`; everything else is written by hand. The pages of
the study file and of needs, the man page and the picture of the rooms are wholly made, by the files of their names. The meanings of columns, which the code does not hold, are
below; `tests/python/test_docs.py` fails when one is missing or left over, and when a page is not up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import polars as pl
from pydantic import BaseModel

from raidlab.analysis import checks, metrics
from raidlab.report import figures
from raidlab.results import tables
from raidlab.study import device, schema, workload

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
import python_api  # noqa: E402 - the folder is no package
from study_file import accepts, table  # noqa: E402

MARK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# ---------------------------------------------------------------------------------------------------------------------
# Columns of the result tables.

COLUMNS: dict[str, str] = {
    "cell": "Number of the cell in this run; joins the tables.",
    "target": "`sim`, `original`, `emulated` or `live`; `null` for the same requests over memory, which bound raidlab's own cost.",
    "array": "Name of the array.",
    "group": "Its group.",
    "workload": "Name of the workload.",
    "load": "`closed`, `open`, `trace` (by the time stamps of one) or `hold`.",
    "depth": "Queue depth asked for; 0 where the load has none.",
    "rate_per_s": "Rate offered; 0 where the load has none.",
    "repeat": "From 0.",
    "purpose": "`sweep` (listed in the study), `idle` (for a target), `search` or `hold`.",
    "seed": "Seed of the cell.",
    "order": "In which order cells on the real clock were run; 0 in the simulator.",
    "members": "Members of the array, redundancy included.",
    "user_bytes": "User capacity.",
    "member_bytes": "Size of a member.",
    "storage_efficiency": "Share of the members' capacity that holds user data, 0 to 1.",
    "elapsed_ns": "Length of the measuring window.",
    "tasks": "Tasks completed in it.",
    "all_requests": "Requests completed in it.",
    "all_bytes": "Their bytes.",
    "read_requests": "Reads completed in it.",
    "read_bytes": "Their bytes.",
    "write_requests": "Writes completed in it.",
    "write_bytes": "Their bytes.",
    "all_response_mean_ns": "Mean response time.",
    "all_service_mean_ns": "Mean service time.",
    "read_response_mean_ns": "Mean response time of reads.",
    "read_service_mean_ns": "Mean service time of reads.",
    "write_response_mean_ns": "Mean response time of writes.",
    "write_service_mean_ns": "Mean service time of writes.",
    "depth_mean": "Mean number of requests in flight.",
    "hold_depth_mean": "`adjust`: mean depth over the window.",
    "hold_depth_final": "`adjust`: depth at its end.",
    "hold_share_within_target": "`adjust`: share of responses within the target.",
    "stage_host_cpu_ns": "Mean a request: host work. Simulator.",
    "stage_accesses": "Mean a request: member operations. Modelled disks.",
    "stage_queue_ns": "Mean a request, summed over members: time in their queues.",
    "stage_overhead_ns": "The same: controller.",
    "stage_disconnect_ns": "The same: seek and rotation.",
    "stage_transfer_ns": "The same: transfer.",
    "stage_paired_ns": "The same: held between a prepaid pair's read and its write.",
    "interrupted": "The cell was stopped before its end; metrics leave it out.",
    "machine_busy_ns": "Time that all processors of the machine worked, whoever for. Live.",
    "kernel_threads_ns": "Processor time of the kernel's own threads, of which `kernel_threads` tells one by one. Live.",
    "energy_uj": "Energy of the machine's processors by their own counters (RAPL), in microjoules. Live.",
    "cpu_user_ns": "Processor time of raidlab's threads in their own code. Live.",
    "cpu_system_ns": "Processor time of raidlab's threads in the kernel. Live.",
    "voluntary_switches": "How often raidlab's threads gave up the processor to wait. Live.",
    "involuntary_switches": "How often it was taken from them. Live.",
    "operation": "`read` or `write`.",
    "time": "`response`, `service`, or `gap`: times of 1 ms or more in which nothing completed (operation `all`; live only).",
    "value_ns": "Upper end of the bucket: values are at most this.",
    "count": "Requests in the bucket.",
    "leaf": "Member, from 0 in depth-first order.",
    "busy_ns": "Time it was serving, summed over its `servers`. Modelled disks.",
    "seek_ns": "Part of it. Modelled disks.",
    "rotation_ns": "Part of it. Modelled disks.",
    "transfer_ns": "Part of it. Modelled disks.",
    "overhead_ns": "Part of it. Modelled disks.",
    "paired_ns": "Part of it. Simulator; 0 on emulated disks.",
    "wait_ns": "Time operations waited, summed: to the start of service on modelled disks, to completion on real ones.",
    "flash_host_bytes": "Bytes written to it, in whole mapping units. Modelled flash drives.",
    "flash_moved_bytes": "Bytes moved out of blocks before they were erased. Modelled flash drives.",
    "flash_padded_bytes": "Bytes left empty in pages that were programmed early. Modelled flash drives.",
    "flash_erased_blocks": "Blocks erased. Modelled flash drives.",
    "flash_die_busy_ns": "Time its busiest die sensed, programmed, erased or sent. Modelled flash drives.",
    "flash_channel_busy_ns": "Time its busiest channel sent. Modelled flash drives.",
    "flash_link_busy_ns": "Time its link to the host was taken, in the busier direction. Modelled flash drives.",
    "device": "The kernel's name of the device.",
    "station": "`host cpu`.",
    "visits": "Jobs served.",
    "servers": "Servers of the station.",
    "time_ns": "On the run's clock.",
    "requests": "Completed in this second.",
    "response_sum_ns": "Sum of their response times.",
    "snapshot_histograms.time_ns": "End of the second, on the run's clock.",
    "snapshot_histograms.count": "Requests of this second in the bucket.",
    "bytes": "Completed in this second.",
    "percentile": "Percentile held.",
    "target_ns": "Its target.",
    "method": "`search` or `adjust`.",
    "throughput_bytes_per_s": "At that depth, interpolated.",
    "throughput_low_bytes_per_s": "At the whole depth below.",
    "throughput_high_bytes_per_s": "At the whole depth above.",
    "bound": "`between`; `never_exceeded` up to the greatest depth; `always_exceeded` even at depth 1; `adjusted`.",
    "check": "Name of the engine's check.",
    "verdict": "`PASS`, `WARN` or `INVALID`.",
    "evidence": "A sentence with the figures.",
    "mend": "What to do about it.",
    # Where a column means something else in another table.
    "holds.depth": "Depth at which the target is met, interpolated between whole depths.",
    "members.reads": "Read operations on the member.",
    "members.writes": "Write operations on the member.",
    "members.read_bytes": "Bytes read from the member.",
    "members.write_bytes": "Bytes written to the member.",
    "devices.read_bytes": "Bytes it read, by the kernel's counters.",
    "devices.write_bytes": "Bytes it wrote, by the kernel's counters.",
    "asked_read_bytes": "Bytes of the reads that its targets completed.",
    "asked_write_bytes": "Bytes of the writes that its targets completed.",
    "access": "What an access was for: `inode`, `indirect`, `data`, `inode update`.",
    "found": "Times the host had it in memory, so that nothing was asked for.",
    "mean_ns": "Mean time from being asked for to being answered.",
    "size_bytes": "Size of a file.",
    "files": "Files of this size read.",
    "accesses.count": "Accesses asked for.",
    "accesses.bytes": "Their bytes.",
    "number": "Number of the stream in its cell.",
    "stream": "What the study calls it; of several alike each has its number.",
    "source": "Where its bytes came from: `memory`, `array`, `tape`, `way` (behind stations), `connection` (another machine).",
    "sink": "Where they went.",
    "thread": "What they are called: `md0_raid5`; of several on processors of their own what they have in common: `kworker`.",
    "kernel_threads.cpu_ns": "Their time on a processor. A thread that ended meanwhile is missing.",
    "streams.bytes": "Bytes that have arrived.",
    "streams.elapsed_ns": "From the start of all to its end, `sync_ns` included.",
    "sync_ns": "Until its sink had everything for good: what was written behind, the tape run to its end.",
    "source_busy_ns": "Time in which its source handed over.",
    "sink_busy_ns": "Time in which its sink took.",
    "source_stops": "How often the tape it came from stopped.",
    "sink_stops": "How often the tape it went to stopped.",
    "bound_by": "What took most of its time: `source`, `sink`, `pace`.",
    "records.file": "Its file in the folder `records`.",
    "records.requests": "Rows in it, those of the warm-up among them.",
    "records.lost": "Requests that left no row, because rows were written more slowly; always 0 in the simulator.",
    "records.bytes": "Length of the file.",
    "sha256": "What it was when it was written; a file that was changed since is refused.",
    "file_sizes.time_ns": "Their retrieval times, summed.",
    "members.servers": "Operations it serves at the same time: of a flash drive its `queue_depth`. Modelled disks.",
    "failed_ns": "When the member failed, from the beginning of the cell; null where it was missing from then on.",
    "begun_ns": "When a new one took its place; null where none did.",
    "whole_ns": "When that held all it should; null where it never did.",
    "stopped_ns": "When it was given up, because too little could be read of the others; null where it was not.",
    "rebuilt_bytes": "Bytes of it that had been rebuilt when the run was over, in order from its beginning.",
    "kind": "`check`, `repair` or `resync`.",
    "scrubs.begun_ns": "When it began, from the beginning of the cell.",
    "over_ns": "When it had gone over all; null where the run was over before.",
    "done_bytes": "Bytes that were gone over, of all members of redundant levels together.",
    "scrubs.all_bytes": "Bytes of these.",
    "mismatches": "Sectors in which redundancy did not agree.",
    "mended": "Sectors that could not be read and were written anew.",
    "left_out_bytes": "Bytes left out, since too little could be read of them.",
    "bare_bytes": "Bytes passed over, since no redundancy was left that could disagree.",
    "rebuilds.member_bytes": "Bytes that its place in the array has, without distributed spares that were free.",
    "stations.busy_ns": "Time its servers were busy, summed.",
    "stations.wait_ns": "Time visits waited for a server, summed.",
}

REQUESTS: dict[str, str] = {
    "arrival_ns": "When it was meant to arrive; of a later step of a task, when the one before it ended. All times count "
    "from the beginning of the cell, warm-up included.",
    "start_ns": "When it was issued. `end_ns - start_ns` is the service time.",
    "end_ns": "When it ended. `end_ns - arrival_ns` is the response time.",
    "volume": "Which volume of the array, from 0.",
    "operation": "`read`, `write` or `flush`.",
    "offset_bytes": "Its first byte within the volume.",
    "bytes": "How many it asked for.",
    "failed": "It was not served; then its times count nowhere else.",
    "measured": "It ended in the measuring window: the cell's figures count it. Else it belongs to the warm-up.",
}
TABLE_MEANINGS = {
    "cells": "one row a cell",
    "histograms": "one row a bucket of a cell's histogram",
    "members": "one row a cell and member",
    "devices": "one row a cell and block device below its targets, over the measuring window",
    "kernel_threads": "one row a cell and name of the kernel's own threads that worked meanwhile; live only",
    "stations": "one row a cell and station of the simulator",
    "snapshot_histograms": "one row a cell, second and bucket: response times of each second; live, and where members fail",
    "snapshots": "one row a cell and second",
    "holds": "one row a response-time target, array, workload and repeat",
    "accesses": "one row a cell of whole files and name of an access; simulator only",
    "records": "one row a cell whose requests were kept (`--records`)",
    "file_sizes": "one row a cell of whole files and size, where sizes are fixed or a table; simulator only",
    "streams": "one row a cell and stream",
    "rebuilds": "one row a cell and member that failed or was rebuilt",
    "scrubs": "one row a cell and scrub",
    "checks": "one row a cell and check the engine made itself",
}


KINDS: list[tuple[str, Any]] = [
    ("Sizes: `workload.size`", workload.Size),
    ("Addresses: `workload.address`", workload.Address),
    ("Mirror reads: `policy.mirror_read`", schema.MirrorRead),
    ("Throttles of a rebuild: `array.rebuild.throttle`", schema.Throttle),
]


def members_of(annotation: Any) -> list[tuple[str, type[BaseModel]]]:
    """The kinds of a union of tables that a `kind` tells apart."""
    if get_origin(annotation) is Annotated:
        return members_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [found for part in get_args(annotation) for found in members_of(part)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and "kind" in annotation.model_fields:
        return [(str(get_args(annotation.model_fields["kind"].annotation)[0]), annotation)]
    return []


def sentence(model: type) -> str:
    """The first sentence of a docstring, for a cell of a table."""
    return " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split()).replace("``", "`")


def lowered(text: str | None) -> str:
    """A sentence as part of another."""
    words = (text or "").replace("``", "`").strip().rstrip(".")
    return words[:1].lower() + words[1:]


def kinds() -> list[str]:
    """Sizes, addresses, arrivals and mirror reads."""
    lines: list[str] = []
    for heading, union in KINDS:
        rows = []
        for kind, model in members_of(union):
            keys = [
                f"`{name}` ({accepts(info.annotation, info.metadata)}): {lowered(info.description)}"
                for name, info in model.model_fields.items()
                if name != "kind"
            ]
            rows.append((f"`{kind}`", sentence(model), "; ".join(keys) or "-"))
        lines += [f"### {heading}", "", *table(("kind", "meaning", "keys"), rows), ""]
    return lines


def metric_list() -> list[str]:
    """The metrics."""
    rows = [(f"`{metric.kind}`", metric.unit, metric.meaning) for metric in metrics.METRICS]
    return table(("metric", "unit", "meaning"), rows)


def check_list() -> list[str]:
    """The checks."""
    rows = [
        (f"`{module.NAME}`", sentence(module), sentence(module.check), without_run(module)) for module in checks.CHECKS
    ]
    return table(("check", "question", "of a run", "`raidlab check`"), rows)


def without_run(module: Any) -> str:
    """What a check says where nothing was measured."""
    door = getattr(module, "judge", None) or getattr(module, "of_machine", None)
    return sentence(door) if door else "-"


def figure_list() -> list[str]:
    """The figures."""
    return table(("figure", "shows"), [(f"`{module.KIND}`", sentence(module)) for module in figures.FIGURES])


def device_kinds() -> list[str]:
    """The kinds of device models, as Python knows them."""
    return [", ".join(f"`{kind}`" for kind in device.KINDS)]


def device_files() -> list[str]:
    """The devices that come with raidlab, by the names that a study gives them."""
    from raidlab.study.device import load_device

    rows = []
    folder = DOCS.parent / "devices"
    for file in sorted(folder.rglob("*.toml")):
        name = str(file.relative_to(folder).with_suffix(""))
        # Files of parameters belong to the hardware of a study, and are no devices.
        if not name.endswith(".parameters"):
            found = load_device(name, folder.parent / "study.toml").parameters
            rows.append((f"`{name}`", f"`{found['kind']}`", str(found.get("description", ""))))
    return table(("device", "kind", "what it is"), rows)


def quantity_list() -> list[str]:
    """The kinds of quantities of a study's `quantities.toml`."""
    from raidlab.published import quantities

    rows = [(f"`{kind}`", sentence(room)) for kind, room in quantity_rooms(quantities)]
    return table(("kind", "what is taken from a run"), rows)


def quantity_rooms(quantities: Any) -> list[tuple[str, Any]]:
    """Kinds with their files, whose docstrings say what they are."""
    rooms = {room.KIND.kind: room for room in vars(quantities).values() if hasattr(room, "KIND")}
    return [(kind, rooms[kind]) for kind in quantities.KINDS]


def columns() -> list[str]:
    """Every table of a run folder."""
    names = {pl.UInt32: "u32", pl.UInt64: "u64", pl.Float64: "f64", pl.String: "text", pl.Boolean: "bool"}
    lines = []
    for name, schema_of in tables.TABLES.items():
        rows = [
            (f"`{column}`", names[kind], COLUMNS.get(f"{name}.{column}") or COLUMNS[column])
            for column, kind in schema_of.items()
        ]
        lines += [f"### {name}.parquet", "", f"{TABLE_MEANINGS[name].capitalize()}.", ""]
        lines += [*table(("column", "type", "meaning"), rows), ""]
    return lines


def request_columns() -> list[str]:
    """The rows of single requests."""
    names = {pl.UInt32: "u32", pl.UInt64: "u64", pl.String: "text", pl.Boolean: "bool"}
    rows = [(f"`{column}`", names[kind], REQUESTS[column]) for column, kind in tables.REQUEST_COLUMNS.items()]
    return table(("column", "type", "meaning"), rows)


def commands() -> Iterator[tuple[str, Any]]:
    """Every subcommand with its full name, in the order of the help screen."""
    import typer

    from raidlab.cli.app import app

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield name, command
            return
        for word in command.list_commands(None):
            yield from walk(f"{name} {word}", command.commands[word])

    yield from walk("raidlab", typer.main.get_command(app))


def cli() -> list[str]:
    """Every command with its arguments and options."""
    lines = []
    for name, command in commands():
        arguments = [item for item in command.params if item.param_type_name == "argument"]
        options = [item for item in command.params if item.param_type_name == "option" and "--help" not in item.opts]
        usage = " ".join([name, *(str(item.metavar) for item in arguments), *(["[OPTIONS]"] if options else [])])
        summary = " ".join((command.help or "").split("\n\n")[0].split())
        rows = [(f"`{item.metavar}`", item.help or "", "needed") for item in arguments]
        for item in options:
            metavar = f" {item.metavar}" if item.metavar else "" if item.is_flag else " VALUE"
            shown = "off" if item.is_flag else "none" if item.default in (None, "", (), []) else f"`{item.default}`"
            rows.append((f"`{item.opts[0]}{metavar}`", item.help or "", shown))
        lines += [f"### {name}", "", f"`{usage}`", "", summary, ""]
        if rows:
            lines += [*table(("argument or option", "meaning", "default"), rows), ""]
    return lines


def exit_codes() -> list[str]:
    """The exit codes."""
    from raidlab.errors import EXIT_CODES

    return table(("code", "meaning"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()])


PARTS = {
    "kinds": kinds,
    "metrics": metric_list,
    "checks": check_list,
    "figures": figure_list,
    "device_kinds": device_kinds,
    "device_files": device_files,
    "quantities": quantity_list,
    "columns": columns,
    "requests": request_columns,
    "cli": cli,
    "exit_codes": exit_codes,
    "python_api": python_api.lines,
}


def filled(text: str) -> str:
    """A page with its generated parts made anew."""
    return MARK.sub(lambda found: found[1] + "\n" + "\n".join(PARTS[found[2]]()).strip() + "\n\n" + found[3], text)


def main() -> int:
    """Write the pages, or check them."""
    stale = 0
    for page in sorted((DOCS / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if text != filled(text):
            stale += 1
            if "--check" in sys.argv:
                print(f"{page.relative_to(DOCS.parent)} is not up to date: run docs/generate.py")
            else:
                page.write_text(filled(text), encoding="utf-8")
    import man
    import need_file
    import rooms
    import study_file

    stale += man.main() + rooms.main() + study_file.main() + need_file.main()
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())

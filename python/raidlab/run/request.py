"""Write a cell as the engine takes it: the JSON text of the contract.

Invariants:

- The text is a pure function of the study, the cell and the members, with sorted keys: the same cell gives the same
  bytes, so a result can be traced to exactly what was asked.
- Everything the engine must know is in the text; it reads no file but the trace that the text names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.run.data_path import data_path
from raidlab.run.members import device_bytes
from raidlab.run.stream_cells import MODELLED, live_streams, simulated_streams, streams_of
from raidlab.study import Cell, LoadedStudy, budget
from raidlab.study.expand import NULL, Budget, load_of
from raidlab.study.schema import Policy
from raidlab.study.target import Amount, FileSystem, HostCost
from raidlab.study.workload import Address, FixedSize, Load, Size, Step, TableSize, TraceReplay, Workload

# A closed loop needs every slot filled several times before it is in its stride; a budget in requests that suits
# depth 1 would be spent before depth 256 has started. So both parts grow with the depth.
WARMUP_ROUNDS = 4
MEASURE_ROUNDS = 20
# The sector of plain targets as long as nobody has asked them.
PLAIN_SECTOR_BYTES = 512


def cell_request(
    loaded: LoadedStudy,
    cell: Cell,
    *,
    members: list[dict[str, Any]],
    sector_bytes: int,
    quick: bool,
    hold_target_ns: int | None = None,
    once: bool = False,
) -> str:
    """The request for one cell.

    Parameters
    ----------
    loaded : LoadedStudy
    cell : Cell
    members : list of dict
        One a leaf, or exactly one that stands for all.
    sector_bytes : int
    quick : bool
    hold_target_ns : int, optional
        The target of a cell whose load is a held percentile.
    once : bool
        A single request, to have the members opened and filled.

    Returns
    -------
    str
        JSON text.
    """
    study = loaded.study
    spent = budget(study, cell.target, quick=quick)
    if cell.workload.streams is not None and cell.target not in MODELLED and not once:
        policy = policy_text(cell.array.policy or study.policy)
        return json.dumps(live_streams(loaded, cell, policy, members, sector_bytes, quick=quick), sort_keys=True)
    live = cell.target in ("live", NULL, "emulated")
    depth = max(cell.load.depth, 1)
    request: dict[str, Any] = {
        "engine": "live" if live else "sim",
        "seed": cell.seed,
        "sector_bytes": sector_bytes,
        "tree": loaded.geometry.trees[cell.array.name],
        "policy": policy_text(cell.array.policy or study.policy),
        "members": members,
        "missing": [],
        "load": load_text(load_of(study, cell.array, cell.workload), cell, hold_target_ns),
        **({"warmup": {}, "measure": {"requests": 1}} if once else amounts(cell.workload, spent, depth)),
    }
    # One request that has the members made ready asks nothing of a trace.
    if cell.workload.trace is None or once:
        request["workload"] = workload_text(cell.workload, sector_bytes)
        if once and cell.workload.files is not None:
            # Files are as long as they are, to the byte; a request is whole sectors.
            request["workload"]["size"] = {"kind": "fixed", "bytes": sector_bytes}
    else:
        request["trace"] = trace_text(cell.workload.trace, loaded)
        request |= trace_amounts(cell.workload.trace, spent, quick=quick)
    if cell.target not in ("live", NULL):
        request["pair_pricing"] = study.pair_pricing(cell.target, cell.array)
    if cell.target == "live" and study.live is not None:
        request["verify"] = study.live.verify
    if cell.target == "emulated":
        request["speed"] = study.emulated.speed
    if not live:
        section = study.sim if cell.target == "sim" else study.original
        assert section is not None, "checked when the study was loaded"
        streams = streams_of(cell) if cell.workload.streams is not None else []
        request |= data_path(section, cell.array, loaded.geometry.trees[cell.array.name], len(streams))
        if streams:
            request |= simulated_streams(loaded, cell, section, request.get("path", {}), sector_bytes, quick=quick)
    # One request that has the members made ready asks for no files.
    if cell.workload.files is not None and not once:
        member_bytes = _member_bytes(loaded, cell, members)
        facts = loaded.geometry.facts(cell.array.name, member_bytes, sector_bytes)
        section = study.original if cell.target == "original" else study.sim
        # The work of a host is modelled where the host is.
        host = section.host if section is not None and not live else None
        system = study.file_system_on("live" if cell.target == NULL else cell.target)
        request["files"] = files_text(cell.workload, system, host, int(facts["user_bytes"]))
    return json.dumps(request, sort_keys=True)


def direct_request(
    loaded: LoadedStudy,
    cell: Cell,
    *,
    targets: list[dict[str, Any]],
    quick: bool,
    sector_bytes: int = PLAIN_SECTOR_BYTES,
    hold_target_ns: int | None = None,
) -> dict[str, Any]:
    """The request for a cell of a study over plain targets instead of its array, one a volume.

    Parameters
    ----------
    loaded : LoadedStudy
    cell : Cell
    targets : list of dict
        As the direct engine takes them.
    quick : bool
    sector_bytes : int
        What is aligned where the study aligns to sectors.
    hold_target_ns : int, optional

    Returns
    -------
    dict
        The words of a cell of the direct engine.
    """
    if cell.workload.streams is not None:
        place = ("workload", loaded.study.workload.index(cell.workload), "streams")
        message = "streams do not run on plain targets"
        raise InputError([loaded.problem(place, message, "'raidlab measure streams' for streams between any two ends")])
    if cell.workload.files is not None:
        place = ("workload", loaded.study.workload.index(cell.workload), "files")
        message = "whole files are not read from plain targets"
        raise InputError([loaded.problem(place, message, "'raidlab measure files' for files on a file system")])
    if cell.workload.trace is not None:
        place = ("workload", loaded.study.workload.index(cell.workload), "trace")
        message = "a trace is not replayed on plain targets"
        raise InputError([loaded.problem(place, message, "'raidlab run', on an array of one member")])
    spent = budget(loaded.study, cell.target, quick=quick)
    depth = max(cell.load.depth, 1)
    return {
        "engine": "direct",
        "seed": cell.seed,
        "targets": targets,
        "workers": 1,
        "interface": "auto",
        "buffered": False,
        "load": load_text(load_of(loaded.study, cell.array, cell.workload), cell, hold_target_ns),
        "workload": workload_text(cell.workload, sector_bytes),
        **amounts(cell.workload, spent, depth),
    }


def _member_bytes(loaded: LoadedStudy, cell: Cell, members: list[dict[str, Any]]) -> int:
    """The size of an array's members, of which files fill a share."""
    if cell.target in MODELLED:
        return loaded.geometry.device(cell.target, cell.array.name).capacity_bytes
    if cell.target == "emulated":
        return loaded.geometry.devices["emulated"].capacity_bytes
    # Block devices keep their own size.
    sizes = [
        int(member["size_bytes"]) if "size_bytes" in member else device_bytes("--on", Path(member["path"]))
        for member in members
    ]
    return min(sizes)


def files_text(workload: Workload, system: FileSystem | None, host: HostCost | None, user_bytes: int) -> dict[str, Any]:
    """Whole files in the engine's words."""
    files = workload.files
    assert files is not None, "the caller looked"
    text: dict[str, Any] = {"numbers": files.numbers, "lists": files.lists, "order": files.order}
    if files.fill is not None:
        text["total_bytes"] = int(files.fill * user_bytes)
    else:
        text["count"] = files.count
    if system is None and files.run is not None:
        system = FileSystem()
    if system is not None:
        text["file_system"] = {
            "block_bytes": system.block,
            "cluster_bytes": system.cluster,
            "read_ahead_clusters": system.read_ahead_clusters,
            "direct_blocks": system.direct_blocks,
            "blocks_per_indirect": system.blocks_per_indirect,
            "run_bytes": system.run if files.run is None else None if files.run == "whole" else files.run,
            "group_bytes": system.group,
            "group_header_blocks": system.group_header_blocks,
            "inodes_per_block": system.inodes_per_block,
            "inode_cache_blocks": system.inode_cache // system.block,
            "inode_update_s": None if system.inode_update is None else system.inode_update / 1e9,
        }
    if host is not None:
        text["reading"] = {"open_us": host.file / 1000, "us_per_kib": host.file_per_kib / 1000}
    return text


def trace_text(trace: TraceReplay, loaded: LoadedStudy) -> dict[str, Any]:
    """A trace in the engine's words."""
    text: dict[str, Any] = {
        "path": str(loaded.trace_file(trace)),
        "volumes": trace.volumes,
        "others": trace.others,
        "beyond": trace.beyond,
        "only": trace.only,
    }
    return text if trace.format is None else text | {"format": trace.format}


def trace_amounts(trace: TraceReplay, spent: Budget, *, quick: bool) -> dict[str, Any]:
    """How much of a trace is replayed: as it says itself, for the budgets of drawn requests have no end to reach."""
    measure = {} if trace.requests is None else {"requests": trace.requests}
    if quick:
        most = amount_text(spent.measure, 1)
        measure = most | {key: min(count, most.get(key, count)) for key, count in measure.items()}
    return {"warmup": {"requests": trace.warmup} if trace.warmup else {}, "measure": measure}


def policy_text(policy: Policy) -> dict[str, Any]:
    """A policy in the engine's words."""
    return {
        "mirror_read": policy.mirror_read.model_dump(),
        "parity_write": policy.parity_write,
        "parity_write_tie": policy.parity_write_tie,
        "parity_read": policy.parity_read,
    }


def load_text(load: Load, cell: Cell, hold_target_ns: int | None) -> dict[str, Any]:
    """A cell's load in the engine's words."""
    if cell.load.kind == "trace":
        assert cell.workload.trace is not None, "a cell of a trace comes from one"
        return {"kind": "open", "arrival": {"kind": "trace", "speed": cell.workload.trace.speed}}
    if cell.load.kind == "open":
        assert load.open is not None, "an open cell comes from an open load"
        arrival: dict[str, Any] = {"kind": load.open.arrival, "rate_per_s": cell.load.rate_per_s}
        if load.open.cv2 is not None:
            arrival["cv2"] = load.open.cv2
        return {"kind": "open", "arrival": arrival}
    if cell.load.kind == "hold":
        assert load.hold is not None and hold_target_ns is not None, "a held cell comes from a hold"
        return {
            "kind": "hold",
            "percentile": load.hold.percentile,
            "target_ms": hold_target_ns / 1e6,
            "initial_depth": 1,
            "max_depth": load.hold.max_depth,
        }
    return {"kind": "closed", "depth": cell.load.depth}


def workload_text(workload: Workload, sector_bytes: int) -> dict[str, Any]:
    """A workload in the engine's words."""
    text: dict[str, Any] = {
        "read_fraction": workload.read,
        "size": size_text(workload.size),
        "address": _address(workload.address, align_bytes(workload, sector_bytes)),
    }
    if workload.volumes != "uniform":
        text["volumes"] = workload.volumes if workload.volumes == "even" else workload.volumes.model_dump()
    if workload.span < 1:
        text["span"] = workload.span
    if workload.task is not None:
        text["task"] = [_step(step, workload, sector_bytes) for step in workload.task]
    return text


def align_bytes(workload: Workload, sector_bytes: int) -> int:
    """What starts are aligned to: as the study says; else a fixed size, as fio does; else the sector."""
    if workload.align == "sector":
        return sector_bytes
    if workload.align is not None:
        return workload.align
    return workload.size.bytes if workload.size.kind == "fixed" else sector_bytes


def size_text(size: Size) -> dict[str, Any]:
    """A size in the engine's words."""
    if isinstance(size, FixedSize | TableSize):
        return size.model_dump()
    text: dict[str, Any] = {"kind": size.kind, "mean_bytes": size.mean}
    if size.kind == "normal":
        text["sd_bytes"] = size.sd
    if size.kind == "lognormal":
        text["sigma"] = size.sigma
    return text


def _address(address: Address, align: int) -> dict[str, Any]:
    """Sizes get their unit in the engine's names; stripes and given places need no other alignment."""
    text: dict[str, Any] = {
        f"{key}_bytes" if key in ("chunk", "stride", "stripe", "local_sd") else key: value
        for key, value in address.model_dump().items()
    }
    if address.kind not in ("aligned_stripe", "listed"):
        text["align_bytes"] = align
    return text


def _step(step: Step, workload: Workload, sector_bytes: int) -> dict[str, Any]:
    text: dict[str, Any] = {"op": step.op}
    if step.size is not None:
        text["size"] = size_text(step.size)
    if step.address is not None:
        text["address"] = _address(step.address, align_bytes(workload, sector_bytes))
    if step.same_extent_as is not None:
        text["same_extent_as"] = step.same_extent_as
    return text


def amounts(workload: Workload, spent: Budget, depth: int) -> dict[str, Any]:
    """How much of a workload is run and how much of it is discarded before, in the engine's words."""
    if workload.count is not None:
        return {"warmup": {}, "measure": {"requests": workload.count * depth}}
    return {
        "warmup": amount_text(spent.warmup, WARMUP_ROUNDS * depth),
        "measure": amount_text(spent.measure, MEASURE_ROUNDS * depth),
    }


def amount_text(amount: Amount, least_requests: int) -> dict[str, Any]:
    """How much is run, in the engine's words; never fewer requests than ``least_requests``."""
    text: dict[str, Any] = {}
    if amount.requests is not None:
        text["requests"] = max(amount.requests, least_requests)
    if amount.duration is not None:
        text["duration_s"] = amount.duration / 1e9
    return text

"""Cells of the simulator that mean what a closed form speaks of: the simplest devices, the simplest loads.

Invariant: nothing here runs; a cell is the dictionary that the engine takes.
"""

from __future__ import annotations

from raidlab.results.answer import CellAnswer
from raidlab.study.cell import Opaque
from raidlab.study.tree import Tree

SECTOR_BYTES = 512
DISK_BYTES = 1 << 30
FLASH_PAGE_BYTES = 4096
MEMBER: Tree = {"kind": "independent", "children": [{"kind": "member"}]}


def fixed(service_us: float) -> Opaque:
    """A disk that serves one access at a time, each in the same time."""
    return {"kind": "fixed", "capacity_bytes": DISK_BYTES, "read_us": service_us, "write_us": service_us}


def exponential(mean_us: float) -> Opaque:
    """A disk whose service times are exponential."""
    return _drawn({"kind": "exponential", "mean_us": mean_us})


def erlang(mean_us: float, stages: int) -> Opaque:
    """A disk whose service times vary less: a squared coefficient of variation of one over the stages."""
    return _drawn({"kind": "erlang", "mean_us": mean_us, "stages": stages})


def hyperexponential(mean_us: float, cv2: float) -> Opaque:
    """A disk whose service times vary more: a squared coefficient of variation above 1."""
    return _drawn({"kind": "h2", "mean_us": mean_us, "cv2": cv2})


def _drawn(times: Opaque) -> Opaque:
    return {"kind": "random", "capacity_bytes": DISK_BYTES, "read": times, "write": times}


def disk(revolution_ms: float, seek_ms: tuple[float, float, float], turnaround_ms: float) -> Opaque:
    """A disk of equal tracks of 128 sectors whose seeks grow in proportion to the distance: shortest, mean, longest."""
    least, mean, most = seek_ms
    return {
        "kind": "hdd",
        "revolution_ms": revolution_ms,
        "heads": 4,
        "zones": [{"cylinders": 3000, "sectors_per_track": 128}],
        "seek": {"kind": "linear", "min_ms": least, "avg_ms": mean, "max_ms": most},
        "pair_turnaround_ms": turnaround_ms,
    }


def flash(pages_per_block: int, blocks: int, spare_percent: float, victim: str) -> Opaque:
    """A flash drive of one die in its steady state, whose data fill so many blocks."""
    return {
        "kind": "ssd",
        "capacity_bytes": blocks * pages_per_block * FLASH_PAGE_BYTES,
        "channels": 1,
        "dies_per_channel": 1,
        "pages_per_block": pages_per_block,
        "page_bytes": FLASH_PAGE_BYTES,
        "mapping_bytes": FLASH_PAGE_BYTES,
        "read_us": 50.0,
        "program_us": 500.0,
        "erase_ms": 3.0,
        "channel_mb_s": 400.0,
        "link_mb_s": 500.0,
        "spare_percent": spare_percent,
        "cache_bytes": 1 << 20,
        "victim": victim,
        "initial": "steady",
    }


def stripe(members: int, chunk_bytes: int = 65536) -> Tree:
    """RAID 0."""
    return {"kind": "stripe", "chunk_bytes": chunk_bytes, "children": [{"kind": "member"}] * members}


def cell(
    device: Opaque,
    tree: Tree,
    load: Opaque,
    *,
    size_bytes: int = 4096,
    read_fraction: float = 1.0,
    requests: int = 200_000,
    seed: int = 1,
) -> Opaque:
    """A cell of aligned requests of one size at uniformly drawn places."""
    return {
        "engine": "sim",
        "seed": seed,
        "sector_bytes": SECTOR_BYTES,
        "tree": tree,
        "members": [device],
        "load": load,
        "workload": {
            "read": read_fraction,
            "size": {"kind": "fixed", "bytes": size_bytes},
            "address": {"kind": "uniform"},
        },
        "warmup": {"requests": requests // 10},
        "measure": {"requests": requests},
    }


def poisson(rate_per_s: float) -> Opaque:
    """An open loop."""
    return {"kind": "open", "arrival": {"kind": "poisson", "rate_per_s": rate_per_s}}


def closed(depth: int) -> Opaque:
    """A closed loop."""
    return {"kind": "closed", "depth": depth}


def mean_response_us(answer: CellAnswer) -> float:
    """The mean response time of a cell."""
    return answer["all"]["response_mean_ns"] / 1e3


def requests_per_s(answer: CellAnswer) -> float:
    """The throughput of a cell."""
    return answer["all"]["requests"] / (answer["elapsed_ns"] / 1e9)


def write_amplification(answer: CellAnswer) -> float:
    """Bytes that flash drives programmed over bytes that they were given."""
    programmed = sum(
        member["flash_host_bytes"] + member["flash_moved_bytes"] + member["flash_padded_bytes"]
        for member in answer["members"]
    )
    return programmed / sum(member["write_bytes"] for member in answer["members"])


def mean_utilisation(answer: CellAnswer) -> float:
    """Busy time of the members over the time they had."""
    return busy_ns(answer) / (len(answer["members"]) * answer["elapsed_ns"])


def busy_ns(answer: CellAnswer) -> int:
    """For how long all modelled members together were busy."""
    return sum(member["busy_ns"] or 0 for member in answer["members"])

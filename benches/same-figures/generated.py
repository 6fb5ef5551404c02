"""Fifty small studies that between them use every level, device, policy, path, trace and stream of the simulator.

Purpose: a change of how raidlab is built must not change what it computes, and five published studies do not reach
every corner. Each study here is made from its number alone.

Invariants:

- Study i is a function of i: `random.Random` with an integer seed draws the same on every version of Python.
- Every value of every list below is used by at least one study, for the lists are gone through in turn, and only their
  combination is drawn.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

COUNT = 50
ROOT = Path(__file__).resolve().parents[2]
Toml = dict[str, Any]

TREES = [
    "concat(1)",
    "concat(3)",
    "independent(3)",
    "independent(2*raid5(3, chunk=16KiB))",
    "raid0(4, chunk=16KiB)",
    "raid1(2)",
    "raid1(3)",
    "raid10(6, chunk=32KiB)",
    "raid01(4, chunk=32KiB)",
    "stripe(3*mirror(2), chunk=128KiB)",
    "mirror(2*raid5(3, chunk=64KiB))",
    "concat(raid0(2, chunk=64KiB), raid0(2, chunk=64KiB))",
    "raid50(6, chunk=32KiB)",
    "raid60(8, chunk=16KiB)",
    "raid0(5, chunk=1MiB)",
    *(
        f"{level}, chunk={chunk}, rotation={rotation})"
        for level, chunk in (("raid5(5", "64KiB"), ("raid6(6", "32KiB"))
        for rotation in (
            "left_symmetric",
            "left_asymmetric",
            "right_symmetric",
            "right_asymmetric",
            "parity_first",
            "parity_last",
        )
    ),
]
DEVICES = [
    "hdd-7200-bare",
    "ssd-sata",
    "ssd-nvme",
    "fixed-100us",
    "original/amdahl6380",
    "original/fc-10k",
    "original/fc-15k",
    "original/hsg80-disk",
    "original/jlab-disk",
    "original/st31200w",
    "original/st3500641as",
]
SCHEDULERS = ["fifo", "sstf", "look", "clook", "sptf", {"vscan": {"percent": 20}}, "kyber_batches"]
BUFFERS = [
    {"segments": 4, "segment_sectors": 512, "read_ahead": "segment", "write_back": "none"},
    {"segments": 8, "segment_sectors": 256, "read_ahead": "track", "write_back": "sequential"},
    {"segments": 2, "segment_sectors": 1024, "read_ahead": "cylinder", "write_back": "full", "combine_writes": True},
    {
        "segments": 3,
        "segment_sectors": 700,
        "read_ahead": "next_track",
        "write_back": "none",
        "read_ahead_on_hit": True,
    },
]
SSD_VARIANTS = [
    {"victim": "fifo"},
    {"placement": "by_address"},
    {"initial": "filled"},
    {"initial": "fresh", "cache_bytes": 0},
]
TABLES: list[Toml] = [
    {
        "kind": "random",
        "read": {"kind": "exponential", "mean_us": 5000.0},
        "write": {"kind": "erlang", "mean_us": 6000.0, "stages": 3},
    },
    {
        "kind": "random",
        "read": {"kind": "h2", "mean_us": 3000.0, "cv2": 4.0},
        "write": {"kind": "exponential", "mean_us": 700.0},
        "servers": 2,
    },
    {
        "kind": "empirical",
        "read": [[0.0, 90.0], [0.9, 400.0], [1.0, 9000.0]],
        "write": [[0.0, 30.0], [1.0, 800.0]],
        "servers": 4,
    },
    {
        "kind": "fixed",
        "read_us": 200.0,
        "write_us": 300.0,
        "read_ns_per_byte": 1.5,
        "write_ns_per_byte": 2.0,
        "servers": 2,
    },
]
MIRROR_READS: list[Any] = [
    "primary",
    "round_robin",
    "round_robin_sequential",
    "shortest_queue",
    "nearest",
    {"kind": "nearest", "queue_override": 2},
]
PARITY_WRITES = ["read_modify_write", "reconstruct_write", "fewest_accesses"]
TIES = ["read_modify_write", "reconstruct_write"]
PARITY_READS = ["skip", "read_through"]
PRICINGS = ["queued", "head", "prepaid"]
SIZES: list[Any] = [
    "8KiB",
    {"kind": "fixed", "bytes": "96KiB"},
    {"kind": "exponential", "mean": "16KiB"},
    {"kind": "normal", "mean": "48KiB", "sd": "12KiB"},
    {"kind": "lognormal", "mean": "24KiB", "sigma": 0.8},
    {"kind": "table", "bytes": ["4KiB", "64KiB", "1MiB"], "weights": [6, 3, 1]},
    "4KiB",
    "9MiB",
]
ADDRESSES: list[Any] = [
    "uniform",
    {"kind": "sequential", "streams": 3},
    {"kind": "zipf", "theta": 0.9},
    {"kind": "hot_members", "weights": [5, 1, 1, 2], "chunk": "64KiB"},
    {"kind": "strided", "stride": "1MiB"},
    {"kind": "mixed", "sequential": 0.3, "local": 0.4, "local_sd": "2MiB"},
    {"kind": "listed", "offset_bytes": [0, 1048576, 8192, 40960, 104857600]},
    {"kind": "aligned_stripe", "stripe": "256KiB", "chunk": "64KiB"},
]
LOADS: list[Toml] = [
    {"depths": [1, 7]},
    {"depths": [4, 32]},
    {"open": {"arrival": "poisson", "rates_per_s": [20.0, 60.0]}},
    {"open": {"arrival": "uniform", "rates_per_s": [30.0]}},
    {"open": {"arrival": "h2", "rates_per_s": [25.0], "cv2": 6.0}},
    {"depths": [2], "hold": {"percentile": 90, "target": "120ms", "method": "search", "max_depth": 64}},
    {"depths": [2], "hold": {"percentile": 80, "target": "150ms", "method": "adjust", "max_depth": 64}},
    {"depths": [3], "hold": {"target": {"times_idle": 4, "of": "a0"}, "max_depth": 32}},
]
TRACE_FORMATS = ["msr", "spc", "blkparse", "fio_v2", "fio_v3", "disksim", "disksim_validation", "alibaba", "tencent"]
STATIONS = [{"name": "node"}, {"name": "bus", "servers": 2}, {"name": "link", "each": "volume"}]
REQUEST_PATH: list[Toml] = [
    {"station": "node", "phase": "command", "cost": "120us", "times": "exponential"},
    {"station": "link", "phase": "data", "mb_s": 90.0, "cost": "10us"},
    {"station": "node", "phase": "status", "cost": "30us", "on": "read"},
]
MEMBER_PATH: list[Toml] = [
    {"station": "bus", "phase": "command", "cost": "40us"},
    {"station": "bus", "phase": "data", "mb_s": 160.0, "only": [0]},
    {"station": "bus", "phase": "status", "cost": "15us", "on": "write"},
]
CACHE: Toml = {
    "line": "8KiB",
    "fetch": "64KiB",
    "read_room": "4MiB",
    "read_ahead": "256KiB",
    "write_back_up_to": "64KiB",
    "dirty_room": "2MiB",
    "destages": 2,
    "copy_path": [{"station": "node", "phase": "data", "mb_s": 200.0, "on": "write"}],
}
HOST: Toml = {"cpus": 2, "request": "50us", "access": "20us", "completion": "15us", "parity_per_kib": "2us"}
ENDS: list[Toml] = [
    {"name": "tape", "tape": {"mb_s": 6.0, "buffer": "1MiB", "start_stop": "300ms"}},
    {"name": "far", "path": [{"station": "node", "phase": "data", "mb_s": 25.0}]},
]


def toml_value(value: object) -> str:
    """A value as TOML writes it in one line."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value)
        case list():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {toml_value(item)}' for key, item in value.items())} }}"
    return repr(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def toml_text(study: Toml) -> str:
    """A study as the text of its file."""
    return "".join(f"{_key(key)} = {toml_value(value)}\n" for key, value in study.items())


def _device_table(name: str) -> Toml:
    """The parameters of a device file, without where they come from."""
    table = tomllib.loads((ROOT / "devices" / f"{name}.toml").read_text())
    table.pop("provenance", None)
    return table


def device(index: int) -> str | Toml:
    """Device `index` of the round through all files, tables, schedulers, buffers and variants."""
    disk = _device_table("hdd-7200-bare")
    choices: list[Callable[[], str | Toml]] = [
        *(lambda name=name: name for name in DEVICES),
        *(
            lambda table=table: {"name": "table", "capacity_bytes": 4_000_000_000, "sector_bytes": 512, **table}
            for table in TABLES
        ),
        *(lambda scheduler=scheduler: disk | {"scheduler": scheduler} for scheduler in SCHEDULERS),
        *(lambda buffer=buffer: disk | {"buffer": buffer, "queue_depth": 8} for buffer in BUFFERS),
        *(lambda variant=variant: _device_table("ssd-sata") | variant for variant in SSD_VARIANTS),
    ]
    return choices[index % len(choices)]()


def _modelled(i: int, draw: random.Random) -> Toml:
    """The simulated target of study `i`."""
    member = device(i)
    turns = member["kind"] == "hdd" if isinstance(member, dict) else _device_table(member)["kind"] == "hdd"
    # Only what turns can stay with an extent until it comes round again.
    target: Toml = {"device": member, "pair_pricing": PRICINGS[i % 3] if turns else PRICINGS[i % 2]}
    if i % 2:
        target["host"] = HOST
    if i % 4 in (1, 2) and i % 3 != 2:
        target |= {"station": STATIONS, "request_path": REQUEST_PATH, "member_path": MEMBER_PATH}
        target |= {"transfer_quantum": draw.choice(["16KiB", "256KiB"]), "member_quantum": "32KiB"}
        if i % 4 == 2:
            target["cache"] = [CACHE]
        else:
            target["parity"] = {"station": "node", "per_kib": "3us"}
    return target | {"warmup": {"requests": 100}, "measure": {"requests": 600}, "repeats": 2}


def _policy(i: int) -> Toml:
    """The policies of study `i`."""
    return {
        "mirror_read": MIRROR_READS[i % len(MIRROR_READS)],
        "parity_write": PARITY_WRITES[i % 3],
        "parity_write_tie": TIES[i // 3 % 2],
        "parity_read": PARITY_READS[i // 2 % 2],
    }


def requests(i: int) -> Toml:
    """A study of requests."""
    draw = random.Random(i)
    load = dict(LOADS[i % len(LOADS)])
    drawn: Toml = {
        "name": "drawn",
        "read": draw.choice([0, 0.3, 0.67, 1]),
        "size": SIZES[i % len(SIZES)],
        "address": ADDRESSES[(i // 2) % len(ADDRESSES)],
        "align": "4KiB",
        "span": draw.choice([1.0, 0.5, 0.1]),
    }
    if drawn["address"] in (ADDRESSES[6], ADDRESSES[3]):
        drawn["span"] = 1.0
    task: Toml = {
        "name": "update",
        "read": 0.5,
        "size": "16KiB",
        "task": [
            {"op": "read"},
            {"op": "write", "same_extent_as": 0},
            {"op": "write", "size": "4KiB", "address": "uniform"},
        ],
    }
    return {
        "load": load,
        "policy": _policy(i),
        "array": [{"name": f"a{at}", "tree": TREES[(i + at * 9) % len(TREES)]} for at in range(3)],
        "workload": [drawn] if "hold" in load or i % 5 else [drawn, task],
        "sim": _modelled(i, draw),
    }


def replay(i: int) -> Toml:
    """A study of a trace, in the format whose turn it is."""
    draw = random.Random(i)
    form = TRACE_FORMATS[i % len(TRACE_FORMATS)]
    stamps: Toml = {
        "name": "stamps",
        "trace": {"file": f"{form}.trace", "format": form, "beyond": "wrap", "speed": 2.0},
    }
    fast: Toml = {
        "name": "fast",
        "trace": {"file": f"{form}.trace", "pace": "depths", "beyond": "wrap", "only": "reads"},
    }
    return {
        "load": {"depths": [4]},
        "policy": _policy(i),
        "array": [{"name": f"a{at}", "tree": TREES[(i * 2 + at * 5) % len(TREES)]} for at in range(2)],
        "workload": [stamps, fast],
        "sim": _modelled(i, draw),
    }


def files(i: int) -> Toml:
    """A study of whole files."""
    draw = random.Random(i)
    order = ["once", "shuffled", "random"][i % 3]
    target = _modelled(i, draw)
    target.pop("cache", None)
    target["file_system"] = {"run": "64KiB", "inode_cache": "64KiB", "inode_update": "5s"} if i % 2 else {}
    return {
        "load": {"depths": [1, 4]},
        "policy": _policy(i),
        "array": [{"name": f"a{at}", "tree": TREES[(i * 3 + at * 7) % len(TREES)]} for at in range(2)],
        "workload": [
            {
                "name": "files",
                "read": 1,
                "size": SIZES[i % 6],
                "files": {"count": 300, "order": order, "numbers": "drawn", "lists": 4},
            }
        ],
        "sim": target,
    }


def streams(i: int) -> Toml:
    """A study of streams between memory, the array, a tape and another machine."""
    draw = random.Random(i)
    target = _modelled(i, draw) | {"station": STATIONS, "end": ENDS, "end_quantum": "64KiB", "file_system": {}}
    for key in ("cache", "parity", "request_path", "member_path"):
        target.pop(key, None)
    sides = [("memory", "array"), ("array", "memory"), ("array", "tape"), ("tape", "array"), ("array", "far")]
    return {
        "load": {"depths": [1, 3]},
        "policy": _policy(i),
        "array": [{"name": f"a{at}", "tree": TREES[(4 + i * 2 + at * 4) % len(TREES)]} for at in range(2)],
        "workload": [
            {
                "name": f"pair {at}",
                "read": 0.5,
                "size": draw.choice(["64KiB", "256KiB"]),
                "streams": [
                    {
                        "name": f"{source} to {sink}",
                        "source": source,
                        "sink": sink,
                        "bytes": "8MiB",
                        "begin": 0.2,
                        "buffers": 1 + (i + at + number) % 3,
                        "direct": bool((i + at) % 2),
                    }
                    for number, (source, sink) in enumerate((sides[(i + at) % 5], sides[(i + at + 1) % 5]))
                ],
            }
            for at in range(2)
        ],
        "sim": target,
    }


def study(i: int) -> Toml:
    """Study `i`: six of ten are requests, the rest traces, whole files and streams."""
    kind = {6: replay, 7: replay, 8: files, 9: streams}.get(i % 10, requests)
    return {"name": f"generated-{i}", "title": f"generated study {i}"} | kind(i)


def validation_lines(count: int = 400) -> str:
    """A trace in the one format that is only read: what a disk took, one request at a time."""
    draw = random.Random(4)
    return "".join(
        f"{draw.choice('RW')} Miss {draw.randrange(0, 2**22, 8)} {draw.randint(1, 128)}"
        f" {draw.uniform(2000, 20000):.1f} {draw.uniform(0, 5000):.1f}\n"
        for _ in range(count)
    )


def trace_lines(count: int = 400) -> str:
    """The trace that all formats are written from: requests on one volume, as the Cambridge traces have them."""
    draw = random.Random(2007)
    ticks, lines = 128_166_372_000_000_000, []
    for _ in range(count):
        ticks += int(draw.expovariate(1 / 150_000))
        kind = draw.choice(["Read", "Read", "Write"])
        offset, size = draw.randrange(0, 2**31, 4096), 512 * draw.randint(1, 256)
        lines.append(f"{ticks},box,0,{kind},{offset},{size},{draw.randint(1000, 90000)}\n")
    return "".join(lines)

"""What a trial is given: a target that is open to reading, and perhaps to writing, and how to run requests on it."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raidlab.results.facts import SpeedRatio
from raidlab.run.runner import run_request
from raidlab.stats import ratio_interval


@dataclass(frozen=True)
class Probed:
    """A target under trial.

    Attributes
    ----------
    path : pathlib.Path
    member : dict
        As the engine takes it.
    size_bytes : int
    disks : list of str
        The physical disks that it lies on.
    writable : bool
        Whether it may be overwritten: a file of raidlab's own, or a device given up by name.
    """

    path: Path
    member: dict[str, Any]
    size_bytes: int
    disks: list[str]
    writable: bool


def scan(target: Probed, offset: int, length: int, *, depth: int = 1, block: int, seed: int = 1, **more: Any) -> float:
    """Go once through a part of a target from front to back; the rate in bytes a second, 0 if nothing was done.

    ``more`` goes into the request: ``read`` of its workload, ``compressible_percent`` of what it writes.
    """
    reads = float(more.pop("read", 1.0))
    member = target.member if reads < 1 else {key: word for key, word in target.member.items() if key != "destroy"}
    request = {
        "engine": "direct",
        "seed": seed,
        "targets": [member],
        "spans": [{"offset_bytes": offset, "size_bytes": length}],
        "load": {"kind": "closed", "depth": depth},
        "workload": {
            "read": reads,
            "size": {"kind": "fixed", "bytes": block},
            "address": {"kind": "sequential"},
        },
        "measure": {"requests": length // block},
        # Nothing is read but what is asked for: what moves at the disks is counted.
        "verify": "off",
        **more,
    }
    answer = run_request(json.dumps(request))
    return float(answer["all"]["bytes"] / answer["elapsed_ns"] * 1e9) if answer["elapsed_ns"] else 0.0


def compared(own: list[float], other: list[float]) -> SpeedRatio | None:
    """How many times as fast: the median ratio of the pairs, and its 95 % interval; None where there is none."""
    interval = ratio_interval(own, other)
    if interval is None:
        return None
    ratio = statistics.median(a / b for a, b in zip(own, other, strict=True))
    return {"ratio": ratio, "low": interval[0], "high": interval[1], "pairs": len(own)}

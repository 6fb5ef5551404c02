"""A device by itself: what it gives at each depth, at each place and over each distance, simulated as a study has it.

Invariant: what is drawn of a device is what every study of it would find; seeks alone are asked of single requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from raidlab.analysis.metrics import Analysis, Point
from raidlab.api import analyse, run_study
from raidlab.formats.toml import toml_text
from raidlab.reading import Plain
from raidlab.study.device import DeviceModel
from raidlab.study.load import load_study_text

SMALL_BYTES = 4096
PERCENTILES = (50.0, 90.0)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
_STREAM_BYTES, _STREAM_DEPTH, _PLACES = 256 * 1024, 2, 9
# Long enough that a write cache is full before anything is counted.
_RANDOM: Mapping[str, Plain] = {"warmup": {"requests": 2000}, "measure": {"requests": 4000}}
_STREAM_WARM_UP, _STREAM_MEASURED = 100, 400
# Each distance from so many places, and seeks of a share of the device.
_FROM, _SHARES = 24, tuple(float(share) for share in np.geomspace(1e-5, 0.9, 40))


@dataclass(frozen=True)
class LoadAlone:
    """What a device does with so many requests outstanding."""

    depth: int
    per_s: float
    """Requests a second."""
    within_ms: dict[float, float]
    """By percentile, response times."""


@dataclass(frozen=True)
class Alone:
    """What a device does by itself."""

    random: dict[str, list[LoadAlone]]
    """Of "reads" and, where the model takes them, "writes" of `SMALL_BYTES` anywhere: one for each of `DEPTHS`."""
    rate_mb_s: dict[float, float]
    """What one stream reads where the share of the device's addresses before it is so large; empty but for disks."""
    seek_ms: dict[float, float]
    """The mean time of the arm over a share of the addresses; empty but for disks."""


@contextmanager
def run_alone(
    parameters: Mapping[str, Plain],
    workloads: Sequence[Mapping[str, Plain]],
    depths: Iterable[int],
    span: Mapping[str, Plain],
    seed: int = 1,
) -> Iterator[Analysis]:
    """One device under some workloads, for as long as it is looked at.

    ``span`` says how long: ``warmup``, ``measure`` and ``repeats`` of a study's target.
    """
    document: dict[str, Plain] = {
        "name": "alone",
        "title": "A device by itself",
        "on": ["sim"],
        "seed": seed,
        "array": [{"name": "device", "tree": "independent(1)"}],
        "workload": [dict(workload) for workload in workloads],
        "load": {"depths": list(depths)},
        "sim": {"device": dict(parameters), **span},
    }
    with TemporaryDirectory(prefix="raidlab-device-") as folder:
        study = load_study_text(toml_text(document), Path(folder) / "study.toml")
        yield analyse(run_study(study, out=folder))


def alone(model: DeviceModel, seed: int = 1) -> Alone:
    """Simulate a device by itself."""
    size = max(SMALL_BYTES, model.sector_bytes)
    names = {"reads": 1.0, "writes": 0.0} if _takes_writes(model) else {"reads": 1.0}
    works: list[Mapping[str, Plain]] = [
        {"name": name, "read": read, "size": size, "address": "uniform"} for name, read in names.items()
    ]
    with run_alone(model.parameters, works, DEPTHS, _RANDOM, seed) as analysis:
        loads = {name: [_load(point) for point in analysis.points if point.workload == name] for name in names}
    is_disk = model.parameters["kind"] == "hdd"
    return Alone(
        random=loads,
        rate_mb_s=_rates(model, seed) if is_disk else {},
        seek_ms=_seeks(model, seed) if is_disk else {},
    )


def _load(point: Point) -> LoadAlone:
    times = {one: point.response.percentile_ns(one) for one in PERCENTILES}
    return LoadAlone(
        point.depth, point.per_s("all_requests"), {one: time / 1e6 for one, time in times.items() if time is not None}
    )


def _takes_writes(model: DeviceModel) -> bool:
    """Whether a model has writes: one that was fitted by reading alone refuses them."""
    rows = model.parameters.get("measured")
    return not isinstance(rows, list) or any(isinstance(row, Mapping) and row.get("op") == "write" for row in rows)


def _rates(model: DeviceModel, seed: int) -> dict[float, float]:
    count = _STREAM_WARM_UP + _STREAM_MEASURED + _STREAM_DEPTH
    last = model.capacity_bytes // _STREAM_BYTES - count
    if last <= 0:
        return {}
    firsts = {place: last * place // (_PLACES - 1) for place in range(_PLACES)}
    works: list[Mapping[str, Plain]] = [
        {
            "name": f"place {place}",
            "read": 1.0,
            "size": _STREAM_BYTES,
            "address": {"kind": "listed", "offset_bytes": [(first + i) * _STREAM_BYTES for i in range(count)]},
        }
        for place, first in firsts.items()
    ]
    span: Mapping[str, Plain] = {"warmup": {"requests": _STREAM_WARM_UP}, "measure": {"requests": _STREAM_MEASURED}}
    with run_alone(model.parameters, works, [_STREAM_DEPTH], span, seed) as analysis:
        rates = {point.workload: point.per_s("all_bytes") / 1e6 for point in analysis.points}
    return {first / last: rates[f"place {place}"] for place, first in firsts.items()}


def _seeks(model: DeviceModel, seed: int) -> dict[float, float]:
    """Pairs of single reads, the second so far behind the first; each first one anywhere that leaves room."""
    from raidlab import _core

    sectors = model.capacity_bytes // model.sector_bytes
    places = np.random.default_rng(seed)
    distances = np.array([max(1, int(share * sectors)) for share in _SHARES])
    firsts = [places.integers(0, sectors - distance, size=_FROM) for distance in distances]
    pairs = [np.stack([first, first + distance], axis=1) for first, distance in zip(firsts, distances, strict=True)]
    lba = np.concatenate(pairs).reshape(-1)
    one = np.ones(lba.size, dtype=np.uint64)
    done = _core.device_replay(
        json.dumps(model.parameters), np.zeros(lba.size, dtype=np.uint8), lba.astype(np.uint64), one, one * 0, seed
    )
    times = done["seek_ns"][1::2].reshape(len(_SHARES), _FROM).mean(axis=1) / 1e6
    return {share: float(time) for share, time in zip(_SHARES, times, strict=True)}

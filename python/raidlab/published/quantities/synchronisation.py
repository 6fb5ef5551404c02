"""What it costs to wait for the slowest of several disks, in ms.

It is the mean of the longest of n times of seeking and turning, less the mean of one. The times are those of the
modelled device for random requests, one at a time; the n disks are independent.
"""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
from pydantic import Field

from raidlab.analysis.model.slowest import mean_of_slowest
from raidlab.published.quantities.kind import Kind, NotThereError, Reading, Source
from raidlab.study.words import Bytes, Table

_REQUESTS = 40_000


class Keys(Table):
    """What a measure of this kind says."""

    disks: Annotated[int, Field(ge=2, le=1000)]
    """How many are waited for."""
    size: Bytes
    """How large each request is; it begins at a multiple of its size."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The mean of the longest less the mean, from the distribution of one."""
    from raidlab import _core

    device = source.run.facts["devices"].get(source.target)
    if device is None:
        return None
    facts = source.device_facts(device)
    sectors = keys.size // int(facts["sector_bytes"])
    places = int(facts["capacity_bytes"]) // keys.size
    if sectors == 0 or places == 0:
        raise NotThereError(f"the device has no place for {keys.size} bytes")
    rng = np.random.default_rng(source.run.study.seed)
    lba = rng.integers(places, size=_REQUESTS) * sectors
    # Random gaps, so that no request begins where the last one happened to leave the platters.
    gaps = rng.integers(10**8, size=_REQUESTS)
    replayed = _core.device_replay(
        json.dumps(device),
        np.zeros(_REQUESTS, dtype=np.uint8),
        lba.astype(np.uint64),
        np.full(_REQUESTS, sectors, dtype=np.uint64),
        gaps.astype(np.uint64),
        source.run.study.seed,
    )
    times = (np.asarray(replayed["seek_ns"]) + np.asarray(replayed["rotation_ns"])).astype(float)
    return Reading((mean_of_slowest(times, keys.disks) - float(times.mean())) / 1e6)


KIND = Kind("synchronisation", "waiting for the slowest of several disks", Keys, read)

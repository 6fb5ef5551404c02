"""A measured trace replayed through a model: how close its response times come.

The trace was taken with one request outstanding, the next given some time after the one before was complete. So it is
replayed: the gaps are the trace's, the completions the model's.

A disk's angle at the beginning is not in a trace, and chance with it; so the replay is repeated from several. What two
replays of the same model differ by, only because they began at another angle, is the floor below which no demerit means
anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from raidlab.devices.catalogue import load
from raidlab.errors import InputError, Problem
from raidlab.formats.disksim import TraceColumns, read_trace
from raidlab.stats.demerit import demerit

TRACE_SECTOR_BYTES = 512
# Room between the seeds of two validations.
_SEEDS_EACH = 1 << 20


@dataclass(frozen=True)
class Validation:
    """How close a model comes to a trace."""

    device: str
    trace: str
    seed: int
    demerits_ms: tuple[float, ...]
    """One for each angle at the beginning."""
    floor_ms: float | None
    """Median demerit of one replay against the next; None with a single angle."""
    measured_ms: npt.NDArray[np.float64]
    modelled_ms: npt.NDArray[np.float64]
    """Response times; those of the model from the angle of the median demerit."""
    is_write: npt.NDArray[np.bool_]

    @property
    def demerit_ms(self) -> float:
        """The median over the angles."""
        return sorted(self.demerits_ms)[len(self.demerits_ms) // 2]

    @property
    def demerit_percent(self) -> float:
        """The median as a share of the measured mean."""
        return 100 * self.demerit_ms / float(self.measured_ms.mean())

    def means_ms(self) -> dict[str, tuple[float, float] | None]:
        """Measured and modelled mean: of all, of reads, of writes; None where there are none."""
        kinds = {"all": np.ones_like(self.is_write), "reads": ~self.is_write, "writes": self.is_write}
        return {
            name: (float(self.measured_ms[chosen].mean()), float(self.modelled_ms[chosen].mean()))
            if chosen.any()
            else None
            for name, chosen in kinds.items()
        }


def validate(device: str, trace: str, angles: int = 21, seed: int = 0) -> Validation:
    """Replay a trace through a device's model, or a disk of DiskSim's, from several angles, drawn from a seed.

    The number of angles is odd, so that one of them has the median.
    """
    if angles < 1 or angles % 2 == 0:
        raise InputError.one("--angles", "must be odd, for the median", value=str(angles), accepted="1, 3, 5, ...")
    model = load(device)
    if model.sector_bytes != TRACE_SECTOR_BYTES:
        raise InputError.one(
            "device", "has other sectors than the trace", value=f"{model.sector_bytes} bytes", accepted="512 bytes"
        )
    requests = read_trace(Path(trace))
    text = json.dumps(model.parameters)
    replays = [_replay(text, requests, trace, seed * _SEEDS_EACH + angle) for angle in range(angles)]
    measured = requests.measured_ns / 1e6
    found = [demerit(measured, replay) for replay in replays]
    middle = sorted(range(angles), key=lambda angle: found[angle])[angles // 2]
    floors = [demerit(replays[angle - 1], replay) for angle, replay in enumerate(replays) if angles > 1]
    return Validation(
        device=str(model.parameters.get("name", device)),
        trace=Path(trace).name,
        seed=seed,
        demerits_ms=tuple(found),
        floor_ms=float(np.median(floors)) if floors else None,
        measured_ms=measured,
        modelled_ms=replays[middle],
        is_write=requests.is_write.astype(bool),
    )


def _replay(device: str, trace: TraceColumns, file: str, seed: int) -> npt.NDArray[np.float64]:
    from raidlab import _core

    try:
        done = _core.device_replay(device, trace.is_write, trace.lba, trace.sectors, trace.gap_ns, seed)
    except _core.CellError as error:
        if not error.key.startswith("request["):
            raise InputError.one(error.key, error.message) from None
        line = int(trace.line[int(error.key[8:-1])])
        raise InputError([Problem(file, "", f"lies outside the device: {error.message}", line=line)]) from None
    found: npt.NDArray[np.float64] = done["response_ns"] / 1e6
    return found

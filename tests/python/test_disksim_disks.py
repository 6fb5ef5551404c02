"""Six real disks, against what was measured on them.

The parameter files and traces come with DiskSim 4.0; they are not part of raidlab. Where the environment's
RAIDLAB_DISKSIM_VALID names a folder that holds them, each disk is imported, its trace replayed, and the demerit held to
DiskSim's own: at most a tenth above it, or what chance alone makes of the difference. Nothing is fitted to a trace.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raidlab.devices import validate
from raidlab.formats.disksim import import_disk

FOLDER = os.environ.get("RAIDLAB_DISKSIM_VALID", "")
# DiskSim 4.0's own demerit, in ms, and the measured mean.
DISKS = {
    "hp_c2247a": (0.090, 15.3),
    "hp_c2490a": (0.254, 12.5),
    "dec_rz26": (0.340, 15.8),
    "cheetah4LP": (0.318, 5.33),
    "cheetah9LP": (0.107, 4.27),
    "ibm18es": (0.135, 5.26),
}

pytestmark = pytest.mark.skipif(
    not (Path(FOLDER) / "cheetah9LP.parv").is_file(),
    reason="RAIDLAB_DISKSIM_VALID names no folder with DiskSim's validation files",
)


@pytest.mark.parametrize("disk", DISKS)
def test_the_model_comes_as_close_as_disksims(disk: str) -> None:
    file, (theirs_ms, mean_ms) = Path(FOLDER) / f"{disk}.parv", DISKS[disk]
    found = validate(str(file), str(file.with_suffix(".trace")))
    assert found.floor_ms is not None
    assert found.demerit_ms <= max(1.1 * theirs_ms, theirs_ms + found.floor_ms)
    assert float(found.measured_ms.mean()) == pytest.approx(mean_ms, rel=0.01)


@pytest.mark.parametrize("disk", DISKS)
def test_the_capacity_is_the_disks(disk: str) -> None:
    found = import_disk(Path(FOLDER) / f"{disk}.parv")
    assert not [note for note in found.notes if note.key == "Block count"]
    # Three of the six leave room that their block count does not give out.
    assert ("sectors" in found.device) == (disk in ("cheetah4LP", "cheetah9LP", "ibm18es"))

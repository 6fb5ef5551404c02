"""Six real disks, against what was measured on them.

The parameter files and traces come with DiskSim 4.0; they are not part of raidlab. Where the environment's
RAIDLAB_DISKSIM_VALID names a folder that holds them, each disk is imported, its trace replayed, and the demerit held to
DiskSim's own: at most a tenth above it, or what chance alone makes of the difference. Nothing is fitted to a trace.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from raidlab import _core
from raidlab.devices import validate
from raidlab.formats.disksim import import_disk
from raidlab.formats.toml import toml_text
from raidlab.measure.fit import FitRequest, fit_model

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


@pytest.mark.slow
@pytest.mark.parametrize("disk", DISKS)
def test_what_is_fitted_to_the_model_replays_the_trace(disk: str, tmp_path: Path) -> None:
    """The imported disk as a black box: the file that is fitted to it is held to the real disk's trace.

    It may be as far off as twice DiskSim's own model, or 5 % of the mean.
    """
    (theirs_ms, mean_ms), file = DISKS[disk], tmp_path / "fitted.toml"
    device = import_disk(Path(FOLDER) / f"{disk}.parv").device
    capacity_bytes = _core.device_facts(json.dumps(device))["capacity_bytes"]
    asked = FitRequest(disk, budget_ns=600_000_000_000, quick=True, kind="hdd")
    found = fit_model(device, capacity_bytes, asked)
    assert found.document["kind"] == "hdd"
    file.write_text(toml_text(found.document), encoding="utf-8")
    seen = validate(str(file), str(Path(FOLDER) / f"{disk}.trace"))
    assert seen.demerit_ms <= max(2 * theirs_ms, 0.05 * mean_ms)


@pytest.mark.parametrize("disk", DISKS)
def test_the_capacity_is_the_disks(disk: str) -> None:
    found = import_disk(Path(FOLDER) / f"{disk}.parv")
    assert not [note for note in found.notes if note.key == "Block count"]
    # Three of the six leave room that their block count does not give out.
    assert ("sectors" in found.device) == (disk in ("cheetah4LP", "cheetah9LP", "ibm18es"))

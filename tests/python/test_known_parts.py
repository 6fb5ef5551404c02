"""Requests of a sweep, written from what they have in common: the same bytes, and the common part written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import SMALL_STUDY
from raidlab.run import request
from raidlab.run.request import KnownParts, cell_request
from raidlab.study import LoadedStudy, expand, load_study
from raidlab.study.cell import ArrayCell, Parts, Table

ROOT = Path(__file__).resolve().parents[2]


def _requests(loaded: LoadedStudy, target: str, known: KnownParts | None, *, quick: bool) -> list[str]:
    cells = expand(loaded.study, target, seed=3, quick=quick).cells
    models = [loaded.geometry.device(target, cell.array.name) for cell in cells]
    return [
        cell_request(
            loaded,
            cell,
            members=[model.parameters],
            sector_bytes=model.sector_bytes,
            quick=quick,
            # What only a held load looks at.
            hold_target_ns=5_000_000,
            known=known,
        )
        for cell, model in zip(cells, models, strict=True)
    ]


@pytest.mark.parametrize("name", ["bad-day", "hauser1996", "jlab1998", "quickstart"])
def test_the_same_bytes_as_each_by_itself(name: str) -> None:
    loaded = load_study(ROOT / "studies" / name / "study.toml")
    for target in ("sim", "original"):
        if loaded.study.has_target(target):
            known = KnownParts()
            assert _requests(loaded, target, known, quick=True) == _requests(loaded, target, None, quick=True)


def test_what_an_array_and_a_workload_have_in_common_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.toml").write_text(SMALL_STUDY.replace("depths = [1, 8, 64]", "depths = [1, 2, 4, 8, 16, 64]"))
    loaded, written = load_study(tmp_path / "small.toml"), list[Table]()

    def parts_of(cell: Table, whole=request.parts_of) -> Parts:  # type: ignore[no-untyped-def]
        written.append(cell)
        return dict(whole(cell))

    monkeypatch.setattr(request, "parts_of", parts_of)
    found = _requests(loaded, "sim", KnownParts(), quick=False)
    arrays, workloads, depths = len(loaded.study.array), len(loaded.study.workload), 6
    whole = [cell for cell in written if isinstance(cell, ArrayCell)]
    assert len(set(found)) == len(found) > 4 * arrays * workloads
    # Each array and each workload once, in whichever company.
    assert len(whole) == arrays + workloads - 1
    # A point of the load, and how much it asks for: once a depth, whichever array and workload.
    assert len(written) - len(whole) <= 2 * depths

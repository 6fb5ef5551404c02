"""Expansion of a study into cells: complete, without doubles, seeds common to arrays, order shuffled by repeat."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conftest import SMALL_STUDY
from raidlab.run.schedule import in_run_order
from raidlab.study import Study, expand
from raidlab.study.cell import ArrayCell, ClosedLoad, Limit
from raidlab.study.expand import derive_seed


def _study(**changes: object) -> Study:
    return Study.model_validate({**tomllib.loads(SMALL_STUDY), **changes})


@given(
    depths=st.lists(st.integers(1, 512), min_size=1, max_size=6),
    repeats=st.integers(1, 4),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_array_workload_depth_and_repeat_is_there_once(depths: list[int], repeats: int, seed: int) -> None:
    document = tomllib.loads(SMALL_STUDY)
    study = _study(load={"depths": depths}, sim={**document["sim"], "repeats": repeats})
    cells = expand(study, "sim", seed=seed).cells
    assert len(cells) == 3 * 2 * len(set(depths)) * repeats
    assert len({cell.name for cell in cells}) == len(cells)
    assert sorted(cell.name for cell in in_run_order(cells, seed)) == sorted(cell.name for cell in cells)


def test_arrays_see_the_same_requests_and_repeats_do_not() -> None:
    seeds: dict[tuple[str, str, int], set[int]] = {}
    for cell in expand(_study(), "sim", seed=7).cells:
        seeds.setdefault((cell.workload.name, cell.load.label, cell.repeat), set()).add(cell.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({seed for found in seeds.values() for seed in found}) == len(seeds)


def test_a_target_from_an_idle_response_brings_its_idle_cell() -> None:
    hold = {"target": {"times_idle": 4, "of": "raid0"}}
    cells = expand(_study(load={"depths": [8], "hold": hold}), "sim", seed=1).cells
    idle = [cell for cell in cells if cell.purpose == "idle"]
    assert {(cell.array.name, cell.load.depth) for cell in idle} == {("raid0", 1)}
    assert len(idle) == 2


def test_quick_uses_its_own_depths() -> None:
    study = _study(load={"depths": [1, 2, 4], "quick_depths": [3]})
    assert {cell.load.depth for cell in expand(study, "sim", seed=1, quick=True).cells} == {3}


def test_repeats_are_shuffled_as_blocks() -> None:
    document = tomllib.loads(SMALL_STUDY)
    cells = expand(_study(sim={**document["sim"], "repeats": 3}), "sim", seed=1).cells
    order = in_run_order(cells, 1)
    assert [cell.repeat for cell in order] == sorted(cell.repeat for cell in order)
    assert order != sorted(order, key=cells.index)
    assert order == in_run_order(cells, 1)
    assert order != in_run_order(cells, 2)


def test_seeds_are_fixed_for_all_time() -> None:
    # A change here would silently change every published result with a seed.
    assert derive_seed(1, "reads", "closed=8", "0") == derive_seed(1, "reads", "closed=8", "0") < 2**63
    assert derive_seed(1, "a", "b") != derive_seed(1, "ab")


def _crossing(**workload: Any) -> dict[str, Any]:
    """A workload as it crosses to the engine."""
    (asked,) = _study(workload=[{"name": "theirs", "read": 1.0, **workload}]).workload
    cell = ArrayCell(
        engine="sim", seed=1, tree={}, members=[], load=ClosedLoad(depth=1), workload=asked, measure=Limit(requests=1)
    )
    crossing: dict[str, Any] = cell.model_dump(exclude_none=True)["workload"]
    return crossing


def test_a_workload_crosses_to_the_engine_as_the_study_says_it() -> None:
    address = {"kind": "listed", "offset_bytes": [8192, 0, 512]}
    expected = {
        "read": 1.0,
        "size": {"kind": "fixed", "bytes": 4096},
        "address": address,
        "volumes": "uniform",
        "span": 1.0,
    }
    assert _crossing(size="4KiB", address=address, count=5, arrays=["a"]) == expected


def test_quantities_cross_as_numbers_of_bytes() -> None:
    address = {"kind": "mixed", "sequential": 0.2, "local": 0.3, "local_sd": "20MB"}
    crossing = _crossing(size={"kind": "normal", "mean": "8KiB", "sd": "1KiB"}, address=address, align="sector")
    assert crossing["address"] == address | {"local_sd": 20_000_000, "alike": False}
    assert (crossing["size"], crossing["align"]) == ({"kind": "normal", "mean": 8192, "sd": 1024}, "sector")

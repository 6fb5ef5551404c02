"""One array, two clocks: a request's member operations are the same in the simulator, on real and on emulated members.

Under policies that look at no state (which copy is first, which accesses are fewest), what a request asks of the
members is a function of the request alone, whatever completes when; so both engines must list the same operations for
it.
"""

import json

import numpy as np
import pytest

from raidlab import _core

MEMBER_BYTES = 8 << 20
REQUESTS = 400

TREES = [
    "raid0(4, chunk=16KiB)",
    "raid1(3)",
    "raid10(6, chunk=16KiB)",
    "raid01(4, chunk=16KiB)",
    "raid5(5, chunk=16KiB, rotation=right_asymmetric)",
    "raid6(6, chunk=16KiB)",
    "raid50(6, chunk=16KiB)",
    "concat(raid5(3, chunk=16KiB), raid1(2))",
    "independent(2*raid1(2))",
]


def operations(
    engine: str, tree: str, missing: list[int], members: list[dict[str, object]], **more: object
) -> np.ndarray:
    """Columns of the member operations of the first requests, one row an operation."""
    request = {
        "engine": engine,
        "seed": 7,
        "sector_bytes": 4096,
        "tree": json.loads(_core.parse_tree(tree)),
        "policy": {"mirror_read": {"kind": "primary"}, "parity_write": "fewest_accesses"},
        "members": members,
        "missing": missing,
        "load": {"kind": "closed", "depth": 8},
        "workload": {
            "read": 0.5,
            "size": {"kind": "table", "bytes": [4096, 12288, 65536, 200704], "weights": [4, 3, 2, 1]},
            "address": {"kind": "uniform"},
            "align": 4096,
        },
        "measure": {"requests": 2 * REQUESTS},
        **more,
    }
    columns = _core.member_operations(json.dumps(request), REQUESTS)
    return np.column_stack([columns[name] for name in ("request", "leaf", "write", "lba", "sectors")])


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("degraded", [False, True])
def test_the_two_clocks_ask_the_same_of_the_members(tree: str, degraded: bool, tmp_path) -> None:
    facts = _core.tree_facts(_core.parse_tree(tree), MEMBER_BYTES, 4096)
    if degraded and facts["tolerance"] == 0:
        pytest.skip("a level without redundancy serves nothing when a member is missing")
    missing = [0] if degraded else []
    model = {"kind": "fixed", "capacity_bytes": MEMBER_BYTES, "read_us": 90, "write_us": 70}
    simulated = operations("sim", tree, missing, [model])
    files = [
        {"kind": "file", "path": str(tmp_path / f"member{leaf}"), "size_bytes": MEMBER_BYTES}
        for leaf in range(facts["leaves"])
    ]
    measured = operations("live", tree, missing, files)
    assert len(np.unique(simulated[:, 0])) == REQUESTS
    np.testing.assert_array_equal(simulated, measured)
    emulated = operations("live", tree, missing, [{"kind": "emulated", "device": model}], speed=1000.0)
    np.testing.assert_array_equal(simulated, emulated)

"""The simple access-count model against the table of the Berkeley study, and metrics against hand counts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from raidlab import _core
from raidlab.analysis.model import FORMS, accesses, throughput_per_member_percent

PUBLISHED = Path(__file__).parents[2] / "studies" / "chen1990" / "published" / "relative_throughput_model.csv"
TREES = {
    "0": "raid0(10, chunk=40KiB)",
    "1": "raid10(20, chunk=40KiB)",
    "5": "raid5(11, chunk=40KiB, rotation=right_asymmetric)",
}


def _tree(text: str) -> dict[str, object]:
    return dict(json.loads(_core.parse_tree(text)))


@pytest.mark.parametrize(
    "row", list(csv.DictReader(PUBLISHED.open(encoding="utf-8"))), ids=lambda row: f"{row['level']}-{row['workload']}"
)
def test_the_published_model_is_reproduced(row: dict[str, str]) -> None:
    size = 40 * 1024 if row["workload"].startswith("individual") else 400 * 1024
    percent = throughput_per_member_percent(_tree(TREES[row["level"]]), size, float(row["workload"].endswith("read")))
    # A full stripe written to RAID 5 keeps 10 of 11 members busy with data: per member 10/11.
    assert percent == pytest.approx(float(row["simple_percent"]), abs=0.05)


def test_the_published_adjusted_model_is_reproduced() -> None:
    rows = {(row["level"], row["workload"]): row for row in csv.DictReader(PUBLISHED.open(encoding="utf-8"))}
    # Table 1 and section 7.1; of the second access of a pair the study counts one revolution and the transfer.
    disk = {"seek_ms": 15, "revolution_ms": 16.7, "transfer_ms": 16.2}
    mirrored_read = FORMS["adjusted_access_count"].value(**disk, copies=2, seek_saved_ms=4, read_share=1)
    small_write = FORMS["adjusted_access_count"].value(**disk, parities=1, turnaround_ms=1.65)
    # Printed are 40/36 and 40/144: disk times in whole ms, and the first quotient to the nearest ten.
    assert mirrored_read == pytest.approx(float(rows["1", "individual_read"]["adjusted_percent"]), abs=1.5)
    assert small_write == pytest.approx(float(rows["5", "individual_write"]["adjusted_percent"]), abs=1)
    for level, workload, given in (("0", "read", {}), ("1", "write", {"copies": 2}), ("5", "read", {"parities": 1})):
        percent = FORMS["adjusted_access_count"].value(**disk, **given, read_share=float(workload == "read"))
        assert percent == pytest.approx(float(rows[level, f"individual_{workload}"]["adjusted_percent"]))


@pytest.mark.parametrize(
    ("tree", "size_kib", "writes"),
    [
        ("raid5(5, chunk=64KiB)", 8, 4),
        ("raid6(6, chunk=64KiB)", 8, 6),
        ("raid6(6, chunk=64KiB)", 256, 6),
        ("raid5(5, chunk=64KiB)", 128, 2 + 3),  # the rest of the stripe (2) is read rather than old data and parity (3)
        ("raid10(8, chunk=64KiB)", 128, 4),
        ("independent(4*mirror(2))", 1024, 2),
        ("raid50(8, chunk=64KiB)", 8, 4),
        ("mirror(3)", 8, 3),
        ("declustered(21, width=5, chunk=64KiB)", 8, 4),
        ("declustered(21, width=5, chunk=64KiB)", 256, 5),
        (
            "declustered(7, width=3, chunk=64KiB)",
            8,
            3,
        ),  # the other data (1) is read rather than old data and parity (2)
    ],
)
def test_writes_are_counted(tree: str, size_kib: int, writes: int) -> None:
    assert accesses(_tree(tree), size_kib * 1024, write=True) == writes


def test_small_requests_cost_what_the_engine_plans() -> None:
    """Every level and common name there is, so that a new one is not forgotten in the model."""
    with pytest.raises(_core.CellError) as caught:
        _core.parse_tree("nosuch(8)")
    names = [word.strip() for word in str(caught.value).partition("accepted:")[2].split(",")]
    assert {"stripe", "mirror", "parity"} < set(names)
    for name in set(names) - {"member"}:
        # Declustered stripes have no width of their own.
        tree = _core.parse_tree(f"{name}(8, width=4)" if name == "declustered" else f"{name}(8)")
        for kind in ("read", "write"):
            nodes = _core.plan_io(tree, 512, 1 << 30, "{}", kind, 0, 4096, [], 0)["nodes"]
            operations = [node for node in nodes if node["op"] in ("read", "write")]
            assert accesses(json.loads(tree), 4096, write=kind == "write") == len(operations), (name, kind)

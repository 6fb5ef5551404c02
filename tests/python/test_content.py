"""Whether contents that are not what was written are found, named, and counted; on files that a test spoils itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from raidlab.analysis.checks.content import judge
from raidlab.run.runner import run_request

MIB = 1 << 20
SECTOR = 4096
CLI = [sys.executable, "-m", "raidlab"]


def cell(path: Path, *, reads: float = 1.0, **more: Any) -> dict[str, Any]:
    """The engine's answer about 4 MiB in a file that it makes if there is none."""
    request = {
        "engine": "direct",
        "seed": 1,
        "targets": [{"kind": "file", "path": str(path), "size_bytes": 4 * MIB}],
        "load": {"kind": "closed", "depth": 4},
        "workload": {
            "read": reads,
            "size": {"kind": "fixed", "bytes": SECTOR},
            "address": {"kind": "uniform"},
            "align": SECTOR,
        },
        "measure": {"requests": 3000},
        "verify": "full",
        **more,
    }
    return dict(run_request(json.dumps(request)))


def content(answer: dict[str, Any]) -> dict[str, str]:
    """The finding about contents."""
    (found,) = (check for check in answer["checks"] if check["name"] == "content")
    return dict(found)


def overwrite(path: Path, sector: int, data: bytes) -> None:
    """What a device does that lies."""
    with path.open("r+b") as file:
        file.seek(sector * SECTOR)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sector_of(path: Path, sector: int) -> bytes:
    """What lies in a sector."""
    return path.read_bytes()[sector * SECTOR : (sector + 1) * SECTOR]


def test_what_was_filled_and_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data"
    first = content(cell(path))
    assert first["verdict"] == "PASS" and "would have been seen" in first["evidence"]
    mixed = cell(path, reads=0.5)
    assert content(mixed)["verdict"] == "PASS"
    assert mixed["content"]["writes_checked"] > 1000
    # What another cell wrote, with another depth and seed, is known too.
    assert content(cell(path, seed=2))["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bytes(SECTOR), "held zeros"),
        (b"x" * SECTOR, "held nothing that raidlab wrote"),
        (None, "what was written to sector 9"),
        (bytes(1), "held data that differ in a part"),
    ],
)
def test_a_spoilt_sector_is_found_and_named(tmp_path: Path, data: bytes | None, said: str) -> None:
    path = tmp_path / "data"
    cell(path)
    if data == bytes(1):
        byte = sector_of(path, 5)[:100] + bytes([sector_of(path, 5)[100] ^ 4])
        overwrite(path, 5, byte)
    else:
        overwrite(path, 5, sector_of(path, 9) if data is None else data)
    found = content(cell(path))
    assert found["verdict"] == "INVALID" and "sector 5 of" in found["evidence"] and said in found["evidence"]


def test_a_capacity_that_wraps_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data"
    cell(path)
    overwrite(path, 512, path.read_bytes()[: 2 * MIB])
    evidence = content(cell(path))["evidence"]
    assert f"a multiple of {2 * MIB} bytes apart: the capacity wraps there" in evidence


def test_what_nobody_knows_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(os.urandom(4 * MIB))
    found = content(cell(path))
    assert found["verdict"] == "UNKNOWN" and "--destroy" in found["mend"]
    own = tmp_path / "own"
    cell(own)
    assert "switched off" in content(cell(own, verify="off"))["evidence"]
    null = cell(path, targets=[{"kind": "null", "size_bytes": 4 * MIB}])
    assert [check for check in null["checks"] if check["name"] == "content"] == []


def test_another_tool_may_write_where_nothing_was_compared(tmp_path: Path) -> None:
    path = tmp_path / "data"
    cell(path)
    # raidlab goes first, and writes without comparing; then a tool such as fio writes as it likes.
    cell(path, reads=0.0, verify="off")
    overwrite(path, 5, bytes(SECTOR))
    assert content(cell(path))["verdict"] == "UNKNOWN"


def test_an_array_reads_its_writes_back(tmp_path: Path) -> None:
    request = {
        "engine": "live",
        "seed": 1,
        "sector_bytes": SECTOR,
        "tree": {"kind": "stripe", "chunk_bytes": 65536, "children": [{"kind": "member"}] * 2},
        "members": [{"kind": "file", "path": str(tmp_path / name), "size_bytes": 4 * MIB} for name in "ab"],
        "missing": [],
        "load": {"kind": "closed", "depth": 4},
        "workload": {"read": 0.5, "size": {"kind": "fixed", "bytes": SECTOR}, "address": {"kind": "uniform"}},
        "measure": {"requests": 3000},
        "verify": "full",
    }
    answer = run_request(json.dumps(request))
    assert content(answer)["verdict"] == "PASS"
    assert answer["content"]["writes_checked"] > 1000 and answer["content"]["reads_checked"] > 1000
    overwrite(tmp_path / "a", 5, bytes(SECTOR))
    reads = {**request, "workload": {**request["workload"], "read": 1.0}}
    found = content(run_request(json.dumps(reads)))
    assert found["verdict"] == "INVALID" and "held zeros" in found["evidence"]


def test_a_measurement_says_it(tmp_path: Path) -> None:
    path = tmp_path / "data"
    cell(path)
    for sector in range(0, 1024, 2):
        overwrite(path, sector, bytes(SECTOR))
    words = ["measure", str(path), "--runtime", "200ms", "--warmup", "20ms", "--json"]
    done = subprocess.run([*CLI, *words], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 3, done.stderr
    (found,) = (finding for finding in json.loads(done.stdout)["checks"] if finding["check"] == "content")
    assert found["verdict"] == "INVALID" and "held zeros" in found["evidence"]


def test_a_share_that_is_none_is_refused(tmp_path: Path) -> None:
    words = ["measure", "null", "--verify", "ful"]
    done = subprocess.run([*CLI, *words], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2 and "full, sample, off" in done.stderr


def test_blocks_that_differ_the_second_time() -> None:
    def verdict(**more: Any) -> tuple[str, str]:
        twice = {"blocks": 3000, "block_bytes": 4096, "different": 0, "first": [], "written_meanwhile": False, **more}
        judged = judge({"name": "sda", "read_twice": twice})
        assert judged is not None
        return judged.verdict, judged.evidence

    assert verdict()[0] == "PASS" and "one of 2,000 reads" in verdict()[1]
    assert verdict(different=2, first=[7, 9])[0] == "INVALID"
    assert "28672, 36864" in verdict(different=2, first=[7, 9])[1]
    assert verdict(different=2, first=[7, 9], written_meanwhile=True)[0] == "UNKNOWN"
    assert verdict(blocks=3)[0] == "UNKNOWN"
    assert judge({"name": "memory"}) is None

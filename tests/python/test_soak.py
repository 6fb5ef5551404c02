"""The soak of half an hour, in seconds: its verdict does not depend on how late the machine is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).resolve().parents[2] / "benches" / "soak" / "run.py"


def test_a_short_soak_finds_memory_flat_and_nothing_lost(tmp_path: Path) -> None:
    # The second stage has a sixth of it, in which the provoked failures must come also where others have the processor.
    words = [sys.executable, str(SOAK), "--minutes", "0.09", "--allow-mib", "64", "--json", str(tmp_path / "soak.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: memory flat, nothing lost, nothing counted twice" in done.stdout
    raid5, raid0 = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))
    for stage in (raid5, raid0):
        for account in (stage["requests"], stage["operations"]):
            assert account["submitted"] == account["completed"] + account["failed"] > 0
    assert raid5["operations"]["failed"] > 0 == raid5["requests"]["failed"]
    assert raid0["requests"]["failed"] > 0


def test_the_soak_names_what_does_not_add_up(tmp_path: Path) -> None:
    script = "import json, sys; import run; print(run.faults_of(json.loads(sys.argv[1]), one_to_one=True))"
    account = {"submitted": 100, "completed": 98, "failed": 1}
    answer = {
        "facts": {"engine": {"accounts": {"requests": account, "operations": account, "unknown": 2}}},
        "read": {"requests": 300, "failed": 0},
        "write": {"requests": 0, "failed": 0},
        "members": [{"reads": 200, "writes": 0}],
        "stopped_by": None,
        "interrupted": False,
    }
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(answer)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOAK.parent), *sys.path])},
    )
    for words in (
        "100 requests began and 99 ended",
        "2 requests ended that had not begun",
        "99 requests ended and 300 are in the record",
        "members count 200 operations of 98 completed",
    ):
        assert words in done.stdout

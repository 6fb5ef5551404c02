"""The table of speeds reads what criterion writes, and says pass, short or open by the interval."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benches" / "speeds" / "run.py"


@pytest.fixture
def speeds() -> ModuleType:
    spec = importlib.util.spec_from_file_location("speeds_run", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _measured(folder: Path, name: str, elements: int | None, median_ns: tuple[float, float, float]) -> None:
    place = folder / name / "new"
    place.mkdir(parents=True)
    throughput = None if elements is None else {"Elements": elements}
    (place / "benchmark.json").write_text(json.dumps({"full_id": name, "throughput": throughput}), encoding="utf-8")
    low, median, high = median_ns
    interval = {"confidence_level": 0.95, "lower_bound": low, "upper_bound": high}
    estimates = {"median": {"point_estimate": median, "confidence_interval": interval}}
    (place / "estimates.json").write_text(json.dumps(estimates), encoding="utf-8")


def test_rates_and_verdicts(speeds: ModuleType, tmp_path: Path) -> None:
    # The aim is 5 M requests a second: 2 M of them take 0.4 s.
    _measured(tmp_path, "sim/raid0 read", 2_000_000, (0.28e9, 0.30e9, 0.39e9))
    _measured(tmp_path, "service/fixed-100us", 1, (20.0, 21.0, 22.0))
    _measured(tmp_path, "setup", None, (1e6, 1.5e6, 2e6))
    found = {speed.name: speed for speed in speeds.speeds(tmp_path, 0.0)}
    raid0 = found["sim/raid0 read"]
    assert raid0.cells() == ("sim/raid0 read", "6.67 M/s", "5.13 M/s to 7.14 M/s", "5.00 M/s", "pass")
    assert found["service/fixed-100us"].cells()[1:] == ("47.6 M/s", "45.5 M/s to 50.0 M/s", "", "")
    assert found["setup"].cells()[1:3] == ("1.50 ms", "1.00 ms to 2.00 ms")


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.1e9, 0.39e9, "pass"), (0.39e9, 0.41e9, "open"), (0.41e9, 0.5e9, "short")]
)
def test_all_of_the_interval_decides(speeds: ModuleType, tmp_path: Path, low: float, high: float, verdict: str) -> None:
    _measured(tmp_path, "sim/raid0 read", 2_000_000, (low, (low + high) / 2, high))
    (found,) = speeds.speeds(tmp_path, 0.0)
    assert found.verdict() == verdict


def test_every_aim_is_shown_and_what_is_broken_is_left_out(
    speeds: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _measured(tmp_path, "sim/raid0 read", 2_000_000, (0.28e9, 0.30e9, 0.39e9))
    _measured(tmp_path, "broken", 1, (1.0, 1.0, 1.0))
    (tmp_path / "broken" / "new" / "estimates.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["run.py", "--criterion", str(tmp_path)])
    assert speeds.main() == 0
    shown = capsys.readouterr()
    assert all(any(line.startswith(name) for line in shown.out.splitlines()) for name in speeds.AIMS)
    assert shown.out.count("not run") == len(speeds.AIMS) - 1
    assert "left out: KeyError" in shown.err

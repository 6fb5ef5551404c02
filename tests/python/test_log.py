"""What ``RAIDLAB_LOG`` shows of the edges: nothing by default, all when asked, and nothing of single requests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from raidlab.errors import EXIT_BAD_INPUT, EXIT_INVALID_RESULT, EXIT_OK

# A tenth of a second on a busy machine may be judged INVALID, which is not what is asked here.
ENDED = (EXIT_OK, EXIT_INVALID_RESULT)
LINE = re.compile(r"^\d{4}-\d\d-\d\dT[0-9:.]+Z +(ERROR|WARN|WARNING|INFO|DEBUG|TRACE) (raidlab|_core)[\w:.]*: ")


def _measure(target: str, level: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "RAIDLAB_LOG"}
    if level is not None:
        environment["RAIDLAB_LOG"] = level
    words = [target, "--size", "4KiB", "--depth", "4", "--runtime", "100ms", "--repeats", "1", "--file-size", "4MiB"]
    return subprocess.run(
        [sys.executable, "-m", "raidlab", "measure", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _told(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if LINE.match(line)]


@pytest.mark.parametrize("level", [None, "", "off"])
def test_by_default_nothing_is_told(level: str | None) -> None:
    done = _measure("null", level)
    assert done.returncode in ENDED, done.stderr
    assert _told(done) == []
    assert "tracing" not in done.stderr


def test_asked_for_it_tells_what_is_made_opened_begun_and_ended(tmp_path: Path) -> None:
    done = _measure(f"{tmp_path}/", "debug")
    assert done.returncode in ENDED, done.stderr
    told = _told(done)
    for edge in ("folder for members made", "cell begins", "target opened", "cell ended"):
        assert any(edge in line for line in told), f"{edge}: {done.stderr}"
    assert f'path="{tmp_path}' in done.stderr
    assert len(told) < 200, "nothing of the thousands of requests"


def test_less_is_told_at_a_higher_level() -> None:
    told = _told(_measure("null", "info"))
    assert any("cell begins" in line for line in told)
    assert not any("target opened" in line for line in told)
    assert _told(_measure("null", "error")) == []


def test_what_is_no_level_is_refused_in_one_line() -> None:
    done = _measure("null", "loud")
    assert done.returncode == EXIT_BAD_INPUT
    expected = "error: RAIDLAB_LOG: 'loud': is no level; accepted: off, error, warn, info, debug, trace"
    assert expected in done.stderr.splitlines()

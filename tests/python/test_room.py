"""Too little memory, too few processes, files that may not grow: a clear line each, and exit code 1."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from raidlab.cli.app import _explain
from raidlab.cli.room import make_sure_of_room
from test_output import TINY_STUDY


def run(folder: Path, limit: Callable[[], None], *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "study.toml").write_text(TINY_STUDY, encoding="utf-8")
    command = [sys.executable, "-m", "raidlab", *(words or ("run", "./study.toml"))]
    return subprocess.run(
        command, cwd=folder, preexec_fn=limit, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.parametrize("megabytes", [300, 700, 1500])
def test_too_little_memory_is_one_line(megabytes: int, tmp_path: Path) -> None:
    done = run(tmp_path, lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20)))
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("error: out of memory (ulimit -v") and done.stderr.count("\n") == 1


def test_too_few_addresses_for_figures_are_one_line_and_no_signal(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parent / "fixtures" / "run-schema-12", tmp_path / "kept")
    few = (6 << 30, 6 << 30)
    done = run(tmp_path, lambda: resource.setrlimit(resource.RLIMIT_AS, few), "report", "./kept")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert (
        done.stderr.startswith("error: ulimit -v 6291456: is too little for figures") and done.stderr.count("\n") == 1
    )


def test_what_the_engine_cannot_have_ends_it_in_one_line_and_no_abort(tmp_path: Path) -> None:
    # Ten million requests outstanding, and hardly more room than the process has.
    code = (
        "import resource\n"
        "from raidlab import _core\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "resource.setrlimit(resource.RLIMIT_AS, ((pages << 12) + (8 << 20),) * 2)\n"
        "_core.trace_columns('trace.csv')\n"
    )
    with (tmp_path / "trace.csv").open("w", encoding="ascii") as trace:
        trace.writelines(f"7,R,{4096 * i},4096,{i}\n" for i in range(400_000))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert done.stderr.startswith("error: out of memory (ulimit -v") and done.stderr.count("\n") == 1


def test_a_file_that_may_not_grow_is_one_line_and_no_signal(tmp_path: Path) -> None:
    done = run(tmp_path, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and "cannot be written: File too large" in errors[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "out of memory"),
        (OSError(12, "Cannot allocate memory"), "out of memory"),
        (ImportError("libx.so: failed to map segment from shared object"), "out of memory"),
        (RuntimeError("can't start new thread"), "no more processes or threads can be started"),
        (BlockingIOError(11, "Resource temporarily unavailable"), "no more processes or threads can be started"),
        (OSError(24, "Too many open files"), "no more files can be opened"),
        (OSError(27, "File too large"), "a file would be larger than it may be"),
    ],
)
def test_what_the_system_refuses_is_no_defect(error: Exception, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _explain(error) == 1
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_too_few_processes_are_told_before_any_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    make_sure_of_room()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        make_sure_of_room()

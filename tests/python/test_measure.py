"""``raidlab measure`` for real: every kind of target, what is printed, and targets that are pulled away."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, write_report
from raidlab.cli.endings import say_cut_short
from raidlab.measure.places import short_name
from raidlab.results import load_run
from raidlab.stats import LEAST_REPEATS, MOST_REPEATS
from verdicts import OF_THE_MACHINE, assert_ended, invalid_checks

MIB = 1 << 20
QUICK = ["--runtime", "100ms", "--warmup", "20ms", "--repeats", "2"]
CLI = [sys.executable, "-c", "from raidlab.cli import main\nif __name__ == '__main__': main()", "measure"]
# Linux capabilities that let root pass by permissions.
DROPPED = "-dac_override,-dac_read_search"


def measure(*words: str | Path, code: int = 0, quick: Sequence[str] = QUICK) -> subprocess.CompletedProcess[str]:
    """Run the command at 80 columns and hold it to its exit code and to one clear error; `words` go before `quick`."""
    done = subprocess.run(
        [*CLI, *quick, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
        timeout=600,
    )
    if "io_uring" in done.stderr and done.returncode == 1:
        pytest.skip(f"no io_uring here: {done.stderr}")
    check(done.returncode, done.stdout, done.stderr, code)
    return done


def check(returned: int, out: str, errors: str, code: int) -> None:
    assert_ended(returned, out, errors, code)
    assert "Traceback" not in errors
    lines = [line for line in errors.splitlines() if line.startswith("error:")]
    assert len(lines) == (0 if code in (0, 3, 130) else 1), errors
    assert max((len(line) for line in out.splitlines() if not out.startswith("{")), default=0) <= 80


def document(*words: str | Path, code: int = 0) -> dict[str, Any]:
    """The JSON document of a measurement."""
    return dict(json.loads(measure(*words, "--json", code=code).stdout))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of random bytes that raidlab has not made."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(MIB) * 8)
    return path


def wait_for_measuring(stream: Any, seen: list[str], when: str) -> None:
    """Read progress until a line says that so much has been done."""
    for line in stream:
        seen.append(line)
        if when in line:
            return


def wait_for_a_worker(process: int) -> None:
    """Wait until the engine's thread has worked for a while: more than making ready takes, and the warm-up."""
    for _ in range(500):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                name, _, fields = (thread / "stat").read_text(encoding="utf-8").partition(" (")[2].rpartition(") ")
                user, system = fields.split()[11:13]
                if name == "raidlab-0" and (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") >= 0.05:
                    return
        time.sleep(0.05)
    raise AssertionError("no worker was seen to work within 25 s")


def pulled_away(pull: Callable[[], object], *words: str | Path, code: int = 1) -> tuple[str, str]:
    """Measure, pull the target away once measuring has begun, and give back what was printed."""
    process = subprocess.Popen(
        [*CLI, *map(str, words), "--runtime", "1500ms", "--warmup", "10ms", "--repeats", "20"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    seen: list[str] = []
    assert process.stderr is not None and process.stdout is not None
    # Plain lines come at most every two seconds, after a cell: so one has been measured, and the next goes on.
    wait_for_measuring(process.stderr, seen, " of about ")
    pull()
    reader = threading.Thread(target=lambda: seen.extend(process.stderr or []))
    reader.start()
    out = process.stdout.read()
    reader.join(timeout=600)
    check(process.wait(timeout=600), out, "".join(seen), code)
    return out, "".join(seen)


def test_null_measures_the_meter() -> None:
    found = document("null", "--size", "8KiB", "--depth", "4,16")
    assert found["status"] == "complete" and found["run"] is None
    rows = found["results"]
    assert [(row["subject"], row["depth"], row["operation"]) for row in rows] == [
        ("null", 4, "read"),
        ("null", 16, "read"),
    ]
    for row in rows:
        assert row["bytes"] == row["requests"] * 8192 > 0
        assert row["iops"] == pytest.approx(row["requests"] / (row["elapsed_ns"] / 1e9))
        assert row["iops_low"] <= row["iops"] <= row["iops_high"]
        assert 0 < row["response_time_ns_p50"] <= row["response_time_ns_p99_9"]
    assert found["bound"] == [], "null itself needs no bound"
    told = measure("null", "--depth", "4").stdout
    assert "Intervals (95 %) are over 2 repeats, taken to be independent and normal, which" in told


def test_a_file_of_others_is_read_and_left_as_it_was(file: Path) -> None:
    before = file.read_bytes()
    # Of half a second, a disk that is kept busy by others leaves something.
    found = document(file, "--size", "exponential:8KiB", "--address", "zipf:0.9", "--runtime", "500ms")
    (target,) = found["targets"]
    assert target["kind"] == "file" and target["made_by_raidlab"] is False and target["disks"]
    assert found["results"][0]["requests"] > 0
    assert found["bound"][0]["iops"] > 0
    assert {finding["check"] for finding in found["checks"]} >= {"generator_limited", "shared_device", "single_run"}
    assert file.read_bytes() == before
    measure(file, "--rw", "randwrite", code=4)
    assert file.read_bytes() == before


def test_a_directory_gets_a_file_that_is_taken_away(tmp_path: Path) -> None:
    done = measure(tmp_path, "--file-size", "8MiB", "--rw", "randread", "--read", "70%", code=2)
    assert "says what --read says too" in done.stderr
    found = document(tmp_path, "--file-size", "8MiB", "--rw", "randrw", "--read", "70%", "--runtime", "500ms")
    assert [row["operation"] for row in found["results"]] == ["read", "write"]
    reads, writes = (row["requests"] for row in found["results"])
    # Five standard deviations of however many there were: on a busy disk there are few.
    assert abs(reads - 0.7 * (reads + writes)) <= 5 * math.sqrt(0.7 * 0.3 * (reads + writes))
    assert found["targets"][0]["made_by_raidlab"] is True
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_volumes_at_once_and_one_after_the_other(file: Path, tmp_path: Path) -> None:
    at_once = document("null", file, "--depth", "8")
    assert [row["subject"] for row in at_once["results"]] == ["total"]
    targets = at_once["costs"][0]["targets"]
    assert [target["target"] for target in targets] == ["null", str(file)]
    assert sum(target["iops"] for target in targets) == pytest.approx(at_once["results"][0]["iops"], rel=0.01)
    each = document("null", file, "--depth", "1", "--each")
    assert {row["subject"] for row in each["results"]} == {"null", short_name(str(file))}
    assert all(row["repeats"] == 2 for row in each["results"])
    table = measure("null", file, "--depth", "8").stdout
    assert "total" in table and "of this, each target" in table and str(file) in table


def test_an_array_over_memory() -> None:
    out = measure("raid5(3)@memory", "--depth", "4", "--rw", "randwrite").stdout
    assert "random writes of 4 KiB" in out and "depth 4" in out


def test_what_bounds_raidlab_itself_is_told_or_said_to_be_unknown(file: Path, tmp_path: Path) -> None:
    def verdict(*words: str | Path, code: int = 0) -> tuple[str, str]:
        (finding,) = [one for one in document(*words, code=code)["checks"] if one["check"] == "generator_limited"]
        return finding["verdict"], finding["evidence"]

    assert verdict(f"raid0(2)@{tmp_path}/", "--file-size", "8MiB")[0] == "UNKNOWN"
    offered, evidence = verdict(file, "--rate", "1000000000", code=3)
    assert offered == "INVALID" and "1,000,000,000 requests/s were offered" in evidence


@pytest.mark.slow
def test_an_open_loop_and_a_held_percentile() -> None:
    # What arrives while others have the processor is counted only where it has it again before the window closes, and
    # what arrived before the window within it. Unpaced, nothing does millions a second.
    found = document("null", "--rate", "500", "--arrival", "uniform", "--runtime", "1500ms")
    assert 250 <= found["results"][0]["iops"] <= 1000
    held = document("null", "--hold", "p90=1s")
    assert held["holds"][0]["bound"] in ("between", "never_exceeded", "always_exceeded")


def test_a_workload_of_a_study(file: Path) -> None:
    done = measure(file, "--study", "quickstart", "--workload", "8 KiB random reads", "--depths", "1", code=2)
    assert "either --study or --depth" in done.stderr
    found = document(file, "--study", "quickstart", "--workload", "8 KiB random reads")
    assert len({row["depth"] for row in found["results"]}) > 1
    assert 'name = "8 KiB random reads"' in found["study"]


@pytest.mark.slow
def test_precision_repeats_until_the_interval_is_narrow_or_says_so() -> None:
    found = document("null", "--precision", "0.01%", "--runtime", "20ms")
    assert found["results"][0]["repeats"] == MOST_REPEATS, "nothing is that precise"
    assert any(finding["check"] == "precision" and finding["verdict"] == "WARN" for finding in found["checks"])
    wide = document("null", "--precision", "99%", "--runtime", "20ms")["results"][0]
    # Fewer may have missed what slows one in ten. On a busy machine neighbours may be alike to the end.
    assert LEAST_REPEATS <= wide["repeats"] <= MOST_REPEATS
    if wide["iops_no_interval"] is None:
        assert wide["iops_high"] - wide["iops_low"] <= 2 * 0.99 * wide["iops"]


def test_a_kept_run_can_be_read_and_reported(file: Path, tmp_path: Path) -> None:
    document(file, "--out", tmp_path / "kept", "--depth", "2,8")
    (folder,) = (tmp_path / "kept").iterdir()
    run = load_run(folder)
    assert run.facts["command"] == "measure" and run.facts["status"] == "complete"
    assert set(run.cells["target"]) == {"live", "null"}
    assert run.study.workload[0].name == "measure"
    analysis = analyse(run)
    assert [point.depth for point in analysis.points] == [2, 8]
    assert all(point.disks == 1 for point in analysis.points)
    assert run_checks(analysis)
    assert write_report(run).exists()


@pytest.mark.parametrize(
    ("words", "code", "pattern"),
    [
        (["/nowhere/at/all"], 2, "there is no such file, directory or device"),
        (["null", "--depth", "0"], 2, "--depth: '0'"),
        (["null", "--size", "8kb"], 2, "--size: 8000 bytes are not whole sectors"),
        (["null", "--address", "strided:700"], 2, "--address: 700 bytes are not whole sectors"),
        (["null", "--size", "1000"], 2, "1000"),
        (["null", "null", "--depth", "1"], 2, "leaves some with nothing"),
        ([".", "--file-size", "100TiB"], 2, "a smaller --file-size"),
        (["null", "--cpus", "4000"], 2, "--cpus: '4000': there is no such processor here"),
        (["raid5(5)@"], 2, "TARGET: 'raid5(5)@': names an empty place after '@'"),
        (["raid5(5)@memory,"], 2, "TARGET: 'raid5(5)@memory,': names an empty place after '@'"),
        (["memory", "--span", "0.001%"], 2, "--span: '0%-0.001%': is less than a page"),
        ([""], 2, "TARGET: '': is empty"),
        (["null", "--size", ""], 2, "--size: ''"),
        (["null", "--size", "table:4KiB=0"], 2, "--size: no weights to draw by"),
        (["null", "--rate", "100", "--arrival", "h2:cv2=0.5"], 2, "--arrival: 0.5: cv2: must be above 1"),
        (
            ["null", "--rate", "100", "--arrival", "h2:cv2=1e15"],
            2,
            "cv2: must be at most 1e+06",
        ),
        (
            ["null", "--rate", "2", "--runtime", "400ms"],
            2,
            "2/s: is less than one request in the runtime of 400ms",
        ),
    ],
)
def test_bad_input_is_one_line_and_measures_nothing(words: list[str], code: int, pattern: str, tmp_path: Path) -> None:
    done = measure(*words, "--out", tmp_path / "kept", code=code)
    assert pattern in done.stderr and done.stdout == ""
    kept = tmp_path / "kept"
    assert not kept.exists() or list(kept.iterdir()) == []


def test_a_seed_beyond_what_a_study_can_hold_is_refused() -> None:
    done = subprocess.run([*CLI, "null", "--seed", str(2**63)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--seed" in done.stderr and str(2**63 - 1) in done.stderr


def test_an_interrupt_keeps_what_was_measured(file: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*CLI, str(file), "--runtime", "30s", "--warmup", "10ms", "--out", str(tmp_path / "kept")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen: list[str] = []
    wait_for_measuring(process.stderr, seen, "measuring")
    wait_for_a_worker(process.pid)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    assert "(cut short)" in out and "Traceback" not in errors
    (folder,) = (tmp_path / "kept").iterdir()
    run = load_run(folder)
    assert run.facts["status"] == "interrupted"
    assert run.cells.filter(run.cells["interrupted"])["all_requests"].to_list()[0] > 0


@pytest.mark.slow
def test_a_file_that_is_truncated_or_removed_meanwhile(file: Path) -> None:
    out, errors = pulled_away(lambda: os.truncate(file, 65536), file)
    assert f"error: TARGET: '{file}': " in errors and "truncated" in errors
    assert "depth 32" in out, "what was measured before is shown"
    file.write_bytes(os.urandom(MIB) * 8)
    out, errors = pulled_away(file.unlink, file)
    assert f"error: TARGET: '{file}': was taken away or replaced" in errors
    assert "depth 32" in out
    assert not file.exists(), "nothing is made in its place"


def test_a_directory_that_is_emptied_meanwhile(tmp_path: Path) -> None:
    def empty() -> None:
        for folder in tmp_path.glob("raidlab-members-*"):
            shutil.rmtree(folder, ignore_errors=True)

    _, errors = pulled_away(empty, tmp_path, "--file-size", "8MiB")
    assert f"error: TARGET: '{tmp_path}': was taken away or replaced" in errors
    assert list(tmp_path.iterdir()) == []


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("loop devices, mounting and dropping capabilities need root")


@pytest.fixture
def loop(tmp_path: Path, loops: Callable[[Path], str]) -> Callable[[str], str]:
    """Makes loop devices by name, over files of random bytes."""

    def make(name: str, size: int = 32 * MIB) -> str:
        backing = tmp_path / name
        # Holes would be read for nothing, and a check says so.
        backing.write_bytes(os.urandom(MIB) * (size // MIB))
        return loops(backing)

    return make


@pytest.mark.slow
def test_a_loop_device(loop: Callable[[str], str]) -> None:
    device = loop("disk")
    found = document(device, "--depth", "1,8")
    assert found["targets"][0]["kind"] == "block" and found["targets"][0]["volumes"] == []
    assert [row["depth"] for row in found["results"]] == [1, 8]
    assert "--destroy " + device in measure(device, "--rw", "randwrite", code=4).stderr
    written = document(device, "--rw", "randwrite", "--destroy", device)
    assert written["results"][0]["operation"] == "write"
    part = document(device, "--span", "25%-50%")
    assert {finding["check"]: finding["verdict"] for finding in part["checks"]}["short_stroke"] == "WARN"


def test_two_loop_devices_on_one_disk_are_said_to_share_it(loop: Callable[[str], str]) -> None:
    done = measure(loop("a"), loop("b"), "--depth", "4")
    assert "WARN shared_device: Targets that are measured at once share" in " ".join(done.stdout.split())
    assert done.stdout.count("/dev/loop") >= 4


@pytest.mark.slow
def test_a_loop_device_that_is_detached_or_loses_its_file(loop: Callable[[str], str], tmp_path: Path) -> None:
    device = loop("disk")
    out, errors = pulled_away(lambda: subprocess.run(["losetup", "-d", device], check=True), device)
    assert f"error: TARGET: '{device}': " in errors
    assert "depth 32" in out
    device = loop("other")
    out, errors = pulled_away(lambda: os.truncate(tmp_path / "other", MIB), device)
    assert f"error: TARGET: '{device}': " in errors and "Input/output error" in errors
    assert "depth 32" in out


def test_a_read_only_device_is_not_written(loop: Callable[[str], str]) -> None:
    device = loop("disk")
    subprocess.run(["blockdev", "--setro", device], check=True)
    assert "is read-only" in measure(device, "--rw", "randwrite", "--destroy", device, code=2).stderr
    measure(device)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB in memory."""
    need_root()
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=False)


@pytest.mark.slow
def test_full_and_read_only_file_systems(small_disk: Path) -> None:
    assert "24 MiB are free" in measure(small_disk, "--file-size", "64MiB", code=2).stderr
    measure(small_disk, "--file-size", "8MiB")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert "read-only file system" in measure(small_disk, "--file-size", "8MiB", code=2).stderr
    assert list(small_disk.iterdir()) == []


def test_a_disk_that_fills_up_while_the_file_is_made(tmp_path: Path) -> None:
    # The room that there seemed to be is gone when it is asked for: a limit on the size of files does the same.
    limited = ["sh", "-c", 'ulimit -f 4096; exec "$@"', "sh", *CLI, str(tmp_path), "--file-size", "16MiB"]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    check(done.returncode, done.stdout, done.stderr, 1)
    assert f"error: TARGET: '{tmp_path}': " in done.stderr and "allocating" in done.stderr
    assert "File too large (ulimit -f, or the file system's limit)" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_target_that_fills_up_meanwhile_spoils_nothing(small_disk: Path) -> None:
    # The file was allocated before: measuring needs nothing more of this disk.
    words = ["--file-size", "16MiB", "--rw", "randwrite"]
    out, errors = _filled_while_measuring(small_disk, words, {}, code=0)
    assert "standard output" not in errors
    assert "random writes of 4 KiB" in out


@pytest.mark.slow
def test_a_disk_of_temporary_files_that_fills_up_meanwhile_loses_nothing(small_disk: Path) -> None:
    words = ["--file-size", "16MiB", "--rw", "randwrite"]
    out, errors = _filled_while_measuring(small_disk, words, {"TMPDIR": str(small_disk)}, code=1)
    assert "cannot be written: No space left on device" in errors and "standard output" not in errors
    assert "parts.jsonl" not in errors
    assert "depth 32" in out and invalid_checks(out) <= OF_THE_MACHINE


def _filled_while_measuring(folder: Path, words: list[str], environment: dict[str, str], code: int) -> tuple[str, str]:
    process = subprocess.Popen(
        [*CLI, str(folder), *words, "--runtime", "300ms", "--warmup", "10ms", "--repeats", "12"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    seen: list[str] = []
    wait_for_measuring(process.stderr, seen, "measuring")
    wait_for_measuring(process.stderr, seen, " of about ")
    with suppress(OSError), (folder / "fill").open("wb", buffering=0) as other:
        while True:
            other.write(bytes(4096))
    out, rest = process.communicate(timeout=600)
    errors = "".join(seen) + rest
    if "io_uring" in errors and process.returncode == 1:
        pytest.skip(f"no io_uring here: {errors}")
    check(process.returncode, out, errors, code)
    return out, errors


def test_what_may_not_be_opened(file: Path, tmp_path: Path) -> None:
    need_root()
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv here")
    closed = tmp_path / "closed"
    closed.mkdir()
    for path in (file, closed):
        os.chown(path, 65534, 65534)
        path.chmod(0o600 if path == file else 0o755)
    for target, pattern in ((file, "Permission denied"), (closed, "permission denied")):
        command = ["setpriv", f"--bounding-set={DROPPED}", f"--inh-caps={DROPPED}", *CLI, str(target), *QUICK]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        check(done.returncode, done.stdout, done.stderr, 2)
        assert f"error: TARGET: '{target}': " in done.stderr and pattern in done.stderr


@pytest.mark.slow
def test_btrfs_and_its_facts(loop: Callable[[str], str], tmp_path: Path) -> None:
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs here (btrfs-progs)")
    devices = [loop(f"disk{index}", 128 * MIB) for index in range(2)]  # type: ignore[call-arg]
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    made = subprocess.run(
        ["mkfs.btrfs", "-q", "-f", "-d", "raid1", "-m", "raid1", *devices], check=False, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    subprocess.run(["btrfs", "device", "scan"], check=False, capture_output=True)
    if subprocess.run(["mount", devices[0], str(mounted)], capture_output=True, check=False).returncode != 0:
        pytest.skip("btrfs cannot be mounted here")
    try:
        found = document(mounted, "--file-size", "16MiB")
        (volume,) = found["targets"][0]["volumes"]
        assert (volume["kind"], volume["level"], volume["state"]) == ("btrfs", "raid1", "optimal")
        assert found["targets"][0]["volumes_after"][0]["state"] == "optimal"
        assert {finding["check"]: finding["verdict"] for finding in found["checks"]}["array_state"] == "PASS"
        out = measure(mounted, "--file-size", "16MiB").stdout
        assert "btrfs raid1, 2 of 2 members online, optimal" in " ".join(out.split())
    finally:
        subprocess.run(["umount", str(mounted)], check=False)


def test_what_failed_is_told_where_nothing_had_been_measured_yet(capsys: pytest.CaptureFixture[str]) -> None:
    say_cut_short("measurement", "failed", "the disk is gone", is_empty=True)
    say_cut_short("measurement", "interrupted", None, is_empty=True)
    assert capsys.readouterr().err.splitlines() == [
        "the measurement failed; nothing had been measured yet",
        "error: the disk is gone",
        "the measurement was interrupted; nothing had been measured yet",
    ]

"""Job files of fio's run on raidlab's engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from raidlab.formats.fio.cells import ImportSettings, import_jobs
from raidlab.formats.fio.options import load_job_file
from raidlab.run.from_fio import JobFileRun, JobResult, by_job

MIB = 1 << 20


def run(file: Path, **settings: Any) -> tuple[JobFileRun, list[JobResult]]:
    job_run = JobFileRun(import_jobs(load_job_file(file), ImportSettings(**settings)))
    return job_run, by_job(list(job_run.results()))


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "job.fio"
    file.write_text(text, encoding="utf-8")
    return file


def cli(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from raidlab.cli import main; main()", "fio", *words]
    return subprocess.run(program, capture_output=True, text=True, check=False, cwd=cwd)


def test_groups_run_in_order_and_jobs_at_once(tmp_path: Path) -> None:
    text = f"""
[global]
directory={tmp_path}
size=1m
ioengine=libaio
direct=1
[a]
rw=randwrite
bs=8k
[b]
rw=randread
iodepth=4
[c]
stonewall
rw=rw
rwmixread=75
io_size=4m
"""
    job_run, jobs = run(written(tmp_path, text))
    assert (job_run.status, job_run.failure) == ("complete", None)
    assert [(job.group, job.title) for job in jobs] == [(0, "a"), (0, "b"), (1, "c")]
    assert [job.requests for job in jobs] == [128, 256, 1024]
    assert [job.bytes for job in jobs] == [MIB, MIB, 4 * MIB]
    assert all(job.iops > 0 and job.response.total == job.requests for job in jobs)
    reads = jobs[2].lanes[0].answer["read"]["requests"]
    # 1024 requests, each a read with chance 3/4: five standard deviations are 69.
    assert abs(reads - 768) < 70
    assert {file.name for file in tmp_path.iterdir()} == {"job.fio", "a.0.0", "b.0.0", "c.0.0"}


def test_only_the_part_that_a_job_names_is_written(tmp_path: Path) -> None:
    target = tmp_path / "f"
    run(written(tmp_path, f"[j]\nfilename={target}\nsize=4m\nrw=read\n"))
    before = target.read_bytes()
    run(written(tmp_path, f"[j]\nfilename={target}\noffset=1m\nsize=1m\nrw=write\nend_fsync=1\n"))
    after = target.read_bytes()
    assert before[:MIB] == after[:MIB]
    assert before[2 * MIB :] == after[2 * MIB :]
    assert before[MIB : 2 * MIB] != after[MIB : 2 * MIB]


def test_a_file_of_others_is_read_but_not_written(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_bytes(b"x" * MIB)
    _, (job,) = run(written(tmp_path, f"[j]\nfilename={target}\nrw=randread\nsize=50%\n"))
    assert job.bytes == MIB // 2
    done = cli("import", str(written(tmp_path, f"[j]\nfilename={target}\nrw=randwrite\n")), "--run", cwd=tmp_path)
    assert done.returncode == 4
    assert "[j] targets[0].path" in done.stderr
    assert "was not made by raidlab" in done.stderr
    assert target.read_bytes() == b"x" * MIB


def test_a_paced_job_keeps_its_rate(tmp_path: Path) -> None:
    text = "[j]\nioengine=null\nsize=1g\nio_size=4m\nrate_iops=2000\niodepth=8\n"
    began_s = time.monotonic()
    _, (job,) = run(written(tmp_path, text))
    took_s = time.monotonic() - began_s
    assert job.lanes[0].answer["backlog"]["max_in_flight"] <= 8
    assert job.requests == 1024
    # The last is due after 0.512 s, and never comes before it is due. How late it is is up to the machine.
    assert 0.51 <= took_s < 30


def test_clones_that_read_one_file_in_order_each_read_all_of_it(tmp_path: Path) -> None:
    _, (job,) = run(written(tmp_path, f"[j]\nfilename={tmp_path}/f\nsize=1m\nnumjobs=3\nrw=read\n"))
    assert [lane.answer["all"]["bytes"] for lane in job.lanes] == [MIB] * 3
    assert job.bytes == 3 * MIB


def test_the_command_shows_and_runs(tmp_path: Path) -> None:
    file = written(tmp_path, "[small job]\nrw=randread\nsize=1m\nrandseed=5\n")
    shown = cli("import", str(file), "--json", cwd=tmp_path)
    document = json.loads(shown.stdout)
    (job,) = document["groups"][0]["jobs"]
    assert (job["job"], job["line"], job["cell"]["seed"]) == ("small job", 1, 5)
    assert "results" not in document
    assert not (tmp_path / "small job.0.0").exists()
    table = cli("import", str(file), cwd=tmp_path)
    assert "4 KiB" in table.stdout
    assert "note: no norandommap" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80
    ran = json.loads(cli("import", str(file), "--run", "--json", cwd=tmp_path).stdout)
    (result,) = ran["results"]
    assert (ran["status"], result["requests"], result["read_requests"], result["failed"]) == ("complete", 256, 256, 0)
    assert result["response_time_ns_p50"] <= result["response_time_ns_p99"]


def test_a_line_that_cannot_be_honoured_ends_with_code_2_before_anything_is_made(tmp_path: Path) -> None:
    done = cli("import", str(written(tmp_path, "[j]\nsize=1m\nrw=write\nverify=crc32c\n")), "--run", cwd=tmp_path)
    assert done.returncode == 2
    assert re.match(r"error: .*job\.fio:4: 'verify=crc32c': .*; accepted: ", done.stderr)
    assert [file.name for file in tmp_path.iterdir()] == ["job.fio"]


def test_what_fails_keeps_what_was_measured_before(tmp_path: Path) -> None:
    text = "[a]\nioengine=null\nsize=1m\n[b]\nstonewall\nioengine=null\nsize=1m\n"
    imported = import_jobs(load_job_file(written(tmp_path, text)), ImportSettings())
    first, (lane,) = imported.groups
    wrong = replace(lane, cell=lane.cell.model_copy(update={"batch": 0}))
    job_run = JobFileRun(replace(imported, groups=(first, (wrong,))))
    jobs = by_job(list(job_run.results()))
    assert [job.title for job in jobs] == ["a"]
    assert job_run.status == "failed"
    assert "[b]" in (job_run.failure or "")

"""The job files that come with fio, where it is installed: they run, or the line that cannot be honoured is named."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from raidlab.errors import RaidlabError
from raidlab.formats.fio.cells import ImportSettings, import_jobs
from raidlab.formats.fio.options import load_job_file
from raidlab.run.from_fio import JobFileRun, by_job

MIB = 1 << 20
EXAMPLES = Path(os.environ.get("RAIDLAB_FIO_EXAMPLES", "/usr/share/doc/fio/examples"))
LEAST_EXAMPLES = 10

needs_examples = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason=f"fio's example job files are not in {EXAMPLES} (Debian: the package fio-examples)"
)


@needs_examples
def test_fios_own_examples_run_or_name_the_line(tmp_path: Path) -> None:
    ran, refused = [], {}
    for file in sorted(EXAMPLES.glob("*.fio")):
        folder = tmp_path / file.stem
        folder.mkdir()
        try:
            settings = ImportSettings(directory=str(folder), most_bytes=4 * MIB, most_ns=100_000_000)
            job_run = JobFileRun(import_jobs(load_job_file(file), settings))
            jobs = by_job(list(job_run.results()))
        except RaidlabError as error:
            refused[file.name] = str(error)
        else:
            assert (job_run.status, job_run.failure) == ("complete", None), file.name
            # How many requests end in so short a time is the disk's affair; that each job made some is ours.
            counts = [lane.answer["requests_of_run"] for job in jobs for lane in job.lanes]
            assert counts, file.name
            assert all(count["submitted"] > 0 and count["failed"] == 0 for count in counts), file.name
            ran.append(file.name)
    assert len(ran) >= LEAST_EXAMPLES, ran
    for name, said in refused.items():
        assert all(re.search(rf"{re.escape(name)}:\d+: ", line) for line in said.splitlines()), (name, said)

"""What fio does otherwise than raidlab, though the job can be run: one sentence each.

Invariant: whatever changes what is measured is said here or refused elsewhere; a sentence names the option and the job.
"""

from __future__ import annotations

from raidlab.formats.fio.options import Job
from raidlab.formats.fio.values import NULL_ENGINE, WAITING_ENGINES


def notes_of(job: Job, kinds: list[str], *, shared: bool) -> list[str]:
    """The notes of a job whose files are of these kinds; ``shared``: all its clones use the same files."""
    notes = [*_engine(job), *_order(job, shared=shared, files=len(kinds)), *_pace(job), *_around(job, kinds)]
    if job.quiet:
        notes.append(f"{', '.join(job.quiet)}: about fio's own process and report, left out")
    return notes


def depth_note(job: Job) -> str | None:
    """Why fio does not keep ``iodepth`` requests in flight; None where it does."""
    if job.iodepth > 1 and job.ioengine in WAITING_ENGINES:
        return f"iodepth={job.iodepth}: {job.ioengine} waits for each request, so the depth is 1, in fio as here"
    if job.iodepth > 1 and job.ioengine == "libaio" and not job.direct:
        return (
            f"iodepth={job.iodepth} without direct=1: libaio then waits at submission and its real depth is nearer 1; "
            "here the depth is kept"
        )
    return None


def _engine(job: Job) -> list[str]:
    notes = []
    engine = job.ioengine
    if engine == "mmap":
        notes.append("ioengine=mmap: read and written through the page cache by system calls, not by page faults")
    if engine == "posixaio":
        notes.append("ioengine=posixaio: through io_uring; glibc's threads serve one request a file at a time")
    if (note := depth_note(job)) is not None:
        notes.append(note)
    elif engine == "libaio":
        notes.append("ioengine=libaio: through io_uring, which keeps the same depth in flight")
    if job.batch_submit != job.batch_complete_max:
        notes.append("iodepth_batch: raidlab submits and takes at most 4 in one turn, or the same number of each")
    if len(job.cpus_allowed) > 1 and job.cpus_allowed_policy == "shared":
        notes.append("cpus_allowed: raidlab binds each worker to one of them, as cpus_allowed_policy=split does")
    if job.gtod_reduce:
        notes.append("gtod_reduce=1: raidlab reads its clock at every request and reports times all the same")
    return notes


def _order(job: Job, *, shared: bool, files: int) -> list[str]:
    notes = []
    if job.rw.random and not job.norandommap and job.random_distribution.kind == "random":
        notes.append("no norandommap: fio goes to every block once before any twice; raidlab draws with replacement")
    if not job.rw.random and job.rw.reads and job.rw.writes:
        notes.append("rw: fio keeps one place for reads and one for writes; here both go on from the same place")
    if not job.rw.random and job.rw.writes and shared and job.numjobs > 1 and job.adjoining == 1:
        notes.append(
            f"numjobs={job.numjobs} in order over one file: fio's clones all begin at its front; here each has a part "
            "of its own, since only one run may write a file"
        )
    if shared and files > 1 and job.file_service_type == "roundrobin" and job.rw.random:
        notes.append("filename: fio takes its files in turn; here they are drawn, or dealt to the workers")
    return notes


def _pace(job: Job) -> list[str]:
    if job.latency_target_ns is not None:
        clones = [f"numjobs={job.numjobs}: one worker holds the depth of all"] if job.numjobs > 1 else []
        return [
            *clones,
            "latency_target: fio looks for a depth in windows and counts from submission; raidlab adjusts the depth "
            "all the time, up to iodepth, and counts from the intended start",
        ]
    if job.rate is None and job.rate_iops is None:
        return []
    notes = ["rate: response times count from the intended arrival; fio's count from submission"]
    if job.numjobs > 1:
        notes.append("rate: the clones' requests arrive evenly spaced together, not each clone's by itself")
    return notes


def _around(job: Job, kinds: list[str]) -> list[str]:
    notes = []
    if job.time_based and not job.runtime_ns:
        notes.append("time_based without runtime has no effect, as in fio")
    if not job.direct and not job.invalidate and job.ioengine != NULL_ENGINE:
        notes.append("invalidate=0: what the page cache holds is left there")
    if job.end_fsync:
        notes.append("end_fsync=1: done after the run; its time is not part of the figures")
    if job.rw.writes and not job.refill_buffers and job.ioengine != NULL_ENGINE:
        notes.append("refill_buffers: fio repeats its buffers without it; raidlab never writes the same sector twice")
    if "file" in kinds and job.rw.writes:
        notes.append("a file that is there is only written if raidlab made it")
    return notes

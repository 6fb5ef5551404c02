"""A job file in raidlab's words: groups that run one after another, each of lanes that run at once.

Invariants:

- A lane is one cell of the direct engine. The clones of a job are the workers of one lane, unless each of them must go
  through the same file in order: then each is a lane.
- What fio means and raidlab does otherwise is a note or a problem with its line; none is left unsaid.
- Nothing is opened, made or run here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd
from typing import Any, Literal

from raidlab.errors import InputError, Problem, RefusedError
from raidlab.formats.fio import places
from raidlab.formats.fio.load import amounts, load_of
from raidlab.formats.fio.notes import notes_of
from raidlab.formats.fio.options import Job, JobFile
from raidlab.formats.fio.places import FilePart, Look
from raidlab.formats.fio.values import NULL_ENGINE, WAITING_ENGINES, ByDirection
from raidlab.study.cell import DirectCell, Span
from raidlab.study.expand import derive_seed
from raidlab.study.workload import (
    Address,
    DrawnRequests,
    FixedSize,
    MixedAddress,
    SequentialAddress,
    StridedAddress,
    TableSize,
    UniformAddress,
    ZipfAddress,
)

DEFAULT_BLOCK_BYTES = 4096
SECTOR_BYTES = 512


@dataclass(frozen=True)
class ImportSettings:
    """What the user asks of an import beside the file."""

    seed: int = 1
    """Where jobs without a ``randseed`` take theirs from."""
    destroy: tuple[str, ...] = ()
    """Block devices that may be overwritten."""
    directory: str | None = None
    """In place of every job's own ``directory``."""
    most_bytes: int | None = None
    """No more of each file is used."""
    most_ns: int | None = None
    """No job runs longer."""


@dataclass(frozen=True)
class Lane:
    """One cell, and what to do around it."""

    job: Job
    cell: DirectCell
    parts: tuple[FilePart, ...]

    @property
    def writes(self) -> bool:
        """Whether it writes."""
        return self.job.rw.writes


@dataclass(frozen=True)
class Import:
    """What a job file comes to: groups in order, each a list of lanes that run at once; and notes."""

    groups: tuple[tuple[Lane, ...], ...]
    notes: tuple[str, ...]


@dataclass
class _Importer:
    settings: ImportSettings
    look: Look
    problems: list[Problem] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    def lanes(self, job: Job, number: int) -> list[Lane]:
        """The lanes of a job; problems are collected."""
        sizes = self._sizes(job)
        parts, shared = self._parts(job, min(sizes.bytes) if sizes else DEFAULT_BLOCK_BYTES)
        if not parts or sizes is None:
            return []
        if min(part.size_bytes for part in parts) < max(sizes.bytes):
            self.problems.append(job.problem("size", "a request is longer than the part of the file it lies in"))
            return []
        workload = self._workload(job, sizes, parts, shared=shared)
        mean_bytes = _mean(sizes)
        load = load_of(job, mean_bytes, min(sizes.bytes))
        if workload is None or isinstance(load, Problem):
            self.problems += [load] if isinstance(load, Problem) else []
            return []
        if job.adjoining > 1 and (problem := _adjoining_problem(job, parts, shared=shared)):
            self.problems.append(problem)
            return []
        lanes = job.numjobs if shared and _each_goes_through(job) else 1
        together = job.numjobs // lanes
        bytes_each = sum(part.size_bytes for part in parts) // (job.adjoining if shared else job.numjobs)
        measure, warmup = amounts(job, bytes_each, mean_bytes, together, self.settings.most_ns)
        self._note(job, parts, shared=shared)
        return [
            Lane(
                job,
                DirectCell(
                    seed=self._seed(job, number, lane),
                    targets=[target_of(part) for part in parts],
                    spans=_spans(parts),
                    sector_bytes=_sector_bytes(workload),
                    # What holds a percentile must see all requests.
                    workers=together if job.latency_target_ns is None else 1,
                    interface="threads" if job.ioengine in WAITING_ENGINES else "auto",
                    buffered=not job.direct and job.ioengine != NULL_ENGINE,
                    cpus=list(job.cpus_allowed or ()),
                    busy=job.batch_complete_min == 0,
                    poll_completions=job.hipri,
                    batch=job.batch_submit if job.batch_submit == job.batch_complete_max else None,
                    compressible_percent=job.buffer_compress_percentage,
                    destroy=self._given_up(parts),
                    load=load.times(together),
                    workload=workload,
                    warmup=warmup,
                    measure=measure,
                ),
                tuple(parts),
            )
            for lane in range(lanes)
        ]

    def _parts(self, job: Job, block_bytes: int) -> tuple[list[FilePart], bool]:
        most = self.settings.most_bytes
        if job.ioengine == NULL_ENGINE:
            found: list[FilePart | Problem] = [places.null_part(job, most)]
            shared = True
        else:
            names, shared = places.names_of(job, self.look, self.settings.directory)
            files = len(names) if shared else 1
            found = [places.part_of(job, name, files, block_bytes, self.look, most) for name in names]
        self.problems += [part for part in found if isinstance(part, Problem)]
        parts = [part for part in found if not isinstance(part, Problem)]
        for part in parts:
            if part.kind == places.BLOCK and job.rw.writes and part.path not in self.settings.destroy:
                line = job.problem("filename", f"{part.path} is a block device, and the job writes")
                accepted = f"the same device given up by name, --destroy {part.path}"
                self.refusals.append(f"{line}; nothing was touched; accepted: {accepted}")
        return (parts if len(parts) == len(found) else []), shared

    def _sizes(self, job: Job) -> TableSize | None:
        """The sizes of a job's requests; reads and writes of a job must have the same."""
        found = [_sizes_of(job, way) for way, wanted in (("read", job.rw.reads), ("write", job.rw.writes)) if wanted]
        option = "bs" if job.bssplit is None else "bssplit"
        if found[0] != found[-1]:
            message = "reads and writes of one job have the same sizes in raidlab"
            self.problems.append(job.problem(option, message, "one size for both, or a job for each"))
            return None
        odd = [length for length in found[0].bytes if length % SECTOR_BYTES]
        if odd:
            message = f"{odd[0]} bytes are not whole sectors of {SECTOR_BYTES}"
            self.problems.append(job.problem(option, message, f"multiples of {SECTOR_BYTES}"))
            return None
        return found[0]

    def _workload(self, job: Job, sizes: TableSize, parts: list[FilePart], *, shared: bool) -> DrawnRequests | None:
        address = self._address(job, sizes)
        if address is None:
            return None
        place, align = address
        share = job.rwmixread / 100 if job.rw.reads and job.rw.writes else float(job.rw.reads)
        size = FixedSize(bytes=sizes.bytes[0]) if len(sizes.bytes) == 1 else sizes
        # Clones with a file each keep their own depth; files of one job are taken in turn, which on the average is
        # drawing them.
        volumes: Literal["uniform", "even"] = "uniform" if shared or len(parts) == 1 else "even"
        return DrawnRequests(read=share, size=size, address=place, align=align, volumes=volumes)

    def _address(self, job: Job, sizes: TableSize) -> tuple[Address, int] | None:
        """Where requests start, and what that is aligned to."""
        lengths = sizes.bytes
        if job.rw.random:
            align = _one_way(job, job.blockalign) or min(lengths)
            if align % SECTOR_BYTES:
                self.problems.append(job.problem("blockalign", f"is not a multiple of {SECTOR_BYTES}"))
                return None
            if job.percentage_random < 100:
                if job.random_distribution.kind == "zipf":
                    message = "raidlab goes on from uniformly drawn places only"
                    self.problems.append(job.problem("percentage_random", message, "no random_distribution beside it"))
                    return None
                return MixedAddress(kind="mixed", sequential=1 - job.percentage_random / 100), align
            if job.random_distribution.kind == "zipf":
                return ZipfAddress(kind="zipf", theta=job.random_distribution.theta), align
            return UniformAddress(kind="uniform"), align
        if job.rw.gap_bytes:
            if len(lengths) > 1 or job.rw.gap_bytes % SECTOR_BYTES:
                message = "raidlab leaves gaps of whole sectors between requests of one size"
                self.problems.append(job.problem("rw", message, "bs instead of bssplit, and such a gap"))
                return None
            return StridedAddress(kind="strided", stride=lengths[0] + job.rw.gap_bytes), SECTOR_BYTES
        # In order there is no gap: starts are multiples of what all sizes have in common.
        return SequentialAddress(kind="sequential"), gcd(*lengths)

    def _seed(self, job: Job, number: int, lane: int) -> int:
        if job.randseed is not None and lane == 0:
            return job.randseed
        root = self.settings.seed if job.randseed is None else job.randseed
        return derive_seed(root, "fio", job.title, str(number), str(lane))

    def _given_up(self, parts: Iterable[FilePart]) -> list[str]:
        return [part.path for part in parts if part.kind == places.BLOCK and part.path in self.settings.destroy]

    def _note(self, job: Job, parts: list[FilePart], *, shared: bool) -> None:
        """What fio does otherwise, told once a job."""
        for note in notes_of(job, [part.kind for part in parts], shared=shared):
            self.notes.setdefault(note, []).append(job.title)


def import_jobs(file: JobFile, settings: ImportSettings, look: Look = places.look_at) -> Import:
    """Turn a job file into groups of cells; an error has every line that cannot be honoured."""
    importer = _Importer(settings, look)
    groups: list[list[Lane]] = [[]]
    for number, job in enumerate(file.jobs):
        if job.stonewall and groups[-1]:
            groups.append([])
        groups[-1] += importer.lanes(job, number)
    for group in groups:
        importer.problems += _collisions(group)
    if importer.problems:
        raise InputError(list(dict.fromkeys(importer.problems)))
    if importer.refusals:
        raise RefusedError(importer.refusals[0])
    notes = (f"{note} [{', '.join(jobs)}]" for note, jobs in importer.notes.items())
    return Import(tuple(tuple(group) for group in groups), tuple(notes))


def target_of(part: FilePart) -> dict[str, Any]:
    """The file of a part as a target of the direct engine; what of it is used is in the cell's ``spans``."""
    if part.kind == "null":
        return {"kind": "null", "size_bytes": part.size_bytes}
    if part.kind == places.BLOCK:
        return {"kind": "block", "path": part.path}
    return {"kind": "file", "path": part.path, "size_bytes": part.offset_bytes + part.size_bytes}


def _spans(parts: list[FilePart]) -> list[Span]:
    """``spans`` of a cell where its targets are not used whole."""
    if all(part.kind != places.BLOCK and not part.offset_bytes for part in parts):
        return []
    return [Span(offset_bytes=part.offset_bytes, size_bytes=part.size_bytes) for part in parts]


def _sector_bytes(workload: DrawnRequests) -> int | None:
    """``sector_bytes`` of a cell where its requests are not whole pages: the engine prefers larger sectors."""
    size, address = workload.size, workload.address
    lengths = [size.bytes] if size.kind == "fixed" else size.bytes if size.kind == "table" else []
    stride = address.stride if address.kind == "strided" else 0
    common = gcd(*lengths, workload.align_bytes(SECTOR_BYTES), stride)
    return SECTOR_BYTES if common % DEFAULT_BLOCK_BYTES else None


def _each_goes_through(job: Job) -> bool:
    """Whether each clone goes through the same file from its front, and may: only one cell at a time writes a file."""
    return not job.rw.random and not job.rw.writes and job.ioengine != NULL_ENGINE and job.adjoining == 1


def _adjoining_problem(job: Job, parts: list[FilePart], *, shared: bool) -> Problem | None:
    """What keeps the clones' parts of a file from being one part that workers divide."""
    same = job.size is not None and job.size.bytes == job.offset_increment
    if shared and len(parts) == 1 and same and job.random_distribution.kind == "random":
        return None
    message = "clones in raidlab have parts of one file that adjoin, and no hot places of their own"
    return job.problem("offset_increment", message, "offset_increment equal to size, with one filename")


def _collisions(group: list[Lane]) -> Iterable[Problem]:
    """Jobs at once on one file, of which one writes: raidlab claims what it writes for one cell alone."""
    users: dict[str, Lane] = {}
    for lane in group:
        for part in lane.parts:
            other = users.setdefault(part.path, lane)
            if part.kind != "null" and other is not lane and (other.writes or lane.writes):
                message = f"{part.path} is also used by [{other.job.title}] at the same time, and one of them writes"
                yield lane.job.problem("filename", message, "stonewall between them, or files of their own")


def _one_way(job: Job, both: ByDirection | None) -> int | None:
    """The value for what a job does; that of reads where it does both."""
    if both is None:
        return None
    return both.read if job.rw.reads else both.write


def _sizes_of(job: Job, way: str) -> TableSize:
    """Sizes and weights of one direction."""
    if job.bssplit is not None:
        split = getattr(job.bssplit, way)
        lengths, weights = [length for length, _ in split], [float(share) for _, share in split]
        return TableSize(kind="table", bytes=lengths, weights=weights)
    return TableSize(kind="table", bytes=[getattr(job.bs, way) or DEFAULT_BLOCK_BYTES], weights=[100.0])


def _mean(sizes: TableSize) -> float:
    weighted = sum(length * weight for length, weight in zip(sizes.bytes, sizes.weights, strict=True))
    return float(weighted / sum(sizes.weights))

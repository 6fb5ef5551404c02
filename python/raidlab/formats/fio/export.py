"""A cell of the direct engine as a job of fio's.

Invariants:

- What is written without a comment above it means the same to fio; what fio only approximates has a comment that says
  so; what it cannot do at all is a `CannotExportError` with the key of the cell.
- Sizes are ``bssplit``'s, up to 64, each with a whole percentage above 0 (fio takes 0 for "left out"); together 100. A
  distribution becomes classes of equal weight, each with its conditional mean in whole sectors, so the mean request is
  kept to within half a sector a class.
- Reading a job that was written without such a comment gives the same cell back (``tests/python/test_fio_export.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from raidlab.formats.fio.values import escaped
from raidlab.study.cell import DirectCell, HeldLoad, OpenLoad, Span
from raidlab.study.workload import AlignedStripeAddress, DrawnRequests, Size, Step

# What an open loop without a limit of its own keeps in flight in fio, which must have one.
OPEN_DEPTH = 256
_LEAST_SECTOR_BYTES = 512
# Parts of a file begin on multiples of this, here and in raidlab's engine.
_GRAIN_BYTES = 4096
# 50 classes of 2 %: as fine as whole percentages and fio's 64 entries allow, with one weight for all.
CLASSES = 50
_POINTS_A_CLASS = 40

Split = list[tuple[int, int]]
_UNITS = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"))


class CannotExportError(ValueError):
    """Something of a cell that fio cannot do: the key, such as ``workload.address.kind``, and what is wrong."""

    def __init__(self, key: str, message: str, value: str, accepted: str) -> None:
        super().__init__(message)
        self.key, self.message, self.value, self.accepted = key, message, value, accepted


@dataclass
class _Job:
    """A job as it is being written: options in order, what is not exact about them, and the parts of its file."""

    options: dict[str, str | None] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    parts: int = 1

    def text(self, title: str) -> str:
        lines = [f"# {comment}" for comment in self.comments]
        lines += [f"[{section_name(title)}]"]
        lines += [name if value is None else f"{name}={value}" for name, value in self.options.items()]
        return "\n".join(lines) + "\n"


def export_cell(title: str, cell: DirectCell, *, comments: Sequence[str] = (), stonewall: bool = False) -> str:
    """Write a cell as a job, a section of a job file; ``stonewall`` makes it wait for the jobs before it.

    The path of a target may hold ``${NAME}``; a target without ``size_bytes`` is used whole.
    """
    job = _Job(comments=list(comments))
    if stonewall:
        job.options["stonewall"] = None
    _pattern(job, cell)
    _sizes(job, cell)
    _load(job, cell)
    _driving(job, cell)
    _places(job, cell)
    _amount(job, cell)
    _around(job, cell)
    return job.text(title)


def section_name(title: str) -> str:
    """A name that fio takes for a section of a job."""
    plain = re.sub(r"[\[\];#\s]+", " ", title).strip() or "job"
    return f"job {plain}" if plain.startswith("global") else plain


def short_bytes(count: int) -> str:
    """A size as fio writes it.

    Examples
    --------
    >>> short_bytes(65536), short_bytes(1000)
    ('64k', '1000')
    """
    for scale, unit in _UNITS:
        if count and count % scale == 0:
            return f"{count // scale}{unit}"
    return str(count)


def _pattern(job: _Job, cell: DirectCell) -> None:
    workload = cell.workload
    share = _read_share(job, workload)
    way = {1.0: "read", 0.0: "write"}.get(share, "rw")
    drawn = not _is_in_order(workload)
    job.options["rw"] = f"rand{way}" if drawn else way
    if way == "rw":
        percent = round(100 * share)
        job.options["rwmixread"] = str(percent)
        if abs(percent - 100 * share) > 1e-9:
            job.comments.append(f"rwmixread: fio takes whole percentages only; asked for {100 * share:.4g} %")
        if not drawn:
            job.comments.append("rw: fio keeps one place for reads and one for writes; raidlab goes on from one place")


def _is_in_order(workload: DrawnRequests) -> bool:
    return workload.address.kind in ("sequential", "strided")


def _read_share(job: _Job, workload: DrawnRequests) -> float:
    """The share of reads; that of a task's steps where there is a task, told as an approximation."""
    steps = workload.task
    if not steps:
        return workload.read
    for number, step in enumerate(steps):
        for key, own, common in (("size", step.size, workload.size), ("address", step.address, workload.address)):
            if own not in (None, common):
                message = "fio has no chains of requests, and no mix of several sizes or places in one job"
                accepted = "steps of the workload's own size and address, or a workload for each"
                raise CannotExportError(
                    f"workload.task[{number}].{key}", message, str(own and own.model_dump()), accepted
                )
    if len(steps) > 1:
        job.comments.append(
            f"task: fio has no chains of requests; these {len(steps)} steps are independent requests in the same mix, "
            "and a depth counts requests instead of tasks"
        )
    return _reads_among(steps)


def _reads_among(steps: Sequence[Step]) -> float:
    return len([step for step in steps if step.op == "read"]) / len(steps)


def _sizes(job: _Job, cell: DirectCell) -> None:
    sector_bytes = cell.sector_bytes or _LEAST_SECTOR_BYTES
    split, inexact = split_of(cell.workload.size, sector_bytes)
    if inexact:
        job.comments.append(inexact)
    if len(split) == 1:
        job.options["bs"] = short_bytes(split[0][0])
    else:
        job.options["bssplit"] = ":".join(f"{short_bytes(length)}/{share}" for length, share in split)
    least = min(length for length, _ in split)
    _address(job, cell, least, [length for length, _ in split], sector_bytes)


def _address(job: _Job, cell: DirectCell, least: int, lengths: list[int], sector_bytes: int) -> None:
    address = cell.workload.address
    align = cell.workload.align_bytes(sector_bytes)
    if address.kind == "aligned_stripe":
        align = _stripe_align(address, lengths)
    unknown = {
        "hot_members": "fio knows no columns of chunks",
        "listed": "fio's jobs hold no list of places",
        "mixed": "fio knows no requests near the last one, and none that are like it",
    }
    if address.kind in unknown and not (address.kind == "mixed" and address.local == 0 and not address.alike):
        accepted = "uniform, zipf, sequential, strided or aligned_stripe"
        raise CannotExportError("workload.address.kind", unknown[address.kind], address.kind, accepted)
    if address.kind == "zipf":
        if address.theta == 1:
            job.comments.append("zipf: fio takes no theta of 1")
        theta = 1.0001 if address.theta == 1 else address.theta
        job.options["random_distribution"] = f"zipf:{theta:.10g}"
    if address.kind == "mixed":
        percent = 100 * (1 - address.sequential)
        job.options["percentage_random"] = str(round(percent))
        if abs(percent - round(percent)) > 1e-6:
            job.comments.append(f"percentage_random: fio takes whole percentages only; asked for {percent:.4g} %")
    if address.kind in ("uniform", "aligned_stripe", "mixed"):
        # raidlab draws with replacement; fio's map of blocks visited would not.
        job.options["norandommap"] = None
    if address.kind == "strided":
        gap = address.stride - least
        if gap <= 0 or len(lengths) > 1:
            message = "fio leaves gaps only, between requests of one size"
            value = short_bytes(address.stride)
            raise CannotExportError("workload.address.stride", message, value, "a fixed size below the stride")
        job.options["rw"] = f"{job.options['rw']}:{short_bytes(gap)}"
    elif address.kind != "sequential" and align != least:
        job.options["blockalign"] = short_bytes(align)
        if address.kind == "zipf":
            job.comments.append("zipf: fio counts its places by the least size, raidlab by the alignment")


def _stripe_align(address: AlignedStripeAddress, lengths: list[int]) -> int:
    """Where aligned requests begin: on a chunk, or on a stripe if all are whole stripes."""
    stripe, chunk = address.stripe, address.chunk
    if all(length % stripe == 0 for length in lengths):
        return stripe
    if all(length <= chunk for length in lengths):
        return chunk
    message = "fio aligns all requests of a job alike: to chunks or to stripes"
    accepted = "sizes of at most a chunk, or whole stripes"
    raise CannotExportError("workload.size", message, ", ".join(short_bytes(length) for length in lengths), accepted)


def _load(job: _Job, cell: DirectCell) -> None:
    load = cell.load
    threads = cell.interface == "threads"
    job.options["ioengine"] = "null" if _is_null(cell) else "psync" if threads else "io_uring"
    if load.kind == "closed":
        depth = load.depth
    elif load.kind == "open":
        depth = _open(job, cell, load)
    else:
        depth = _held(job, load)
    clones = depth if threads else cell.workers
    if _is_in_order(cell.workload):
        clones = _in_order(job, cell, clones)
        if threads and depth > clones:
            message = "fio's waiting engine has a depth of 1, and its clones would each go through the file"
            raise CannotExportError("interface", message, "threads", "io_uring, or a worker for each request")
    if depth % clones:
        job.comments.append(f"depth {depth} cannot be shared out over {clones} jobs evenly: one job has all of it")
        clones = 1
    job.options["iodepth"] = str(depth // clones)
    job.options["numjobs"] = str(clones)
    if "rate_iops" in job.options:
        rates = str(job.options["rate_iops"]).split(",")
        job.options["rate_iops"] = ",".join(str(max(round(int(rate) / clones), 1)) for rate in rates)


def _in_order(job: _Job, cell: DirectCell, clones: int) -> int:
    """How many jobs go through a file in order: each has a part of it, as raidlab's workers have."""
    address = cell.workload.address
    streams = address.streams if address.kind == "sequential" else 1
    workers = cell.workers
    if streams > 1 and workers > 1:
        message = "fio's jobs have one stream each"
        raise CannotExportError("workload.address.streams", message, str(streams), "1, or one worker")
    parts = max(streams, workers)
    size, _ = _part(cell)
    if parts == 1:
        return 1
    if len(cell.targets) > 1 or size is None:
        job.comments.append(f"{parts} workers or streams of raidlab have parts of their own; here one job has all")
        return 1
    if streams > 1:
        job.comments.append("streams: each keeps a depth of its own in fio; in raidlab they share one")
    if size % (parts * _GRAIN_BYTES):
        job.comments.append(f"size: {size} bytes in {parts} parts, rounded down to whole pages")
    job.parts = parts
    return parts


def _part(cell: DirectCell) -> tuple[int | None, int]:
    """The size and the offset of the part that is used of each target; no size where it is all of a device."""
    spans = cell.spans or [Span() for _ in cell.targets]
    found = {
        (target.get("size_bytes") if span.size_bytes is None else span.size_bytes, span.offset_bytes)
        for target, span in zip(cell.targets, spans, strict=True)
    }
    if len(found) > 1:
        message = "fio takes the same part of all files of a job"
        raise CannotExportError("targets", message, f"{len(found)} different parts", "targets of one size")
    size, offset = found.pop()
    return size, offset


def _open(job: _Job, cell: DirectCell, load: OpenLoad) -> int:
    arrival = load.arrival
    if arrival.kind not in ("poisson", "uniform"):
        message = "fio's arrivals are evenly spaced or Poisson"
        raise CannotExportError("load.arrival.kind", message, arrival.kind, "poisson, uniform")
    per_s = arrival.rate_per_s
    split, _ = split_of(cell.workload.size, cell.sector_bytes or _LEAST_SECTOR_BYTES)
    # fio multiplies rate_iops by the least size and paces bytes.
    mean = sum(length * share for length, share in split) / 100
    per_s *= mean / min(length for length, _ in split)
    steps = cell.workload.task
    reads = _reads_among(steps) if steps else cell.workload.read
    paced = [per_s * reads, per_s * (1 - reads)] if 0 < reads < 1 else [per_s]
    whole = [max(round(rate), 1) for rate in paced]
    if any(abs(rate - asked) > 1e-6 for rate, asked in zip(whole, paced, strict=True)):
        job.comments.append(f"rate_iops: whole numbers only; asked for {', '.join(f'{rate:.6g}' for rate in paced)}")
    job.options["rate_iops"] = ",".join(str(rate) for rate in whole)
    if arrival.kind == "poisson":
        job.options["rate_process"] = "poisson"
    # Not io_submit_mode=offload: fio refuses it with io_uring.
    job.comments.append(
        "rate: fio's times count from submission, raidlab's from the intended arrival; fio submits and reaps in one "
        "thread, so that a slow submission holds up the next arrival"
    )
    if load.max_in_flight is None:
        job.comments.append(f"iodepth: raidlab sets no limit to what is in flight, fio must have one ({OPEN_DEPTH})")
    return load.max_in_flight or OPEN_DEPTH


def _held(job: _Job, load: HeldLoad) -> int:
    job.options["latency_target"] = f"{round(load.target / 1000)}us"
    job.options["latency_window"] = "1s"
    job.options["latency_percentile"] = f"{load.percentile:g}"
    job.options["latency_run"] = "1"
    job.comments.append(
        "hold: fio looks for a depth in windows of a second; raidlab adjusts it all the time and reports its mean"
    )
    return load.max_depth


def _is_null(cell: DirectCell) -> bool:
    return all(target["kind"] == "null" for target in cell.targets)


def _driving(job: _Job, cell: DirectCell) -> None:
    """How requests are handed over."""
    if cell.cpus:
        job.options["cpus_allowed"] = ",".join(str(number) for number in cell.cpus)
        job.options["cpus_allowed_policy"] = "split"
    if cell.busy:
        job.options["iodepth_batch_complete_min"] = "0"
    if cell.batch is not None:
        job.options["iodepth_batch_submit"] = job.options["iodepth_batch_complete_max"] = str(cell.batch)
    if cell.poll_completions:
        job.options["hipri"] = None


def _places(job: _Job, cell: DirectCell) -> None:
    targets = cell.targets
    for number, target in enumerate(targets):
        if target["kind"] not in ("file", "block") and not _is_null(cell):
            message = "fio goes to files and devices"
            raise CannotExportError(f"targets[{number}].kind", message, target["kind"], "file, block or null")
    for number, target in enumerate(targets):
        if re.search(r"[;#\n]", str(target.get("path", ""))):
            message = "a job file cannot name it: ';' and '#' begin a comment"
            raise CannotExportError(f"targets[{number}].path", message, str(target["path"]), "another name for it")
    if cell.workload.span < 1:
        message = "a share of each volume is not written"
        raise CannotExportError(
            "workload.span", message, f"{cell.workload.span:g}", "1, and targets of the size that is wanted"
        )
    size, offset = _part(cell)
    if not _is_null(cell):
        job.options["filename"] = ":".join(escaped(str(target["path"])) for target in targets)
    if job.parts > 1 and size is not None:
        part = size // job.parts // _GRAIN_BYTES * _GRAIN_BYTES
        job.options["size"] = job.options["offset_increment"] = short_bytes(part)
    elif size is not None:
        # fio shares size out over the files.
        job.options["size"] = short_bytes(size * len(targets))
    if offset:
        job.options["offset"] = short_bytes(offset)
    if len(targets) > 1 and str(job.options["rw"]).startswith("rand"):
        job.options["file_service_type"] = "random"
        if cell.workload.volumes != "uniform":
            job.comments.append("volumes: fio draws each request's file; raidlab keeps a share of the depth on each")
    if _is_null(cell):
        return
    job.options["direct"] = "0" if cell.buffered else "1"


def _amount(job: _Job, cell: DirectCell) -> None:
    warmup, measure = cell.warmup, cell.measure
    if warmup.duration:
        job.options["ramp_time"] = _time(warmup.duration)
    if warmup.requests:
        job.comments.append(f"warmup: fio has no warm-up by number of requests; left out: {warmup.requests} requests")
    if measure.duration:
        job.options["runtime"] = _time(measure.duration)
    if measure.requests:
        split, _ = split_of(cell.workload.size, cell.sector_bytes or _LEAST_SECTOR_BYTES)
        clones = int(job.options["numjobs"] or 1)
        mean = sum(length * share for length, share in split) / 100
        if measure.requests % clones:
            job.comments.append(f"measure: {measure.requests} requests, rounded up to {clones} equal parts")
        job.options["io_size"] = short_bytes(-(-int(measure.requests * mean) // clones))
    else:
        job.options["time_based"] = None


def _time(time_ns: int) -> str:
    """A time as fio takes it: a whole number of seconds, milliseconds or microseconds."""
    for scale, unit in ((10**9, ""), (10**6, "ms")):
        if time_ns % scale == 0:
            return f"{time_ns // scale}{unit}"
    return f"{max(round(time_ns / 1000), 1)}us"


def _around(job: _Job, cell: DirectCell) -> None:
    writes = str(job.options["rw"]).startswith(("rw", "write", "randrw", "randwrite"))
    if writes and not _is_null(cell):
        # raidlab never writes the same bytes twice.
        job.options["refill_buffers"] = None
        if cell.compressible_percent:
            job.options["buffer_compress_percentage"] = str(cell.compressible_percent)
    job.options["randseed"] = str(cell.seed)


def split_of(size: Size, sector_bytes: int) -> tuple[Split, str | None]:
    """The split for a cell's ``workload.size``, a single entry for a fixed size; and what is not exact about it."""
    if size.kind == "fixed":
        return [(size.bytes, 100)], None
    if size.kind == "table":
        return _table(size.bytes, size.weights)
    split = _classes(size.quantile, sector_bytes)
    parameters = ", ".join(f"{key} {value:g}" for key, value in size if key != "kind")
    return split, f"size: {size.kind} ({parameters}) as {CLASSES} classes of {100 // CLASSES} % each"


def _classes(quantile: Callable[[float], float], sector_bytes: int) -> Split:
    found: dict[int, int] = {}
    for place in range(CLASSES):
        points = ((place + (point + 0.5) / _POINTS_A_CLASS) / CLASSES for point in range(_POINTS_A_CLASS))
        mean = math.fsum(max(quantile(share), sector_bytes) for share in points) / _POINTS_A_CLASS
        length = max(round(mean / sector_bytes), 1) * sector_bytes
        found[length] = found.get(length, 0) + 100 // CLASSES
    return sorted(found.items())


def _table(lengths: list[int], weights: list[float]) -> tuple[Split, str | None]:
    """Weights as whole percentages, by the largest remainder."""
    total = math.fsum(weights)
    exact = [100 * weight / total for weight in weights]
    whole = [math.floor(share + 1e-9) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: whole[place] - exact[place])
    for place in by_remainder[: 100 - sum(whole)]:
        whole[place] += 1
    split = [(length, share) for length, share in zip(lengths, whole, strict=True) if share]
    if all(abs(share - asked) < 1e-9 for share, asked in zip(whole, exact, strict=True)):
        return split, None
    asked = ", ".join(f"{share:.3g} %" for share in exact)
    return split, f"size: fio takes whole percentages only; asked for {asked}"

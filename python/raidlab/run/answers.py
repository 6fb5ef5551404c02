"""The answers of the engines ``files`` and ``streams``, in the one shape of a cell (`raidlab.results.answer`).

Invariants:

- A file, or a block of a stream at the array, is what a request is elsewhere.
- What the page cache had of a source or a file is judged in every cell; so is whether reading a file again was faster
  than reading it first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from raidlab.histogram import Histogram, Times
from raidlab.results.answer import (
    CellAnswer,
    CheckAnswer,
    FileAccess,
    FileSizes,
    Snapshots,
    StreamAnswer,
    StreamSide,
    Tally,
    Totals,
)
from raidlab.run.files import Column, FilesRead, files_result
from raidlab.run.runner import Answer
from raidlab.run.streams import StreamEnd, StreamResult, StreamsResult, streams_result
from raidlab.study.units import format_time_ns
from raidlab.study.workload import ARRAY

# The same file read again this much faster did not come from where it came from first.
_FASTER_AGAIN = 1.5
_LEAST_READ_AGAIN = 20
_NS_PER_S = 1_000_000_000


def _totals(requests: int, count_bytes: int, mean_ns: float) -> Totals:
    return {
        "requests": requests,
        "bytes": count_bytes,
        "failed": 0,
        "response_mean_ns": mean_ns,
        "service_mean_ns": mean_ns,
    }


def _tally(totals: Totals, times: Histogram) -> Tally:
    return cast("Tally", {**totals, "response": Times(value_ns=times.value_ns, count=times.count)})


_Ends = list[tuple[StreamResult, StreamEnd]]


def _passed(ends: _Ends) -> Totals:
    """What passed some ends of streams."""
    blocks = sum(stream.blocks for stream, _ in ends)
    weighted_ns = sum(end.time_mean_ns * stream.blocks for stream, end in ends)
    return _totals(blocks, sum(stream.bytes for stream, _ in ends), weighted_ns / blocks if blocks else 0.0)


def _timed(ends: _Ends) -> Tally:
    """What passed some ends of streams, with the time of each block."""
    return _tally(_passed(ends), Histogram.merged(end.time for _, end in ends))


def answer_of_files(answer: Answer) -> CellAnswer:
    """An answer of the engine ``files`` as that of a cell: a file is what a request is elsewhere."""
    result = files_result(answer)
    read = result.read
    totals = _totals(read.files, read.bytes, read.total_mean_ns)
    by_directory = result.directory[read.records["file"]]
    return {
        "engine": "files",
        "seed": answer["seed"],
        "elapsed_ns": read.elapsed_ns,
        "requests": read.files,
        "tasks": read.files,
        "depth": read.in_flight,
        "read": _tally(totals, read.total),
        "write": _tally(_totals(0, 0, 0.0), Histogram.merged([])),
        "all": totals,
        "members": [
            {
                "leaf": number,
                "reads": int((by_directory == number).sum()),
                "writes": 0,
                "read_bytes": int(read.records["size_bytes"][by_directory == number].sum()),
                "write_bytes": 0,
            }
            for number in range(len(result.facts["directories"]))
        ],
        "stations": [],
        "snapshots": _snapshots(read),
        "files": {
            "files": read.files,
            "open_mean_ns": read.open_mean_ns,
            "first_byte_mean_ns": read.first_byte_mean_ns,
            "accesses": _accesses(read),
            "sizes": _by_size(read),
        },
        "facts": {"targets": result.facts["directories"], "failed_members": []},
        "checks": [read.page_cache, *_read_again(read), *result.checks],
        "stopped_by": result.stopped_by,
        "interrupted": result.interrupted,
    }


def _accesses(read: FilesRead) -> list[FileAccess]:
    """What was asked of the file system for a file, by name: what that asks of its disks only it knows."""
    opened: FileAccess = {"name": "open", "count": read.files, "bytes": 0, "found": 0, "mean_ns": read.open_mean_ns}
    rest_ns = max(read.total_mean_ns - read.open_mean_ns, 0.0)
    found = read.cached_files
    data: FileAccess = {"name": "read", "count": read.files, "bytes": read.bytes, "found": found, "mean_ns": rest_ns}
    return [opened, data]


def _by_size(read: FilesRead) -> FileSizes:
    sizes, where = np.unique(read.records["size_bytes"], return_inverse=True)
    files = np.bincount(where, minlength=len(sizes)).astype(np.uint64)
    times = np.zeros(len(sizes), dtype=np.uint64)
    np.add.at(times, where, read.records["total_ns"])
    return {"size_bytes": sizes, "files": files, "time_ns": times}


def _snapshots(read: FilesRead) -> Snapshots:
    """A row a second, as other engines keep it: files that ended in it."""
    ends = read.records["start_ns"] + read.records["total_ns"]
    if not len(ends):
        return {"time_ns": [], "requests": [], "bytes": [], "response_sum_ns": []}
    seconds = ((ends - read.records["start_ns"].min()) // _NS_PER_S).astype(np.int64)
    count = int(seconds.max()) + 1

    def summed(column: Column) -> list[int]:
        found = np.zeros(count, dtype=np.uint64)
        np.add.at(found, seconds, column)
        return [int(value) for value in found]

    return {
        "time_ns": [second * _NS_PER_S for second in range(count)],
        "requests": summed(np.ones(len(ends), dtype=np.uint64)),
        "bytes": summed(read.records["size_bytes"]),
        "response_sum_ns": summed(read.records["total_ns"]),
    }


def _read_again(read: FilesRead) -> Iterator[CheckAnswer]:
    """Files that were read more than once in a cell, the later times against the first."""
    first, again = again_and_first(read)
    if len(first) < _LEAST_READ_AGAIN:
        return
    ratio = float(np.median(first) / max(float(np.median(again)), 1.0))
    evidence = (
        f"Reading {len(first)} files again took {format_time_ns(float(np.median(again)))} by the median, reading them "
        f"first {format_time_ns(float(np.median(first)))}."
    )
    is_faster = ratio > _FASTER_AGAIN
    remedy = "Something below the file system remembers: losetup --direct-io=on, or more files than it holds."
    yield {
        "name": "read_again",
        "verdict": "WARN" if is_faster else "PASS",
        "evidence": evidence,
        "mend": remedy if is_faster else "",
    }


def again_and_first(read: FilesRead) -> tuple[Column, Column]:
    """Times of the first reading of files that were read again, and of their later readings."""
    order = np.argsort(read.records["start_ns"], kind="stable")
    files, times = read.records["file"][order], read.records["total_ns"][order]
    _, firsts, counts = np.unique(files, return_index=True, return_counts=True)
    is_first = np.zeros(len(files), dtype=bool)
    is_first[firsts] = True
    is_again = np.isin(files, files[firsts[counts > 1]])
    return times[is_first & is_again], times[~is_first]


def answer_of_streams(answer: Answer) -> CellAnswer:
    """An answer of the engine ``streams`` as that of a cell: what passed the array is what was read and written.

    The times of reads and writes are those of the streams' calls at the array.
    """
    result = streams_result(answer)
    kinds = {(end["stream"], end["side"]): end["kind"] for end in result.facts["endpoints"]}
    sides = {
        side: [stream for number, stream in enumerate(result.streams) if kinds[number, side] == ARRAY]
        for side in ("source", "sink")
    }
    read = [(stream, stream.source) for stream in sides["source"]]
    write = [(stream, stream.sink) for stream in sides["sink"]]
    array = (result.facts["arrays"] or [{}])[0]
    page_cache = result.page_cache
    streams: list[StreamAnswer] = [
        {
            "name": stream.name.partition(" #")[0],
            "from": kinds[number, "source"],
            "to": kinds[number, "sink"],
            "bytes": stream.bytes,
            "elapsed_ns": stream.elapsed_ns,
            "sync_ns": stream.sync_ns,
            "bound_by": stream.bound_by,
            "source": _side(stream.source),
            "sink": _side(stream.sink),
        }
        for number, stream in enumerate(result.streams)
    ]
    return {
        "engine": "streams",
        "seed": answer["seed"],
        "elapsed_ns": result.elapsed_ns,
        "read": _timed(read),
        "write": _timed(write),
        "all": _passed([*read, *write]),
        "members": array.get("members", []),
        "stations": [],
        "streams": streams,
        "facts": {"targets": array.get("targets", []), "failed_members": array.get("failed_members", [])},
        "checks": [*result.checks, *([page_cache] if page_cache else []), *_sample(result)],
        "stopped_by": result.stopped_by,
        "interrupted": result.interrupted,
    }


def _side(end: StreamEnd) -> StreamSide:
    return {"busy_ns": end.busy_ns, "waited_ns": end.waited_ns, "stops": end.stops}


def _sample(result: StreamsResult) -> list[CheckAnswer]:
    """Whose data were written, where it is the user's own."""
    sample = result.facts.get("data")
    if sample is None:
        return []
    longest = max((stream.bytes for stream in result.streams), default=0)
    times = longest / sample["used_bytes"]
    evidence = f"what was written is {sample['path']}, {sample['used_bytes']} bytes of it"
    if times <= 1:
        return [{"name": "data", "verdict": "PASS", "evidence": evidence, "mend": ""}]
    evidence += (
        f", {times:.1f} times over in the longest stream: a box that keeps one copy of what is alike gains by it"
    )
    return [
        {"name": "data", "verdict": "WARN", "evidence": evidence, "mend": "leave live.data out for unrepeated data"}
    ]

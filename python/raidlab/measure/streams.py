"""Sequential streams between two ends each, together and each alone: ``raidlab measure streams``.

Invariants:

- Alone and together are measured in turns, so that the ratio of the two is that of one machine at one time.
- A stream whose source lay in the page cache carries the verdict that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.histogram import Histogram
from raidlab.measure.turns import CutShortError, Turns, in_turns
from raidlab.measure.words import in_words_of_flags
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress
from raidlab.run.streams import Stream, StreamResult, StreamsRequest, StreamsResult, endpoint, measure_streams
from raidlab.stats import ratio_interval, student
from raidlab.stats.figure import figure

TOGETHER = "together"
_FLAG_OF = {
    "bytes": "--size",
    "block_bytes": "--block",
    "rate_mb_s": "--rate",
    "buffers": "--buffers",
    "duration": "--runtime",
    "data": "--data",
}


@dataclass(frozen=True)
class StreamsAsked:
    """All that a measurement of streams is told.

    Attributes
    ----------
    request : StreamsRequest
        With all streams.
    repeats : int
    alone : bool
        Also run each stream by itself.
    """

    request: StreamsRequest
    repeats: int
    alone: bool


def streams_of(ends: Sequence[str], **options: Any) -> list[Stream]:
    """The streams of a list of ends: from, to, from, to.

    Raises
    ------
    InputError
        For an odd number of ends, or what is none.
    """
    if len(ends) % 2:
        raise InputError.one("FROM TO", "the last stream has no end", value=f"'{ends[-1]}'", accepted="pairs of ends")
    found: list[Stream] = []
    for source, sink in zip(ends[::2], ends[1::2], strict=True):
        name = f"{source} to {sink}"
        twins = sum(1 for stream in found if stream.name.partition(" #")[0] == name)
        label = f"{name} #{twins + 1}" if twins else name
        found.append(Stream(label, endpoint(source), endpoint(sink), **options))
    return found


def measure_all_streams(asked: StreamsAsked, *, progress: Progress, stop: StopFlag) -> Turns[str, StreamsResult]:
    """Run the streams together and, where asked, each alone, in turns."""
    requests = {TOGETHER: asked.request}
    if asked.alone and len(asked.request.streams) > 1:
        requests |= {stream.name: replace(asked.request, streams=[stream]) for stream in asked.request.streams}

    def run(key: str, _repeat: int) -> StreamsResult:
        try:
            result = measure_streams(requests[key], lambda _share: not stop())
        except RefusedError as error:
            raise RefusedError(f"FROM TO: {error}") from None
        except CellFailedError as error:
            raise in_words_of_flags(error, _FLAG_OF, "FROM TO") from None
        if result.stopped_by or result.interrupted:
            raise CutShortError(result.stopped_by)
        return result

    return in_turns(
        list(requests),
        asked.repeats,
        run,
        seed=asked.request.seed,
        title="running streams",
        progress=progress,
        stop=stop,
    )


def stream_rows(turns: Turns[str, StreamsResult]) -> list[dict[str, Any]]:
    """One row a stream when all run together, with its ratio to itself alone; last, all of them together."""
    together = turns.results.get(TOGETHER, [])
    if not together:
        return []
    rows = []
    for number, first in enumerate(together[0].streams):
        each = [result.streams[number] for result in together]
        alone = [result.streams[0] for result in turns.results.get(first.name, [])]
        rows.append({"stream": first.name, **_row(each), **_against_itself(each, alone)})
    if len(rows) > 1:
        rates = [result.mb_s or 0.0 for result in together]
        rows.append(
            {
                "stream": "all",
                "repeats": len(rates),
                **figure("throughput_mb_s", sum(rates) / len(rates), student(rates)),
            }
        )
    return rows


def _row(each: list[StreamResult]) -> dict[str, Any]:
    rates = [stream.mb_s or 0.0 for stream in each]
    elapsed = sum(stream.elapsed_ns for stream in each)
    bound = [stream.bound_by for stream in each]
    late = Histogram.merged(stream.late for stream in each if stream.late is not None)
    return {
        "repeats": len(each),
        "bytes": sum(stream.bytes for stream in each),
        "elapsed_ns": elapsed,
        **figure(
            "throughput_mb_s",
            sum(stream.bytes for stream in each) / elapsed * 1000 if elapsed else None,
            student(rates),
        ),
        "bound_by": max(set(bound), key=bound.count),
        "source_busy_share": sum(stream.source.busy_ns for stream in each) / elapsed if elapsed else None,
        "sink_busy_share": sum(stream.sink.busy_ns for stream in each) / elapsed if elapsed else None,
        "stops": sum(stream.source.stops + stream.sink.stops for stream in each),
        "late_ns_p99": late.percentile_ns(99) if late.total else None,
    }


def _against_itself(each: list[StreamResult], alone: list[StreamResult]) -> dict[str, Any]:
    own, other = [stream.mb_s or 0.0 for stream in each], [stream.mb_s or 0.0 for stream in alone]
    pairs = min(len(own), len(other))
    if not pairs or not sum(other):
        return {
            "alone_mb_s": None,
            "together_percent": None,
            "together_percent_low": None,
            "together_percent_high": None,
        }
    alone_mb_s = sum(other) / len(other)
    interval = ratio_interval(own[:pairs], other[:pairs])
    return {
        "alone_mb_s": alone_mb_s,
        "together_percent": 100 * (sum(own) / len(own)) / alone_mb_s,
        "together_percent_low": None if interval is None else 100 * interval[0],
        "together_percent_high": None if interval is None else 100 * interval[1],
    }


def streams_page_cache(turns: Turns[str, StreamsResult]) -> tuple[str, str] | None:
    """The worst that the page cache had of any source."""
    order = {"PASS": 0, "WARN": 1, "INVALID": 2}
    found = [result.page_cache for results in turns.results.values() for result in results]
    known = [finding for finding in found if finding is not None]
    return max(known, key=lambda finding: order[finding[0]]) if known else None

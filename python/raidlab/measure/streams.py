"""Sequential streams between two ends each, together and each alone: ``raidlab measure streams``.

Invariants:

- Alone and together are measured in turns, so that the ratio of the two is that of one machine at one time.
- A stream whose source lay in the page cache carries the verdict that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.histogram import Histogram
from raidlab.measure.merge import TOGETHER as TOGETHER_CHECK
from raidlab.measure.turns import Row, Turns, in_turns
from raidlab.measure.words import said_of_flag
from raidlab.results.answer import CheckAnswer, worst_checks
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress
from raidlab.run.runner import check_ended
from raidlab.run.streams import StreamResult, StreamsResult, endpoint, measure_streams
from raidlab.stats import ratio_interval, student
from raidlab.stats.figure import figure
from raidlab.study.cell import LiveStream, StreamsCell

if TYPE_CHECKING:
    from raidlab.measure.hosts import Hosts

TOGETHER = "together"
# The words of the command line that name the streams: errors say where they come from.
_ENDS = "FROM TO"


@dataclass(frozen=True)
class StreamsPlan:
    """All that a measurement of streams is told."""

    cell: StreamsCell
    """With all streams."""
    repeats: int
    alone: bool
    """Also run each stream by itself."""
    keep: bool = False
    """Leave files that were made."""


def streams_of(
    ends: Sequence[str], *, size_bytes: int, block_bytes: int, rate_mb_s: float | None = None, buffers: int = 2
) -> list[LiveStream]:
    """The streams of a list of ends: from, to, from, to.

    Raises `InputError` for an odd number of ends, or what is none.
    """
    if len(ends) % 2:
        raise InputError.one(_ENDS, "the last stream has no end", value=f"'{ends[-1]}'", accepted="pairs of ends")
    found: list[LiveStream] = []
    for source, sink in zip(ends[::2], ends[1::2], strict=True):
        name = f"{source} to {sink}"
        twins = sum(1 for stream in found if stream.name.partition(" #")[0] == name)
        label = f"{name} #{twins + 1}" if twins else name
        found.append(
            LiveStream(
                name=label,
                source=endpoint(source),
                sink=endpoint(sink),
                bytes=size_bytes,
                block_bytes=block_bytes,
                rate_mb_s=rate_mb_s,
                buffers=buffers,
            )
        )
    return found


def measure_all_streams(
    plan: StreamsPlan, *, progress: Progress, stop: StopFlag, hosts: Hosts | None = None
) -> Turns[str, StreamsResult]:
    """Run the streams together and, where asked, each alone, in turns; with ``hosts`` on all of them at once."""
    cells = {TOGETHER: plan.cell}
    if plan.alone and len(plan.cell.streams) > 1:
        cells |= {stream.name: plan.cell.model_copy(update={"streams": [stream]}) for stream in plan.cell.streams}

    def run(key: str, _repeat: int) -> StreamsResult:
        try:
            if hosts is not None:
                result = hosts.streams(cells[key], keep=plan.keep)
            else:
                result = measure_streams(cells[key], lambda _share: not stop(), keep=plan.keep)
        except RefusedError as error:
            raise RefusedError(f"{_ENDS}: {error}") from None
        except CellFailedError as error:
            raise said_of_flag(error, _ENDS) from None
        check_ended(result.stopped_by, interrupted=result.interrupted)
        return result

    turns = in_turns(
        list(cells), plan.repeats, run, seed=plan.cell.seed, title="running streams", progress=progress, stop=stop
    )
    if hosts is not None:
        hosts.say_lost(turns)
    return turns


def stream_rows(turns: Turns[str, StreamsResult]) -> list[Row]:
    """One row a stream when all run together, with its ratio to itself alone; last, all of them together."""
    together = turns.results.get(TOGETHER, [])
    if not together:
        return []
    rows = []
    for first in together[0].streams:
        # Those of a host that was lost are not in every repeat.
        each = [one for result in together for one in result.streams if one.name == first.name]
        alone = [result.streams[0] for result in turns.results.get(first.name, [])]
        rows.append({"stream": first.name, **_row(each), **_against_itself(each, alone)})
    if len(rows) > 1:
        rates = [result.mb_s or 0.0 for result in together]
        mean = figure("throughput_mb_s", sum(rates) / len(rates), student(rates))
        rows.append({"stream": "all", "repeats": len(rates), **mean})
    return rows


def _row(each: list[StreamResult]) -> Row:
    elapsed, size = sum(stream.elapsed_ns for stream in each), sum(stream.bytes for stream in each)
    bound = [stream.bound_by for stream in each]
    late = Histogram.merged(stream.late for stream in each if stream.late is not None)
    mean = size / elapsed * 1000 if elapsed else None
    return {
        "repeats": len(each),
        "bytes": size,
        "elapsed_ns": elapsed,
        **figure("throughput_mb_s", mean, student([stream.mb_s or 0.0 for stream in each])),
        "bound_by": max(set(bound), key=bound.count),
        "source_busy_share": sum(stream.source.busy_ns for stream in each) / elapsed if elapsed else None,
        "sink_busy_share": sum(stream.sink.busy_ns for stream in each) / elapsed if elapsed else None,
        "stops": sum(stream.source.stops + stream.sink.stops for stream in each),
        "late_ns_p99": late.percentile_ns(99) if late.total else None,
    }


def _against_itself(each: list[StreamResult], alone: list[StreamResult]) -> Row:
    own, other = [stream.mb_s or 0.0 for stream in each], [stream.mb_s or 0.0 for stream in alone]
    keys = ("alone_mb_s", "together_percent", "together_percent_low", "together_percent_high")
    pairs = min(len(own), len(other))
    if not pairs or not sum(other):
        return dict.fromkeys(keys)
    alone_mb_s = sum(other) / len(other)
    low, high = ratio_interval(own[:pairs], other[:pairs]) or (None, None)
    shares = (sum(own) / len(own) / alone_mb_s, low, high)
    return dict(zip(keys, (alone_mb_s, *(share and 100 * share for share in shares)), strict=True))


def streams_checks(turns: Turns[str, StreamsResult]) -> list[CheckAnswer]:
    """The worst that the page cache had of any source; with several hosts, how far they were one."""
    results = [result for each in turns.results.values() for result in each]
    cached = [check for result in results if (check := result.page_cache)]
    return worst_checks(
        [*cached, *(one for result in results for one in result.checks if one["name"] == TOGETHER_CHECK)]
    )

"""HdrHistogram logs: histograms of times in the text form that the HdrHistogram tools of every language read.

Invariants:

- The buckets are those of the engine's recorder, which are HdrHistogram's own with three significant digits and a unit
  of one nanosecond: writing loses nothing.
- A log is written in one piece; nothing here reads a clock.

Reference: G. Tene, HdrHistogram, the V2 encoding (`HistogramEncodings`) and log format 1.2.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from raidlab.histogram import Histogram

SIGNIFICANT_DIGITS = 3
LONGEST_NS = 3_600_000_000_000
_SUB_BITS = 11
_HALF = 1 << (_SUB_BITS - 1)
_COOKIE, _COMPRESSED_COOKIE = 0x1C849303 | 0x10, 0x1C849304 | 0x10


@dataclass(frozen=True)
class Interval:
    """One line of a log: what was recorded from ``start_s`` on for ``length_s`` seconds; tagged if need be."""

    start_s: float
    length_s: float
    histogram: Histogram
    tag: str = ""


def log_text(intervals: Iterable[Interval], started_s: float, comment: str) -> str:
    """A whole log, whose intervals count from ``started_s`` (since the epoch); ``comment`` says what it is of."""
    lines = [
        f"#[{comment}]",
        "#[Histogram log format version 1.2]",
        f"#[StartTime: {started_s:.3f} (seconds since epoch), {comment}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for interval in intervals:
        longest = int(interval.histogram.value_ns.max()) if interval.histogram.value_ns.size else 0
        tag = f"Tag={_plain(interval.tag)}," if interval.tag else ""
        line = f"{tag}{interval.start_s:.3f},{interval.length_s:.3f},{longest / 1e6:.6f},{encoded(interval.histogram)}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def encoded(histogram: Histogram) -> str:
    """A histogram as base64 text: V2, compressed."""
    payload = _payload(histogram)
    head = struct.pack(">iiiiqqd", _COOKIE, len(payload), 0, SIGNIFICANT_DIGITS, 1, LONGEST_NS, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(struct.pack(">ii", _COMPRESSED_COOKIE, len(packed)) + packed).decode()


def bucket_of(value_ns: int) -> int:
    """The index of the bucket that counts a time."""
    value = min(value_ns, LONGEST_NS)
    shift = max(value.bit_length() - _SUB_BITS, 0)
    return shift * _HALF + (value >> shift)


def _payload(histogram: Histogram) -> bytes:
    """Counts by bucket, each as a varint; a run of empty buckets is its length, negative."""
    counts: dict[int, int] = {}
    for value, count in zip(histogram.value_ns.tolist(), histogram.count.tolist(), strict=True):
        index = bucket_of(int(value))
        counts[index] = counts.get(index, 0) + int(count)
    found, at = bytearray(), 0
    for index in sorted(counts):
        if index > at:
            found += _varint(at - index)
        found += _varint(counts[index])
        at = index + 1
    return bytes(found)


def _varint(number: int) -> bytes:
    """Zig-zag and seven bits a byte; of nine bytes the last has eight."""
    rest = ((number << 1) ^ (number >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    found = bytearray()
    while rest > 0x7F and len(found) < 8:
        found.append((rest & 0x7F) | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _plain(tag: str) -> str:
    """A tag must not hold what separates fields."""
    return "".join("_" if character in ", \n\r\t" else character for character in tag)

"""A device of kind ``hdd``, where completions are periodic: mechanics measured, electronics seen or tried.

Invariants:

- A parameter that was not seen is said to be assumed, and which it is stands in the file.
- A disk is claimed only where a map of its tracks could be made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np

from raidlab.measure.fit.electronics import FoundBuffer, found_buffer, longer_after_writes_ms, ordered, settled
from raidlab.measure.fit.rotation import PERIODIC, Rotation, Turntable, rotation_of
from raidlab.measure.fit.seeks import SeekCurve, seek_curve, waited_share
from raidlab.measure.fit.table import Measured
from raidlab.measure.fit.timed import TimedSubject
from raidlab.measure.fit.tracks import TrackMap, track_map
from raidlab.reading import Plain

MIB = 1 << 20
# Times that `found_spindle` says that it is further.
SPINDLE_PHASES = 4
# What the buffer of a disk keeps in a segment is not seen where it does not read ahead: a common size.
_SEGMENT_BYTES = 2 * MIB
# What a drive takes for a stream that goes on; a little more than a revolution before it destages.
_ALMOST_BYTES, _LINGER_TURNS = 128 * 1024, 1.2


@dataclass(frozen=True)
class Spindle:
    """What was found of a disk by single requests."""

    rotation: Rotation
    tracks: TrackMap
    seeks: SeekCurve
    buffer: FoundBuffer
    waited_share: float
    """Of a read, what is in the buffer before any of it is sent."""
    sector_bytes: int
    capacity_bytes: int
    write_settle_ms: float | None
    """How much longer a write's seek is; None where writes end in memory, or may not be made."""
    requests: int
    """How many single reads it took."""
    spent_ns: float


def found_spindle(
    subject: TimedSubject,
    sector_bytes: int,
    seed: int,
    *,
    writes: bool,
    advance: Callable[[], None] = lambda: None,
) -> Spindle | Rotation:
    """Measure a disk; its rotation alone where nothing is periodic, or no tracks are told apart."""
    rotation = rotation_of(subject, sector_bytes, seed)
    advance()
    if rotation.coherence < PERIODIC:
        return rotation
    table = Turntable(subject, sector_bytes, rotation, seed)
    tracks = track_map(table)
    advance()
    if tracks is None:
        return rotation
    seeks = seek_curve(table, tracks)
    advance()
    buffer = found_buffer(table, writes=writes)
    waited = waited_share(table, tracks, buffer.ns_per_byte * sector_bytes) if buffer.segments else 0.0
    settle_ms = None
    if writes and not buffer.segments and buffer.cached_writes == 0:
        written = seek_curve(table, tracks, op="write")
        further = [b.took_ns - a.took_ns for a, b in zip(seeks.points, written.points, strict=True)]
        settle_ms = max(0.0, float(np.median(further)) / 1e6)
    advance()
    return Spindle(
        rotation,
        tracks,
        seeks,
        buffer,
        waited,
        sector_bytes,
        subject.capacity_bytes,
        settle_ms,
        table.requests,
        table.spent_ns,
    )


def spindle_device(found: Spindle, fitted: Sequence[Measured], seed: int) -> dict[str, Plain]:
    """The device, with the order of service that fits the loops that were measured."""
    device = _mechanics(found) | _electronics(found)
    order, error = ordered(device, fitted, seed)
    device |= {"scheduler": order}
    told = _provenance(found, error)
    if found.write_settle_ms is None and found.buffer.cached_writes is not None:
        least_ms = float(str(device["head_switch_ms"]))
        settle_ms = settled(device, fitted, seed, least_ms)
        if settle_ms is not None:
            device["write_settle_ms"] = settle_ms
            told["write_settle_ms"] = {"status": "fitted", "why": "the rate of random writes"}
    commands = device.get("commands")
    if found.buffer.cached_writes == 0 and isinstance(commands, dict):
        after_ms = commands["read_miss_after_write_ms"] + longer_after_writes_ms(device, fitted, seed)
        device["commands"] = commands | {"read_miss_after_write_ms": max(0.0, round(after_ms, 4))}
    if found.buffer.cached_writes is None:
        device["reads_only"] = True
        told["reads_only"] = {"status": "measured", "why": "it was not to be written"}
    return device | {"provenance": told}


def _mechanics(found: Spindle) -> dict[str, Plain]:
    tracks, seeks = found.tracks, found.seeks
    cylinders = [max(1, round(zone.tracks / tracks.heads)) for zone in tracks.zones]
    lengths = [zone.sectors_per_track for zone in tracks.zones]
    sectors = found.capacity_bytes // found.sector_bytes
    # The last zone takes what is left: the others end where they were found to.
    left = sectors - tracks.heads * sum(map(mul, cylinders[:-1], lengths[:-1]))
    is_buffered = bool(found.buffer.segments or found.buffer.cached_bytes)
    cylinders[-1] = max(1, (math.ceil if is_buffered else math.floor)(left / (tracks.heads * lengths[-1])))
    skew = float(np.median([zone.skew for zone in tracks.zones]))
    near = seeks.table(tracks.heads)
    return {
        "kind": "hdd",
        "sector_bytes": found.sector_bytes,
        "revolution_ms": round(found.rotation.period_ns / 1e6, 9),
        "heads": tracks.heads,
        "zones": [
            {"cylinders": count, "sectors_per_track": length} for count, length in zip(cylinders, lengths, strict=True)
        ],
        # Without a buffer the disk is plain, to a cylinder less than it holds.
        **({"sectors": sectors} if is_buffered else {}),
        "track_skew": {"revolutions": round(skew, 6)},
        "cylinder_skew": {"revolutions": round(tracks.cylinder_skew, 6)},
        "head_switch_ms": _head_switch_ms(found, skew, least_seek_ms=float(near[0][1])),
        "write_settle_ms": round(found.write_settle_ms or 0.0, 4),
        "seek": {"kind": "table", "points": near},
    }


def _head_switch_ms(found: Spindle, skew: float, least_seek_ms: float) -> float:
    """As it was measured, or the least seek; but no more than the skew has room for.

    A rounding more, and a revolution would be lost at the end of each track.
    """
    room_ms = math.floor(1e4 * skew * found.rotation.period_ns / 1e6) / 1e4
    measured_ns = found.seeks.head_switch_ns
    return min(room_ms, least_seek_ms if measured_ns is None else round(measured_ns / 1e6, 4))


def _electronics(found: Spindle) -> dict[str, Plain]:
    """Commands, bus and buffer."""
    buffer, sector = found.buffer, found.sector_bytes
    sector_ms = buffer.ns_per_byte * sector / 1e6
    under_head_ms = found.rotation.period_ns / 1e6 / float(np.mean([z.sectors_per_track for z in found.tracks.zones]))
    miss_ms = max(0.0, round(found.seeks.overhead_ns / 1e6 - under_head_ms - sector_ms, 4))
    hit_ms = round(max(0.0, buffer.hit_ns / 1e6 - sector_ms), 4) if buffer.segments else miss_ms
    write_ms = hit_ms if buffer.write_ns is None else round(max(0.0, buffer.write_ns / 1e6 - sector_ms), 4)
    commands: dict[str, Plain] = {}
    for op in ("read", "write"):
        for after in ("read", "write"):
            at_once_ms = write_ms if op == "write" else hit_ms
            commands |= {f"{op}_hit_after_{after}_ms": at_once_ms, f"{op}_miss_after_{after}_ms": miss_ms}
    if not buffer.segments and not buffer.cached_bytes:
        return {"read_overhead_ms": miss_ms, "write_overhead_ms": miss_ms}
    reads_ahead = buffer.ahead_sectors > 0
    kept: dict[str, Plain] = {
        "segments": max(1, buffer.segments),
        "segment_sectors": buffer.ahead_sectors + 1 if reads_ahead else _SEGMENT_BYTES // sector,
        "read_ahead": "segment" if reads_ahead else "none",
        "read_ahead_on_hit": reads_ahead,
        "almost_read_hits": buffer.streams,
        "almost_read_hit_sectors": _ALMOST_BYTES // sector if buffer.streams else 0,
        "stop_within_sector": True,
        **({"read_watermark": round(found.waited_share, 4)} if found.waited_share else {}),
    }
    if buffer.in_order:
        kept |= {"write_back": "full", "write_segments": buffer.cached_writes or 1}
    elif buffer.cached_writes:
        kept |= {
            "write_back": "ordered",
            "write_cache_sectors": max(1, buffer.cached_bytes // sector),
            "write_cache_extents": buffer.cached_writes,
            "destage_after_read_ms": round(_LINGER_TURNS * found.rotation.period_ns / 1e6, 3),
        }
    bus: dict[str, Plain] = {"read_sector_ms": round(sector_ms, 6), "write_sector_ms": round(sector_ms, 6)}
    return {"queue_depth": 32, "commands": commands, "bus": bus, "buffer": kept}


def _provenance(found: Spindle, order_error: float) -> dict[str, Plain]:
    rotation, tracks, seeks, buffer = found.rotation, found.tracks, found.seeks, found.buffer

    def fitted(why: str) -> dict[str, Plain]:
        return {"status": "fitted", "why": why}

    def assumed(why: str) -> dict[str, Plain]:
        return {"status": "assumed", "why": why}

    widths = [one.width_ns / 1e6 for one in seeks.points]
    told: dict[str, Plain] = {
        "sector_bytes": {"status": "measured", "why": "what the target has"},
        "revolution_ms": fitted(
            f"reads of one sector end whole revolutions apart, coherence {rotation.coherence:.4f}; an angle is seen to "
            f"{rotation.noise * rotation.period_ns / 1e3:.1f} us"
        ),
        "heads": fitted("skews of tracks on end come again after so many")
        if tracks.heads_seen
        else assumed("no track's skew differs from the others', so which share a cylinder is not seen"),
        "zones": fitted(
            "tracks from one jump of the angle to the next, across the disk, and where "
            "their length changes to 64 tracks"
        ),
        "sectors": {"status": "measured", "why": "what the target holds"},
        "track_skew": fitted("jumps of the angle at the ends of tracks"),
        "cylinder_skew": fitted("as track_skew" if not tracks.heads_seen else "the jumps that differ"),
        "head_switch_ms": assumed("what the skew has room for, but not more than the least seek")
        if seeks.head_switch_ns is None
        else fitted("least times between completions on neighbouring tracks of a cylinder"),
        "seek": fitted(
            f"least times between completions at {len(widths)} distances, known to {np.median(widths):.2f} ms (median) "
            f"and {max(widths):.2f} ms (worst)"
        ),
        "scheduler": fitted(
            f"of the orders that the model has, nearest to random reads of 4 KiB: {100 * order_error:.1f} % off on "
            "average"
        ),
    }
    told["write_settle_ms"] = (
        assumed("writes end in memory, or were not made")
        if found.write_settle_ms is None
        else fitted("writes' least times against those of reads")
    )
    if not buffer.segments and not buffer.cached_bytes:
        del told["sectors"]
        return told | {key: fitted("a read within the track") for key in ("read_overhead_ms", "write_overhead_ms")}
    told |= {
        "queue_depth": assumed("usual; more were not outstanding when it was measured"),
        "commands": fitted(
            "reads from the buffer, and reads within the track; writes as reads"
            if buffer.write_ns is None
            else "reads and writes that the buffer answers, and reads within the track; other writes as these"
        ),
        "bus": fitted("reads from the buffer of two sizes; writes as reads"),
        "buffer.segments": fitted("so many other reads drive one out"),
        "buffer.segment_sectors": fitted("so far had it read ahead when it had time to")
        if buffer.ahead_sectors
        else assumed("2 MiB, a common size"),
        "buffer.read_ahead": fitted("what it has beyond a read when it had time to"),
        "buffer.read_ahead_on_hit": assumed("as buffer.read_ahead"),
        "buffer.almost_read_hits": fitted("reads on end, one after another"),
        "buffer.almost_read_hit_sectors": assumed("128 KiB"),
        "buffer.stop_within_sector": assumed("a sector takes next to nothing"),
    }
    if found.waited_share:
        told["buffer.read_watermark"] = fitted("reads of half a track against those of a sector")
    if buffer.in_order:
        told |= {
            "buffer.write_back": fitted("no more writes are answered at once than it has segments"),
            "buffer.write_segments": fitted("so many writes of 4 KiB before one has to wait"),
        }
    elif buffer.cached_writes:
        told |= {
            "buffer.write_back": fitted(
                "writes are answered before the arm could have got there; in which order: assumed"
            ),
            "buffer.write_cache_sectors": fitted("so much of writes of 512 KiB before one has to wait"),
            "buffer.write_cache_extents": fitted("so many writes of 4 KiB before one has to wait"),
            "buffer.destage_after_read_ms": assumed("a little more than a revolution"),
        }
    return told

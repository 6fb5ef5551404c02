"""A device that lies, as a plugin of nbdkit: it keeps its blocks in memory, and misbehaves as it is told.

`rigs.liar` starts it with nbdkit, shows it as a file with nbdfuse and puts a loop device over that. It serves one
request at a time, so a wait is a wait for everybody. Each lie is one parameter of nbdkit's command line; several may be
given.

Reference: nbdkit-python-plugin(3).
"""

from __future__ import annotations

import random
import time

import nbdkit  # type: ignore[import-not-found]

API_VERSION = 2  # of the calls below

SETTINGS = {
    "size": 64 << 20,  # bytes
    "wrong": 0,  # one read in so many brings a wrong byte
    "elsewhere": 0,  # one read in so many brings what lies half the device further on
    "drop": 0,  # one write in so many is acknowledged and not done; 1: all
    "torn": 0,  # of one write in so many only the first half is done
    "wrap": 0,  # addresses are taken modulo so many bytes
    "zeros": 0,  # 1: reads bring zeros
    "after_s": 0.0,  # lies about data begin so long after the first request (so that a fill is honest)
    "service_us": 0.0,  # what every request takes at least
    "stall_ms": 0.0,  # a request that comes every so often waits so long
    "stall_every_ms": 1500.0,
    "slow_after_s": 0.0,  # so long after the first request every further one takes `slow_us`
    "slow_us": 0.0,
    "credits": 0,  # a bucket of so many requests, refilled with `credits_per_s` (0: no bucket)
    "credits_per_s": 300.0,
    "cache_bytes": 0,  # a write takes no time until so many bytes wait; these are drained with `drain_bytes_per_s`
    "drain_bytes_per_s": 8 << 20,
    "flush_ms": 0.0,  # what a flush takes; with 0 it is acknowledged and nothing is done
}


class Device:
    """The blocks, and what the device remembers of its requests."""

    def __init__(self) -> None:
        self.blocks = bytearray(random.Random(1).randbytes(int(SETTINGS["size"])))
        self.draw = random.Random(2)
        self.began_s: float | None = None
        self.stalled_s = 0.0
        self.bucket = float(SETTINGS["credits"])
        self.refilled_s = 0.0
        self.dirty = 0.0
        self.drained_s = 0.0

    def wait(self) -> bool:
        """Take the time of one request; whether lies about data have begun."""
        now = time.monotonic()
        if self.began_s is None:
            self.began_s = self.stalled_s = self.refilled_s = self.drained_s = now
        age_s, wait_s = now - self.began_s, SETTINGS["service_us"] * 1e-6
        if SETTINGS["stall_ms"] and now - self.stalled_s >= SETTINGS["stall_every_ms"] * 1e-3:
            wait_s += SETTINGS["stall_ms"] * 1e-3
            self.stalled_s = now + wait_s
        if SETTINGS["slow_us"] and age_s >= SETTINGS["slow_after_s"]:
            wait_s += SETTINGS["slow_us"] * 1e-6
        if SETTINGS["credits"]:
            earned = (now - self.refilled_s) * SETTINGS["credits_per_s"]
            self.bucket, self.refilled_s = min(self.bucket + earned, SETTINGS["credits"]) - 1, now
            wait_s += max(0.0, -self.bucket / SETTINGS["credits_per_s"])
        if wait_s:
            time.sleep(wait_s)
        return age_s >= SETTINGS["after_s"]

    def fill_cache(self, size: int) -> None:
        """Wait until the volatile cache has room for a write."""
        if not SETTINGS["cache_bytes"]:
            return
        now = time.monotonic()
        self.dirty = max(0.0, self.dirty - (now - self.drained_s) * SETTINGS["drain_bytes_per_s"]) + size
        self.drained_s = now
        over = self.dirty - SETTINGS["cache_bytes"]
        if over > 0:
            time.sleep(over / SETTINGS["drain_bytes_per_s"])

    def one_in(self, lie: str) -> bool:
        """Whether it is this lie's turn."""
        return bool(SETTINGS[lie]) and self.draw.randrange(int(SETTINGS[lie])) == 0


DEVICES: list[Device] = []


def config(key: str, value: str) -> None:
    """Take a parameter of nbdkit's command line."""
    if key not in SETTINGS:
        raise RuntimeError(f"{key}: unknown; accepted: {', '.join(SETTINGS)}")
    SETTINGS[key] = type(SETTINGS[key])(value)


def get_ready() -> None:
    """Make the blocks, before anybody connects."""
    DEVICES.append(Device())


def open(readonly: bool) -> Device:  # noqa: A001 - the name that nbdkit looks for
    """One connection; all see the same blocks."""
    return DEVICES[0]


def get_size(device: Device) -> int:
    """Bytes of the device."""
    return len(device.blocks)


def can_multi_conn(device: Device) -> bool:
    """One connection is enough."""
    return False


def pread(device: Device, buffer: bytearray, offset: int, flags: int) -> None:
    """Bring what is at an offset, or something else."""
    lies, size = device.wait(), len(buffer)
    if lies and SETTINGS["wrap"]:
        offset %= int(SETTINGS["wrap"])
    if lies and device.one_in("elsewhere"):
        offset = (offset + len(device.blocks) // 2) % len(device.blocks)
    buffer[:] = bytes(size) if lies and SETTINGS["zeros"] else device.blocks[offset : offset + size]
    if lies and device.one_in("wrong"):
        buffer[device.draw.randrange(size)] ^= 1 << device.draw.randrange(8)


def pwrite(device: Device, buffer: bytes, offset: int, flags: int) -> None:
    """Keep what is to be written, or only say so."""
    lies, size = device.wait(), len(buffer)
    device.fill_cache(size)
    if lies and device.one_in("drop"):
        return
    if lies and device.one_in("torn"):
        size //= 2
    if lies and SETTINGS["wrap"]:
        offset %= int(SETTINGS["wrap"])
    device.blocks[offset : offset + size] = buffer[:size]


def flush(device: Device, flags: int) -> None:
    """Say that all is safe."""
    if SETTINGS["flush_ms"]:
        time.sleep(SETTINGS["flush_ms"] * 1e-3)


def thread_model() -> int:
    """One request at a time."""
    return int(nbdkit.THREAD_MODEL_SERIALIZE_ALL_REQUESTS)

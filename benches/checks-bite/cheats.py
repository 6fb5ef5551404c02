"""Targets and runs that cheat, each with the check that has to say so.

A cheat is a function that makes its rig, runs raidlab on it as a user would, and gives the findings. What it is called,
which check must bite and how hard stand beside it in `CHEATS`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rigs import (
    BLKIO,
    CPU,
    MIB,
    Checks,
    UnavailableError,
    btrfs,
    checks,
    filled_loop,
    folder,
    group,
    liar,
    loop,
    mounted,
    random_file,
    sh,
    zram,
)

MEMORY, DISK = "/dev/shm", "/var/tmp"
SHORT = ("--runtime", "500ms", "--warmup", "100ms")

ZONED_STUDY = """
name = "first-tenth"
title = "How fast is a zoned disk?"
on = ["emulated"]

[[array]]
name = "disk"
tree = "independent(1)"

[[workload]]
name = "scan"
read = 1.0
size = "256KiB"
address = "sequential"

[load]
depths = [4]

[emulated]
device = "hdd-7200-bare"
repeats = 2
warmup = { duration = "200ms" }
measure = { duration = "2s" }
"""

FAST_STUDY = ZONED_STUDY.replace('"sequential"', '"uniform"').replace("repeats = 2", "repeats = 2\nspeed = 5000")


def page_cache_in_front() -> Checks:
    """A loop device that goes through the page cache, over a file on a disk."""
    with filled_loop(DISK, direct=False) as device:
        return checks("check", device)


def zram_with_zeros() -> Checks:
    """A zram that nobody wrote."""
    with zram() as device:
        return checks("measure", device, *SHORT)


def sparse_file() -> Checks:
    """A file that is one hole."""
    with folder(DISK) as place:
        with (place / "hole").open("wb") as file:
            file.truncate(256 * MIB)
        return checks("measure", place / "hole", *SHORT)


def reserved_blocks() -> Checks:
    """A loop device over a file whose blocks are reserved and were never written."""
    with folder(DISK) as place:
        sh("fallocate", "-l", str(128 * MIB), str(place / "reserved"))
        with loop(place / "reserved") as device:
            return checks("measure", device, *SHORT)


def first_tenth_scanned() -> Checks:
    """A zoned disk, emulated, of which a scan reads the beginning."""
    return study(ZONED_STUDY)


def first_tenth_asked() -> Checks:
    """The first tenth of a device by name."""
    with filled_loop(MEMORY) as device:
        return checks("measure", device, "--span", "0%-10%", *SHORT)


def degraded_btrfs() -> Checks:
    """A mirror of btrfs that has lost a device."""
    with btrfs("raid1", MEMORY) as (point, devices):
        subprocess.run(["umount", str(point)], check=True)
        sh("wipefs", "-q", "-a", devices[1])
        sh("btrfs", "device", "scan", "--forget")
        sh("mount", "-t", "btrfs", "-o", "degraded", devices[0], str(point))
        return checks("measure", point, "--file-size", "32MiB", *SHORT)


def limited_loop() -> Checks:
    """A loop device that a control group holds to 2,000 reads a second."""
    with filled_loop(MEMORY) as device:
        numbers = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
        with group(BLKIO, blkio__throttle__read_iops_device=f"{numbers} 2000") as inside:
            return checks("measure", device, *SHORT, inside=inside)


def limited_loop_before() -> Checks:
    """The same device, looked at before anything is measured."""
    with filled_loop(MEMORY) as device:
        numbers = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
        with group(BLKIO, blkio__throttle__read_iops_device=f"{numbers} 2000") as inside:
            return checks("check", device, inside=inside)


@contextlib.contextmanager
def meanwhile(*words: str) -> Iterator[None]:
    """Somebody who starts a command again and again, until this is left."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            subprocess.run(words, check=False, capture_output=True)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        done.set()
        worker.join()


def second_load(device: str) -> contextlib.AbstractContextManager[None]:
    """Somebody who reads the device all the time."""
    return meanwhile("dd", f"if={device}", "of=/dev/null", "bs=1M", "count=64", "iflag=direct", "status=none")


def load_beside() -> Checks:
    """A second reader while the device is measured."""
    with filled_loop(MEMORY) as device, second_load(device):
        return checks("measure", device, *SHORT)


def load_before() -> Checks:
    """A second reader while the device is only looked at."""
    with filled_loop(MEMORY) as device, second_load(device):
        return checks("check", device)


def compressing_zram() -> Checks:
    """A zram filled with random bytes."""
    with zram() as device:
        subprocess.run(["dd", "if=/dev/urandom", f"of={device}", "bs=1M", "count=128", "status=none"], check=True)
        return checks("check", device, "--destroy", device)


def compressing_btrfs() -> Checks:
    """A btrfs that compresses; the pairs of writes would show it if the mount options did not."""
    with btrfs("single", MEMORY, options="compress-force=zstd") as (point, _):
        return checks("check", point, "--file-size", "64MiB")


def stripe_over_two_arrays() -> Checks:
    """A stripe of raidlab's over two striped file systems."""
    with btrfs("raid0", MEMORY) as (one, _), btrfs("raid0", MEMORY) as (other, _):
        return checks("measure", f"raid0(2)@{one}/,{other}/", "--file-size", "32MiB", *SHORT)


def slow_generator() -> Checks:
    """A generator that gets a twentieth of a processor."""
    with filled_loop(MEMORY) as device, group(CPU, cpu__cfs_quota_us="5000") as inside:
        return checks("measure", device, *SHORT, inside=inside)


def meter_as_limit() -> Checks:
    """A target that answers as fast as it is asked: memory."""
    return checks("measure", "memory", *SHORT)


def page_cache_asked_for() -> Checks:
    """Buffered I/O on a file."""
    with folder(DISK) as place:
        return checks("measure", random_file(place / "data", 64 * MIB), "--buffered", *SHORT)


def one_repeat() -> Checks:
    """A single run."""
    return checks("measure", "null", "--repeats", "1", *SHORT)


def ten_requests() -> Checks:
    """A run of a few requests."""
    with filled_loop(MEMORY) as device:
        return checks("measure", device, "--rate", "20/s", "--runtime", "200ms", "--warmup", "10ms")


def late_host() -> Checks:
    """Emulated disks five thousand times too fast for any host."""
    return study(FAST_STUDY)


def overload() -> Checks:
    """An open loop that offers more than a limited device serves."""
    with filled_loop(MEMORY) as device:
        numbers = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
        with group(BLKIO, blkio__throttle__read_iops_device=f"{numbers} 500") as inside:
            return checks("measure", device, "--rate", "2000/s", *SHORT, inside=inside)


def balance_at_work() -> Checks:
    """A btrfs that moves its data about."""
    with btrfs("raid1", MEMORY) as (point, _):
        random_file(point / "ballast", 96 * MIB)
        with meanwhile("btrfs", "balance", "start", "--full-balance", str(point)):
            return checks("measure", point, "--file-size", "32MiB", *SHORT)


def merges_forbidden() -> Checks:
    """A queue that merges nothing."""
    with filled_loop(MEMORY) as device:
        setting = Path(f"/sys/block/{Path(device).name}/queue/nomerges")
        before = setting.read_text()
        try:
            setting.write_text("2")
            return checks("measure", device, *SHORT)
        finally:
            setting.write_text(before)


def below_the_file_system() -> Checks:
    """A device with a file system on it."""
    with filled_loop(MEMORY) as device:
        sh("mkfs.ext4", "-q", "-F", device)
        return checks("measure", device, *SHORT)


def one_block_again_and_again() -> Checks:
    """A file that repeats one random block."""
    with folder(DISK) as place:
        block = random_file(place / "block", MIB).read_bytes()[:65536]
        (place / "data").write_bytes(block * 1024)
        return checks("measure", place / "data", *SHORT)


def two_targets_on_one_disk() -> Checks:
    """Two devices over files of one disk, at once."""
    with filled_loop(DISK, 64 * MIB) as one, filled_loop(DISK, 64 * MIB) as other:
        return checks("measure", one, other, "--depth", "8", *SHORT)


def unequal_arrays() -> Checks:
    """A table that calls an array of members and one that stands already equal, which are not."""
    # Of trees the study and its members say it all before anything runs, and such a study is refused.
    model = '[sim]\ndevice = "hdd-7200-bare"\nmeasure = { requests = 1000 }'
    members = '[live]\nwarmup = { duration = "10ms" }\nmeasure = { duration = "100ms" }'
    with folder(DISK) as volume:
        text = UNEQUAL_STUDY.replace(model, members).replace('tree = "raid5(4)"', f'volume = "{volume}"')
        return study(text, "memory")


UNEQUAL_STUDY = """
name = "unequal"
title = "Which is faster?"

[[array]]
name = "raid0"
tree = "raid0(4)"

[[array]]
name = "raid5"
tree = "raid5(4)"

[[workload]]
name = "reads"
read = 1.0
size = "8KiB"

[load]
depths = [4]

[sim]
device = "hdd-7200-bare"
measure = { requests = 1000 }

[[compare]]
group = "all"
title = "Equal"
reference = "raid0"
equal = "user_capacity"
"""


def precision_not_reached() -> Checks:
    """Twenty-five repeats that do not agree to one in ten thousand."""
    return checks("measure", "null", "--precision", "0.01%", "--runtime", "20ms", "--warmup", "5ms")


def shallow_search() -> Checks:
    """A search for ten seconds of response time that may not go deeper than four."""
    text = UNEQUAL_STUDY.replace("user_capacity", "members").replace(
        "depths = [4]", 'depths = [4]\nhold = { percentile = 90, target = "10s", max_depth = 4 }'
    )
    return study(text, "sim")


def rate_that_falls() -> Checks:
    """A device that a second load joins in the middle of a run."""
    with filled_loop(MEMORY) as device:
        numbers = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
        with group(BLKIO, blkio__throttle__read_iops_device=f"{numbers} 4000") as inside:
            limit = inside / "blkio.throttle.read_iops_device"
            # After the bound of the meter's own cost and the warm-up, in the midst of the first repeat.
            timer = threading.Timer(9.0, lambda: limit.write_text(f"{numbers} 1000"))
            timer.start()
            try:
                words = ("--runtime", "15s", "--warmup", "100ms", "--repeats", "1")
                return checks("measure", device, *words, inside=inside)
            finally:
                timer.cancel()
                timer.join()


def lying(*words: str, **lies: float) -> Checks:
    """A device of 64 MiB that lies, given up to be written."""
    with liar(**lies) as device:
        return checks("measure", device, "--destroy", device, "--depth", "4", *words)


def wrong_reads() -> Checks:
    """One read in ten thousand brings a wrong byte, below a file system in which raidlab makes its file."""
    with liar(wrong=10_000, after_s=3) as device, mounted(device) as point:
        words = ("--runtime", "8s", "--warmup", "100ms")
        return checks("measure", f"{point}/", "--file-size", "16MiB", "--depth", "4", *words)


def wrong_whole_files() -> Checks:
    """One read in two hundred brings a wrong byte, below a file system in which whole files are made and read."""
    with liar(wrong=200, after_s=4, service_us=300) as device, mounted(device) as point:
        words = ("--size", "128KiB", "--count", "100", "--readers", "1", "--repeats", "100", "--verify", "full")
        return checks("measure", "files", f"{point}/", *words)


def reads_from_elsewhere() -> Checks:
    """One read in a thousand brings what lies half the device further on."""
    return lying("--rw", "randrw", "--span", "10%", "--runtime", "3s", elsewhere=1000)


def no_write_done() -> Checks:
    """Every write is acknowledged, none is done."""
    return lying("--rw", "randwrite", *SHORT, drop=1)


def writes_dropped() -> Checks:
    """One write in a thousand is acknowledged and not done."""
    return lying("--rw", "randwrite", "--runtime", "4s", drop=1000)


def capacity_that_wraps() -> Checks:
    """Of 64 MiB an eighth is there, again and again."""
    return lying("--rw", "randwrite", *SHORT, wrap=8 * MIB)


def zeros_for_reads() -> Checks:
    """Whatever is read is zeros."""
    return lying("--rw", "randrw", *SHORT, zeros=1)


def torn_writes() -> Checks:
    """Of one write in two hundred only the first half is done."""
    return lying("--rw", "randwrite", "--runtime", "1s", torn=200)


def read_only_and_unknown() -> Checks:
    """A device whose contents nobody knows, only read: it may lie or not."""
    with liar(zeros=1) as device:
        return checks("measure", device, "--depth", "4", *SHORT)


def hidden_stalls() -> Checks:
    """A device that stalls for 300 ms every 1.5 s."""
    with liar(stall_ms=300, stall_every_ms=1500) as device:
        return checks("measure", device, "--runtime", "6s", "--warmup", "500ms", "--repeats", "1", "--depth", "8")


def slows_down() -> Checks:
    """A device that falls to a half or less after 20 s, measured for three times 3 s."""
    with liar(service_us=200, slow_after_s=20, slow_us=500) as device:
        return checks("measure", device, "--runtime", "3s")


def credits_unseen() -> Checks:
    """A device with credits for more requests than the run asks for."""
    with liar(credits=2_000_000, credits_per_s=300) as device:
        return checks("measure", device, "--runtime", "3s")


def credits_spent() -> Checks:
    """A device with credits for 15,000 requests, filled at 100 a second, until it is steady."""
    with liar(credits=15_000, credits_per_s=100, service_us=1000) as device:
        return checks("measure", device, "--runtime", "3s", "--repeats", "2", "--until-steady")


def mebibyte_again_and_again() -> Checks:
    """A file of 1 MiB, read some hundred times over."""
    with folder(DISK) as place:
        return checks("measure", random_file(place / "data", MIB), *SHORT)


def repeated_in_large() -> Checks:
    """A file that repeats 16 MiB."""
    with folder(DISK) as place:
        part = random_file(place / "part", 16 * MIB).read_bytes()
        with (place / "data").open("wb") as file:
            file.writelines([part] * 16)
        return checks("measure", place / "data", *SHORT)


def volatile_cache() -> Checks:
    """A device that takes writes into a memory of 16 MiB, and drains it at 256 KiB a second."""
    with liar(cache_bytes=16 * MIB, drain_bytes_per_s=MIB // 4, service_us=500) as device:
        words = ("--rw", "randwrite", "--destroy", device, "--repeats", "1", "--runtime", "60s", "--warmup", "1s")
        return checks("measure", device, *words)


def flush_of_nothing() -> Checks:
    """A device that acknowledges flushes and does nothing."""
    with liar() as device:
        return checks("check", device, "--destroy", device)


def load_below_a_loop() -> Checks:
    """A second reader of the disk below a loop device, who reads a file beside the loop's."""
    disk = Path("/dev") / sh("findmnt", "-n", "-o", "SOURCE", "-T", DISK).removeprefix("/dev/")
    if not disk.is_block_device():
        raise UnavailableError(f"{DISK} lies on no block device")
    with filled_loop(DISK) as device, folder(DISK) as place:
        beside = place / "beside"
        subprocess.run(["dd", "if=/dev/urandom", f"of={beside}", "bs=1M", "count=64", "status=none"], check=True)
        with second_load(str(beside)):
            return checks("measure", device, "--runtime", "3s", "--repeats", "1")


def hogged_processors() -> Checks:
    """One and a half times as many busy programs as there are processors."""
    with filled_loop(MEMORY) as device, contextlib.ExitStack() as made:
        for _ in range((os.cpu_count() or 1) * 3 // 2):
            hog = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            made.callback(hog.wait)
            made.callback(hog.kill)
        return checks("measure", device, "--runtime", "2s")


def study(text: str, on: str = "emulated") -> Checks:
    """The findings of a study."""
    with folder("/tmp") as place:
        (place / "study.toml").write_text(text, encoding="utf-8")
        return checks("run", place / "study.toml", "--on", on, "--out", place / "runs")


@dataclass(frozen=True)
class Cheat:
    """A cheat, the check that must bite, and the least verdict that counts as a bite."""

    title: str
    check: str
    least: str
    run: Callable[[], Checks]
    asked_for: bool = False


CHEATS = [
    Cheat("wrong data in one of 10,000 reads", "content", "INVALID", wrong_reads, True),
    Cheat("wrong data in whole files", "content", "INVALID", wrong_whole_files, True),
    Cheat("data of another place in one of 1,000 reads", "content", "INVALID", reads_from_elsewhere, True),
    Cheat("all writes dropped", "content", "INVALID", no_write_done, True),
    Cheat("one write in 1,000 dropped", "content", "INVALID", writes_dropped, True),
    Cheat("a capacity that wraps at an eighth", "content", "INVALID", capacity_that_wraps, True),
    Cheat("zeros for reads", "content", "INVALID", zeros_for_reads, True),
    Cheat("torn writes", "content", "INVALID", torn_writes, True),
    Cheat("contents of others, only read", "content", "UNKNOWN", read_only_and_unknown, True),
    Cheat("a memory cache in front", "cache", "WARN", page_cache_in_front, True),
    Cheat("zram with zeros", "compression", "INVALID", zram_with_zeros, True),
    Cheat("a file that reads sparse", "sparse", "INVALID", sparse_file, True),
    Cheat("the first tenth of a zoned emulated disk", "coverage", "WARN", first_tenth_scanned, True),
    Cheat("degraded btrfs", "array_state", "WARN", degraded_btrfs, True),
    Cheat("a loop device throttled by a control group", "throttling", "INVALID", limited_loop, True),
    Cheat("a second load in the background", "background_load", "WARN", load_beside, True),
    Cheat("a compressing target", "compression", "WARN", compressing_zram, True),
    Cheat("a stripe over two arrays", "stacked_striping", "WARN", stripe_over_two_arrays, True),
    Cheat("a deliberately slow generator", "generator_limited", "WARN", slow_generator, True),
    Cheat("the same throttle, before measuring", "throttling", "WARN", limited_loop_before),
    Cheat("the same second load, before measuring", "background_load", "WARN", load_before),
    Cheat("a file system that compresses", "compression", "WARN", compressing_btrfs),
    Cheat("blocks that were never written", "sparse", "INVALID", reserved_blocks),
    Cheat("300 ms stalls in a closed loop", "stalls", "WARN", hidden_stalls),
    Cheat("slowing to less than a half within 20 s", "sustained", "UNKNOWN", slows_down),
    Cheat("burst credits that outlast the run", "sustained", "UNKNOWN", credits_unseen),
    Cheat("burst credits, until steady", "sustained", "WARN", credits_spent),
    Cheat("a volatile cache: a burst after idle", "sustained", "WARN", volatile_cache),
    Cheat("a flush acknowledged and not done", "write_cache", "UNKNOWN", flush_of_nothing),
    Cheat("1 MiB read hundreds of times", "reread", "WARN", mebibyte_again_and_again),
    Cheat("16 MiB again and again", "dedupe", "WARN", repeated_in_large),
    Cheat("a load on the disk below a loop", "background_load", "WARN", load_below_a_loop),
    Cheat("three programs on two processors", "busy_processors", "WARN", hogged_processors),
    Cheat("the first tenth by --span", "short_stroke", "WARN", first_tenth_asked),
    Cheat("a target as fast as the generator", "generator_limited", "WARN", meter_as_limit),
    Cheat("a quota on the processor", "throttling", "WARN", slow_generator),
    Cheat("buffered I/O", "buffered_io", "WARN", page_cache_asked_for),
    Cheat("one repeat", "single_run", "WARN", one_repeat),
    Cheat("a handful of requests", "too_short", "WARN", ten_requests),
    Cheat("emulation too fast for the host", "lateness", "INVALID", late_host),
    Cheat("more offered than served", "overloaded", "WARN", overload),
    Cheat("a balance at work", "resync", "WARN", balance_at_work),
    Cheat("a queue that merges nothing", "settings", "WARN", merges_forbidden),
    Cheat("a raw device below its file system", "raw_device", "WARN", below_the_file_system),
    Cheat("one block again and again", "dedupe", "WARN", one_block_again_and_again),
    Cheat("two targets on one disk", "shared_device", "WARN", two_targets_on_one_disk),
    Cheat("unequal arrays called equal", "equal_capacity", "INVALID", unequal_arrays),
    Cheat("a rate that falls", "not_steady", "WARN", rate_that_falls),
    Cheat("a precision that nobody reaches", "precision", "WARN", precision_not_reached),
    Cheat("a search that ends too early", "target_never_reached", "WARN", shallow_search),
]
# What no rig on a machine that others use can bring about, and the tests with made-up facts that show that these bite.
BY_TESTS = {
    "clock": "turning the machine's clock (tests/python/test_checks.py)",
    "order_drift": "a machine that slows down from repeat to repeat (tests/python/test_steadiness.py)",
    "incomplete": "a run that is killed (tests/python/test_checks.py)",
    "warm_up": "a pilot that does not settle (tests/python/test_measure_warm_up.py)",
    "engine": "short transfers of a device (tests/python/test_checks.py)",
    "foreign": "results of others under another workload (tests/python/test_own_figures.py)",
    "rebuild": "nothing to cheat with: how long a simulated rebuild took (tests/python/test_degraded.py)",
    "events": "an event that comes after the run (tests/python/test_degraded.py)",
    "unreadable": "members that cannot be read in places (tests/python/test_degraded.py)",
    "sat_out": "a member that becomes slow (tests/python/test_degraded.py)",
    "scrub": "sectors changed behind an array's back (crates/live/tests/scrub.rs)",
    "data_loss": "a member that fails before another is rebuilt (tests/python/test_degraded.py)",
    "replay": "a trace whose requests do not fit (tests/python/test_traces.py)",
    "device_too_plain": "a stream over disks that do not read ahead (tests/python/test_sequential_arrays.py)",
    "zone_spread": "sizes of files in a corner of a volume (tests/python/test_mounted_files.py)",
    "second_tool": "a tool that measures something else (tests/python/test_groups.py)",
}

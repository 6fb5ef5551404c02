"""Targets to cheat with, and honest ones: made as root, taken away afterwards.

Invariant: whatever is made here is removed when its context ends, however that is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MIB = 1 << 20
CLI = [sys.executable, "-m", "raidlab"]
# Above every cell of this script; what takes longer hangs.
_TIMEOUT_S = 300
# Until a program that serves a device does so.
_START_S = 20.0
BLKIO = Path("/sys/fs/cgroup/blkio")
CPU = Path("/sys/fs/cgroup/cpu")

Checks = list[dict[str, str]]


class UnavailableError(Exception):
    """What a rig needs is not to be had on this machine."""


class NoAnswerError(Exception):
    """The rig was there, and raidlab gave no answer: nobody may take that for a rig that is not to be had."""


def sh(*words: str) -> str:
    """Run a command; its output, or `UnavailableError` with what it said."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UnavailableError(f"{words[0]} is not installed") from None
    if done.returncode:
        raise UnavailableError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def folder(where: str) -> Iterator[Path]:
    """An empty directory."""
    path = Path(tempfile.mkdtemp(prefix="raidlab-bite-", dir=where))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def random_file(path: Path, size: int) -> Path:
    """A file of random bytes that is not in the page cache."""
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


@contextlib.contextmanager
def loop(file: Path, *, direct: bool = True) -> Iterator[str]:
    """A loop device over a file."""
    words = ["--direct-io=on", "-b", "4096"] if direct else ["--direct-io=off"]
    device = sh("losetup", "-f", "--show", *words, str(file))
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", device], check=False)


@contextlib.contextmanager
def filled_loop(where: str, size: int = 128 * MIB, *, direct: bool = True) -> Iterator[str]:
    """A loop device over a file of random bytes."""
    with folder(where) as place, loop(random_file(place / "disk", size), direct=direct) as device:
        yield device


@contextlib.contextmanager
def liar(**lies: float) -> Iterator[str]:
    """A loop device over a device that lies: what it may be told is in ``SETTINGS`` of `liar.py`."""
    for tool in ("nbdkit", "nbdfuse", "fusermount3"):
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not installed")
    with folder("/tmp") as place:
        (place / "seen").mkdir()
        socket, seen = place / "socket", place / "seen" / "disk"
        words = ["nbdkit", "-f", "-U", str(socket), "python", str(Path(__file__).with_name("liar.py"))]
        words += [f"{key}={value}" for key, value in lies.items()]
        with _daemon(words, socket), _daemon(["nbdfuse", str(seen), "--unix", str(socket)], seen):
            try:
                with loop(seen) as device:
                    yield device
            finally:
                subprocess.run(["fusermount3", "-u", str(seen.parent)], check=False, capture_output=True)


@contextlib.contextmanager
def _daemon(words: list[str], sign: Path) -> Iterator[None]:
    """A program that stays in the foreground, once the file that tells that it serves is there; ended afterwards."""
    program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + _START_S
        while not sign.exists():
            if program.poll() is not None or time.monotonic() > until:
                program.kill()
                raise UnavailableError(f"{words[0]}: {program.communicate()[1].strip() or 'does not begin to serve'}")
            time.sleep(0.02)
        yield
    finally:
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.communicate(timeout=10)
        program.kill()
        program.wait()


@contextlib.contextmanager
def zram(size: int = 128 * MIB) -> Iterator[str]:
    """A zram that was never written."""
    control = Path("/sys/class/zram-control")
    if not control.is_dir():
        subprocess.run(["modprobe", "zram"], check=False, capture_output=True)
    try:
        number = (control / "hot_add").read_text().strip()
        Path(f"/sys/block/zram{number}/disksize").write_text(str(size))
    except OSError as error:
        raise UnavailableError(f"no zram: {error}") from None
    try:
        yield f"/dev/zram{number}"
    finally:
        Path(f"/sys/block/zram{number}/reset").write_text("1")
        (control / "hot_remove").write_text(number)


@contextlib.contextmanager
def mounted(device: str) -> Iterator[Path]:
    """An ext4 on a device."""
    sh("mkfs.ext4", "-q", "-F", device)
    with folder("/tmp") as point:
        sh("mount", device, str(point))
        try:
            yield point
        finally:
            subprocess.run(["umount", str(point)], check=False)


@contextlib.contextmanager
def btrfs(profile: str, where: str, *, count: int = 2, options: str = "") -> Iterator[tuple[Path, list[str]]]:
    """A mounted btrfs over loop devices, and the devices."""
    with contextlib.ExitStack() as made:
        place = made.enter_context(folder(where))
        devices = []
        for number in range(count):
            file = place / f"member-{number}"
            with file.open("wb") as handle:
                handle.truncate(256 * MIB)
            devices.append(made.enter_context(loop(file)))
        sh("mkfs.btrfs", "-q", "-f", "-d", profile, "-m", "raid1", *devices)
        sh("btrfs", "device", "scan", *devices)
        point = made.enter_context(folder("/tmp"))
        sh("mount", "-t", "btrfs", *(["-o", options] if options else []), devices[0], str(point))
        try:
            yield point, devices
        finally:
            subprocess.run(["umount", str(point)], check=False)


@contextlib.contextmanager
def group(controller: Path, **settings: str) -> Iterator[Path]:
    """A control group of version 1 with some settings; a key's first underscore stands for the dot."""
    path = controller / f"raidlab-bite-{os.getpid()}"
    try:
        path.mkdir()
        for name, value in settings.items():
            (path / name.replace("__", ".")).write_text(value)
    except OSError as error:
        with contextlib.suppress(OSError):
            path.rmdir()
        raise UnavailableError(f"no control groups in {controller}: {error}") from None
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.rmdir()


def raidlab(*words: str | Path, inside: Path | None = None, timeout_s: float = _TIMEOUT_S) -> dict[str, Any]:
    """What a command answers in JSON; ``inside`` is the control group it runs in."""
    command = [*CLI, *map(str, words), "--json"]
    if inside is not None:
        command = ["sh", "-c", f'echo $$ > {inside}/cgroup.procs && exec "$@"', "sh", *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{' '.join(map(str, words))}: no answer within {timeout_s:g} s") from None
    if not done.stdout:
        raise NoAnswerError(f"{' '.join(map(str, words))}: {done.stderr.strip().splitlines()[-1:]}")
    return dict(json.loads(done.stdout))


def checks(*words: str | Path, inside: Path | None = None) -> Checks:
    """The findings of a command."""
    return list(raidlab(*words, inside=inside)["checks"])

"""Other machines for tests: network namespaces on one bridge, and a Dask cluster of processes in them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

BRIDGE, NET = "raidlab-net", "10.213.47"


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def address(number: int) -> str:
    """Of the namespace of this number."""
    return f"{NET}.{11 + number}"


def unplug(number: int) -> None:
    """Pull the cable of the machine of this number: nobody is told, it is only heard of no more."""
    _ip("link", "set", f"rl-net{number}", "down")


@contextmanager
def namespaces(count: int) -> Iterator[list[list[str]]]:
    """Network namespaces on one bridge, as so many machines: what a command in each begins with."""
    spaces = [f"raidlab-net-{number}" for number in range(count)]
    try:
        _ip("link", "add", BRIDGE, "type", "bridge")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("network namespaces need root")
    try:
        _ip("addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        for number, space in enumerate(spaces):
            _ip("netns", "add", space)
            _ip("link", "add", f"rl-net{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", f"rl-net{number}", "master", BRIDGE, "up")
            _ip("-n", space, "addr", "add", f"{address(number)}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")
        yield [["ip", "netns", "exec", space] for space in spaces]
    finally:
        for number, space in enumerate(spaces):
            # A namespace lives on while a connection of it is not given up, and its cable with it.
            subprocess.run(["ip", "link", "del", f"rl-net{number}"], check=False, capture_output=True)
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False, capture_output=True)


@contextmanager
def cluster_of(
    folder: Path, workers: int = 2, machines: Sequence[list[str]] = (), *, replaced: bool = True, named: bool = False
) -> Iterator[tuple[str, list[Any]]]:
    """A scheduler and workers, each a process of its own; ``replaced``: with a new worker for each that dies.

    ``machines``: what commands on each begin with; the scheduler is on the first, and workers on the others. ``named``:
    they are called host-0, host-1 and so on.
    """
    host = address(0) if machines else "127.0.0.1"
    first, *others = machines or [[]] * 2
    scheduler = f"tcp://{host}:{free_port()}"
    log = (folder / "dask.log").open("w")
    common = {"stdout": log, "stderr": log, "cwd": folder, "start_new_session": True}
    started = [
        subprocess.Popen(
            [*first, sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", scheduler, "--no-dashboard"],
            **common,  # type: ignore[call-overload]
        )
    ]

    def worker(number: int) -> Any:
        words = ["-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        name = ["--name", f"host-{number}"] if named else []
        place = others[number % len(others)]
        return subprocess.Popen([*place, sys.executable, *words, *name], **common)  # type: ignore[call-overload]

    living = [worker(number) for number in range(workers)]
    ended = threading.Event()

    def replace() -> None:
        while not ended.wait(0.1):
            for at, one in enumerate(living):
                if one.poll() is not None and not ended.is_set():
                    living[at] = worker(at)

    keeper = threading.Thread(target=replace)
    if replaced:
        keeper.start()
    try:
        yield scheduler, living
    finally:
        ended.set()
        if replaced:
            keeper.join()
        for one in [*started, *living]:
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
        log.close()


def wait_for_workers(address: str, count: int, patience_s: float = 60) -> None:
    """Return when so many workers are there."""
    from distributed import Client

    with Client(address, timeout=patience_s) as client:
        client.wait_for_workers(count, timeout=patience_s)

"""A laboratory on one machine: a server and several machines in network namespaces, joined by shaped links.

Each machine has a link of its own to a switch, and so has the server: pairs of virtual Ethernet devices whose ends
are shaped in both directions by token buckets, on a bridge in a namespace of its own. So no address of the host is
touched.

Invariants:

- Names begin with ``raidlab-`` and say whose they are, and what is made is removed, in the opposite order, whatever
  happens in between. What a process that was killed has left (namespaces, what runs in them, folders with keys), the
  next laboratory removes; nothing of a process that lives.
- Nothing in the host's own network changes.

Reference: A. Kuznetsov, *tc-tbf* (Linux manual): rate, burst, latency of a token bucket.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from raidlab.directory import Directory
from raidlab.errors import CellFailedError, InputError
from raidlab.network.limits import WatchedResource

_PREFIX = "raidlab-"
_FOLDERS = "raidlab-lab-"
_OWNER = "raidlab-owner"
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_PATIENCE_S = 10.0
_NETWORK = "10.213.77"
_SERVER_HOST = 1
_FIRST_MACHINE = 11
# Of a token bucket: enough for one scheduler tick at 1 Gbit/s, and a queue as a switch has.
_LATENCY_MS = 50


@dataclass
class Lab:
    """The laboratory while it stands."""

    server: str
    """The server's namespace."""
    machines: list[str]
    """Those of the machines."""
    server_address: str
    addresses: list[str]
    """Of the machines."""
    server_mbit_s: float
    machine_mbit_s: float
    _switch: str = ""
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, namespace: str, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process in one of its namespaces; it ends with the laboratory."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                ["ip", "netns", "exec", namespace, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def counters(self) -> list[LinkCounter]:
        """The links, as the switch's ends of them count: the server's first, then the machines'."""
        names = ["the server's link", *(f"the link of machine {number}" for number in range(1, len(self.machines) + 1))]
        rates = [self.server_mbit_s, *[self.machine_mbit_s] * len(self.machines)]
        return [
            LinkCounter(name, rate, self._switch, f"p{number}")
            for number, (name, rate) in enumerate(zip(names, rates, strict=True))
        ]

    def end_processes(self) -> None:
        """End what was started here, the last first."""
        for process in reversed(self._processes):
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                try:
                    process.wait(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    continue
        self._processes.clear()


@dataclass(frozen=True)
class LinkCounter:
    """A link whose bytes the kernel counts in the switch's namespace, whose devices the host does not see."""

    name: str
    mbit_s: float
    namespace: str
    device: str

    def read(self) -> tuple[int, int]:
        """Bytes sent and received so far."""
        files = (f"/sys/class/net/{self.device}/statistics/{counter}" for counter in ("tx_bytes", "rx_bytes"))
        sent, received = _ip("netns", "exec", self.namespace, "cat", *files).split()
        return int(sent), int(received)

    def watched(self, before: tuple[int, int], after: tuple[int, int], elapsed_ns: int) -> WatchedResource:
        """What was used of it, in the direction that was used more."""
        moved = max(after[0] - before[0], after[1] - before[1])
        used = moved * 8 / (elapsed_ns / 1e3) if elapsed_ns else 0.0
        return WatchedResource(self.name, used / self.mbit_s, f"{used:.1f} of {self.mbit_s:g} Mbit/s")


@contextmanager
def network_lab(machines: int, machine_mbit_s: float, server_mbit_s: float) -> Iterator[Lab]:
    """A server and so many machines, for as long as the context lasts.

    Raises `InputError` without root, `ip` or `tc`, or where the kernel has no such devices.
    """
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        raise InputError.one("--lab", "needs root, ip and tc", accepted="agents on machines (AGENT...), or root")
    owner = f"{_PREFIX}{os.getpid()}-{_started(os.getpid())}"
    names = [f"{owner}-{part}" for part in ("switch", "server", *map(str, range(1, machines + 1)))]
    switch, server, *others = names
    with _ended_in_order(), ExitStack() as made:
        _remove_abandoned()
        for name in names:
            _ip("netns", "add", name)
            made.callback(_quietly, "netns", "delete", name)
        _ip("-n", switch, "link", "add", "name", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "dev", "switch", "up")
        hosts = [_SERVER_HOST, *range(_FIRST_MACHINE, _FIRST_MACHINE + machines)]
        rates = [server_mbit_s, *[machine_mbit_s] * machines]
        for number, (name, host, rate) in enumerate(zip((server, *others), hosts, rates, strict=True)):
            _join(switch, f"p{number}", name, f"{_NETWORK}.{host}/24", rate)
        addresses = [f"{_NETWORK}.{host}" for host in hosts]
        lab = Lab(server, others, addresses[0], addresses[1:], server_mbit_s, machine_mbit_s, switch)
        made.callback(lab.end_processes)
        yield lab


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Being told to end ends like Ctrl-C, so that what was made is taken away."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGHUP) if in_main else ()
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _join(switch: str, port: str, name: str, address: str, mbit_s: float) -> None:
    """A link from the switch to a namespace, shaped at both ends."""
    _ip("-n", switch, "link", "add", "name", port, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("-n", switch, "link", "set", "dev", port, "master", "switch", "up")
    _ip("-n", name, "address", "add", address, "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", name, "link", "set", "dev", device, "up")
    # A burst of what passes in two milliseconds, at least some frames.
    burst = max(16_000, int(mbit_s * 1e6 / 8 * 0.002))
    for namespace, device in ((switch, port), (name, "eth0")):
        # Without these the kernel hands over pieces of 64 KB as one frame, which no link of such a rate would.
        _ip("netns", "exec", namespace, "tc", "qdisc", "add", "dev", device, "root", "tbf",
            "rate", f"{mbit_s:g}mbit", "burst", str(burst), "latency", f"{_LATENCY_MS}ms")  # fmt: skip


def _remove_abandoned() -> None:
    """Remove the namespaces of laboratories whose process is gone, and end what still runs in them."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        name = line.split()[0] if line.split() else ""
        owner, _, rest = name.removeprefix(_PREFIX).partition("-")
        if not name.startswith(_PREFIX) or not owner.isdigit():
            continue
        # A number that another process has meanwhile is told by when that one began.
        alive, begun = _started(int(owner)), rest.partition("-")[0]
        if alive is not None and (not begun.isdigit() or int(begun) == alive):
            continue
        held = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
        for pid in held.split():
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(pid), 9)
        _quietly("netns", "delete", name)


def _started(pid: int) -> int | None:
    """When a process began, in the kernel's ticks; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


@contextmanager
def lab_folder() -> Iterator[Path]:
    """A folder for keys, sockets and logs that only its owner can look into, for as long as the context lasts."""
    _remove_abandoned_folders()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
    try:
        # Locked before it has its name: a file of this name that nobody holds is always a dead process's.
        with (folder / f"{_OWNER}.new").open("wb") as owner:
            fcntl.flock(owner.fileno(), fcntl.LOCK_EX)
            (folder / f"{_OWNER}.new").rename(folder / _OWNER)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned_folders() -> None:
    """Remove this user's folders of dead laboratories; what is in them only their owner could have put there."""
    with suppress(OSError), Directory.open(Path(tempfile.gettempdir())) as around:
        for name in around.names():
            if not name.startswith(_FOLDERS):
                continue
            with ExitStack() as opened, suppress(OSError):
                folder = opened.enter_context(around.child(name, own=True))
                owner = opened.enter_context(os.fdopen(folder.open_file(_OWNER), "rb"))
                fcntl.flock(owner.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                around.remove_tree(name, folder.identity)


def connect_from(namespace: str, host: str, port: int) -> socket.socket:
    """A connection that begins in a namespace; this process stays where it is."""
    made: list[socket.socket | OSError] = []

    def connect() -> None:
        # A thread may go elsewhere alone; its sockets stay there when it has ended.
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            descriptor = os.open(_NAMESPACES / namespace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if libc.setns(descriptor, _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            finally:
                os.close(descriptor)
            made.append(socket.create_connection((host, port), timeout=_PATIENCE_S))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


def _ip(*words: str) -> str:
    found = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if found.returncode:
        said = (found.stderr.strip().splitlines() or ["it failed"])[-1]
        raise CellFailedError(f"ip {' '.join(words[:6])}: {said}", kind="unsupported", key="--lab")
    return found.stdout


def _quietly(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=False)


def comes_true(condition: Callable[[], bool], patience_s: float) -> bool:
    """Wait until a condition holds; whether it does before the patience ends."""
    until_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.1)
    return True


def this_python() -> list[str]:
    """The command that starts this very raidlab."""
    return [sys.executable, "-m", "raidlab"]

"""Agents and who drives them: whom they trust, what they do and refuse, how a limit is named."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from raidlab.errors import CellFailedError, InputError
from raidlab.network import agent as agent_module
from raidlab.network.agent import listen, serve
from raidlab.network.controller import AgentMachine, run_step
from raidlab.network.lab import lab_folder, network_lab
from raidlab.network.limits import WatchedResource, name_limit
from raidlab.network.protocol import Channel, GoneError, NotTrustedError, _mac, load_key
from raidlab.network.store import StoreError, own_name, store_at
from raidlab.network.tests import NetworkTestPlan, run_tests

KEY, OTHER_KEY = b"0123456789abcdef-one", b"0123456789abcdef-two"


class _Agent:
    """An agent in a thread of this process, and what it says."""

    def __init__(self, path: Path, place: Path, silence_s: float = 600) -> None:
        self.address, self.said = f"unix:{path}", []
        self._silence_s = silence_s
        self._listener = listen(str(path), 0)
        store = store_at(str(place))
        self._thread = threading.Thread(target=self._serve, args=(store,), daemon=True)
        self._thread.start()

    def _serve(self, store: object) -> None:
        try:
            serve(self._listener, KEY, store, self.said.append, silence_s=self._silence_s)  # type: ignore[arg-type]
        except OSError:
            return

    def says(self, words: str, times: int = 1) -> bool:
        """Whether it has said these words so often, or does within a minute: it speaks from threads of its own."""
        until_s = time.monotonic() + 60
        while sum(words in line for line in self.said) < times and time.monotonic() < until_s:
            time.sleep(0.05)
        return sum(words in line for line in self.said) == times

    def close(self) -> None:
        # Closing alone does not wake who accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=60)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[list[_Agent]]:
    """Four agents that share a directory."""
    place = tmp_path / "place"
    place.mkdir()
    made = [_Agent(tmp_path / f"agent-{number}", place) for number in range(4)]
    yield made
    for agent in made:
        agent.close()


def test_machines_write_and_read_together_and_leave_nothing(agents: list[_Agent], tmp_path: Path) -> None:
    machines = [AgentMachine(agent.address, KEY) for agent in agents]
    rows = list(
        run_tests(machines, NetworkTestPlan(1 << 20, 65_536, 2, directory=tmp_path / "place"), lambda _text: None)
    )
    assert [row.test for row in rows] == [
        *(f"{count} {work}" for work in ("write", "read") for count in (1, 2, 3, 4)),
        "2 read while 2 write",
        "2 read while 2 write",
    ]
    assert [(row.work, row.machines) for row in rows[-2:]] == [("read", 2), ("write", 2)]
    assert all(row.total_mb_s > 0 and row.slowest_mb_s <= row.fastest_mb_s for row in rows)
    assert all(row.low is not None and row.high is not None for row in rows)
    for machine in machines:
        machine.close()
    assert list((tmp_path / "place").iterdir()) == []


def test_what_was_written_is_what_was_asked(agents: list[_Agent], tmp_path: Path) -> None:
    machine = AgentMachine(agents[0].address, KEY)
    step = run_step([(machine, "write")], 300_000, 65_536)
    file = tmp_path / "place" / machine.file
    assert step.machines[0].bytes == file.stat().st_size == 300_000
    content = file.read_bytes()
    assert content[:65_536] != content[65_536:131_072], "no two blocks alike"
    machine.close()


def test_a_controller_that_goes_in_the_midst_leaves_nothing(agents: list[_Agent], tmp_path: Path) -> None:
    machine = AgentMachine(agents[0].address, KEY)
    run_step([(machine, "write")], 300_000, 65_536)
    machine.ready("write", 300_000, 65_536)
    machine.abandon()
    # The next controller is served once the agent has done with the one before.
    AgentMachine(agents[0].address, KEY).close()
    assert list((tmp_path / "place").iterdir()) == []


def test_who_has_another_key_is_turned_away(agents: list[_Agent]) -> None:
    with pytest.raises(InputError, match="is not trusted"):
        AgentMachine(agents[0].address, OTHER_KEY)
    # The agent goes on with those that have it.
    AgentMachine(agents[0].address, KEY).close()
    assert agents[0].says("turned away")


def test_an_impostor_is_not_driven(tmp_path: Path) -> None:
    path = tmp_path / "impostor"
    listener = listen(str(path), 0)

    def impersonate() -> None:
        connection, _ = listener.accept()
        with connection:
            # Sends back what it is sent, and makes up a proof.
            connection.sendall(connection.recv(4096))
            connection.sendall(os.urandom(32))

    threading.Thread(target=impersonate, daemon=True).start()
    with listener, pytest.raises(InputError, match="is not trusted"):
        AgentMachine(f"unix:{path}", KEY)


def _pair() -> tuple[Channel, Channel, socket.socket]:
    one, other = socket.socketpair()
    found: list[Channel] = []
    thread = threading.Thread(target=lambda: found.append(Channel(other, KEY, "agent")))
    thread.start()
    controller = Channel(one, KEY, "controller")
    thread.join()
    return controller, found[0], one


def test_a_frame_that_was_changed_repeated_or_made_up_is_refused() -> None:
    for spoil in ("changed", "repeated", "from the wrong side"):
        controller, agent, wire = _pair()
        sent: list[bytes] = []
        controller._connection = _Recording(wire, sent)  # type: ignore[assignment]
        controller.send({"do": "hello"})
        frame = b"".join(sent)
        if spoil == "changed":
            frame = frame.replace(b"hello", b"hellu")
        wire.sendall(frame)
        if spoil == "repeated":
            assert agent.receive() == {"do": "hello"}
            wire.sendall(frame)
        if spoil == "from the wrong side":
            assert agent.receive() == {"do": "hello"}
            agent.send({"ok": True})
            echoed = wire.recv(4096)
            wire.sendall(echoed)
        with pytest.raises(NotTrustedError):
            agent.receive()
        controller.close()
        agent.close()
        wire.close()


class _Recording:
    """A connection that keeps what is sent, and sends nothing."""

    def __init__(self, wire: socket.socket, sent: list[bytes]) -> None:
        self._wire, self._sent = wire, sent

    def sendall(self, data: bytes) -> None:
        self._sent.append(data)

    def close(self) -> None:
        self._wire.close()


def test_an_agent_opens_nothing_but_files_of_raidlabs_own(agents: list[_Agent], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for others", encoding="utf-8")
    (tmp_path / "place" / "raidlab-net-link.dat").symlink_to(secret)
    for name in ("../secret", "/etc/passwd", "raidlab-net-../x.dat", "raidlab-net-a/b.dat", "other.dat"):
        with pytest.raises(StoreError, match="no file of raidlab's"):
            own_name(name)
        machine = AgentMachine(agents[0].address, KEY)
        machine.file = name
        with pytest.raises(CellFailedError, match="no file of raidlab's"):
            machine.ready("read", 10, 512)
        machine.file = "raidlab-net-none.dat"
        machine.close()
    machine = AgentMachine(agents[0].address, KEY)
    machine.file = "raidlab-net-link.dat"
    with pytest.raises(CellFailedError):
        machine.ready("write", 10, 512)
    machine.file = "raidlab-net-none.dat"
    machine.close()
    assert secret.read_text(encoding="utf-8") == "not for others"


def test_an_agent_does_five_things_and_no_other(agents: list[_Agent]) -> None:
    machine = AgentMachine(agents[0].address, KEY)
    channel = machine._channel
    for message in (
        {"do": "run", "command": "true"},
        {"do": "read"},
        {"do": "write", "file": "raidlab-net-a.dat", "bytes": -1, "block_bytes": 1},
        {"do": "take", "file": "raidlab-net-a.dat", "bytes": 1},
    ):
        channel.send(message)
        answer = channel.receive()
        assert answer["ok"] is False and answer["error"]
    machine.close()
    with pytest.raises((GoneError, OSError)):
        channel.send({"do": "hello"})
        channel.receive()


def test_who_has_not_shown_the_key_holds_up_nobody(agents: list[_Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_PATIENCE_S", 2.0)
    path = agents[0].address.removeprefix("unix:")
    # More than may knock at once, each with a byte now and then: each byte began the wait anew.
    slow = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for one in slow:
        one.connect(path)
        one.sendall(b"r")
    machine = AgentMachine(agents[0].address, KEY)
    machine.ready("write", 10, 512)
    assert machine.go("write").bytes == 10
    machine.close()
    last = slow[-1]
    last.settimeout(60)
    with suppress(OSError):
        for letter in b"aidlab-agent-1" * 100:
            last.sendall(bytes([letter]))
            time.sleep(0.1)
    # Whole introductions have an end, however slowly they go on.
    with suppress(ConnectionError):
        while last.recv(4096):
            pass
    for one in slow:
        one.close()
    assert agents[0].says("turned away", len(slow))


def test_a_silent_controller_makes_room_for_another(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    agent = _Agent(tmp_path / "agent", tmp_path / "place", silence_s=0)
    silent = AgentMachine(agent.address, KEY)
    silent.ready("write", 10, 512)
    machine = AgentMachine(agent.address, KEY)
    machine.ready("write", 10, 512)
    assert machine.go("write").bytes == 10
    with pytest.raises(CellFailedError):
        silent.go("write")
    silent.abandon()
    machine.close()
    agent.close()
    assert list((tmp_path / "place").iterdir()) == []


def test_a_controller_that_works_is_not_driven_out(agents: list[_Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_PATIENCE_S", 0.2)
    first = AgentMachine(agents[0].address, KEY)
    first.ready("write", 10, 512)
    second = AgentMachine(agents[0].address, KEY)
    with pytest.raises(CellFailedError, match="another controller drives this machine"):
        second.ready("write", 10, 512)
    second.abandon()
    assert first.go("write").bytes == 10
    first.close()


@pytest.mark.parametrize("body", [b"[" * 30_000, b'{"do": ' * 5_000, b"nonsense", b'"text"', b"\xff"])
def test_frames_that_are_no_messages_end_the_connection_and_not_the_agent(agents: list[_Agent], body: bytes) -> None:
    machine = AgentMachine(agents[0].address, KEY)
    channel = machine._channel
    mac = _mac(channel._session, channel._sent.to_bytes(8, "big"), "controller", body)
    channel._connection.sendall(len(body).to_bytes(4, "big") + mac + body)
    with pytest.raises(GoneError):
        channel.receive()
    machine.abandon()
    AgentMachine(agents[0].address, KEY).close()
    assert agents[0].says("was let go: a frame is no message")


def test_only_regular_files_are_opened_and_others_are_neither_waited_for_nor_written(tmp_path: Path) -> None:
    store, name = store_at(str(tmp_path)), "raidlab-net-a.dat"
    os.mkfifo(tmp_path / name)
    for use in (store.open_read, store.open_write):
        with pytest.raises(StoreError, match=r"is not a (regular )?file"), use(name):
            pass
    (tmp_path / name).unlink()
    # A second name of somebody's file.
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    os.link(victim, tmp_path / name)
    with pytest.raises(StoreError, match="a single name"), store.open_write(name) as file:
        file.write(b"mine")
    assert victim.read_text(encoding="utf-8") == "precious"


def test_a_place_is_not_filled_nor_strewn_with_files(agents: list[_Agent]) -> None:
    machine = AgentMachine(agents[0].address, KEY)
    with pytest.raises(CellFailedError, match=r"would leave less than [0-9]+ bytes of the place free"):
        machine.ready("write", 1 << 44, 65_536)
    # One more was refused above, whose name counts until the end.
    for number in range(63):
        machine.file = f"raidlab-net-{number}.dat"
        machine.ready("write", 1, 512)
        machine.go("write")
    machine.file = "raidlab-net-more.dat"
    with pytest.raises(CellFailedError, match="at most 64 files here at once"):
        machine.ready("write", 1, 512)
    machine.close()


def test_a_key_is_kept_from_others_and_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(KEY)
    file.chmod(0o644)
    with pytest.raises(InputError, match="others may read it"):
        load_key(file)
    file.chmod(0o600)
    assert load_key(file) == KEY
    file.write_bytes(b"short")
    with pytest.raises(InputError, match="has 5 bytes"):
        load_key(file)


def test_a_limit_is_what_was_busy_and_nothing_else() -> None:
    server, own = (
        WatchedResource("the server's link", 0.95, "95 of 100 Mbit/s"),
        WatchedResource("the machines' own links", 0.3, ""),
    )
    assert name_limit([server, own]).name == "the server's link"
    assert "none" in name_limit([own, WatchedResource("the processors of this machine", 0.5, "50 %")]).name
    assert "none" in name_limit([]).name


def _namespaces() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))):
        return False
    name = f"raidlab-{os.getpid()}-trial"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return made


@pytest.mark.skipif(not _namespaces(), reason="network namespaces need root, ip and tc")
@pytest.mark.slow
def test_a_laboratory_is_gone_also_after_a_failure() -> None:
    with pytest.raises(RuntimeError, match="in between"), network_lab(2, 100, 100) as lab:
        assert all(name in _standing() for name in (lab.server, *lab.machines))
        ping = ["ip", "netns", "exec", lab.machines[0], "python3", "-c"]
        trial = "import socket, sys; s = socket.socket(); s.settimeout(5); s.connect_ex((sys.argv[1], 9))"
        before = [counter.read() for counter in lab.counters()]
        assert subprocess.run([*ping, trial, lab.server_address], check=False).returncode == 0
        after = [counter.read() for counter in lab.counters()]
        assert after[0][0] > before[0][0] and after[1][0] > before[1][0], "the links are those that were counted"
        raise RuntimeError("in between")
    assert f"raidlab-{os.getpid()}-" not in _standing()


_KILLED = """
import sys, time
from raidlab.network.lab import lab_folder, network_lab
with lab_folder() as folder, network_lab(1, 100, 100) as lab:
    (folder / "key").write_text("secret")
    lab.start(lab.machines[0], ["sleep", "1000"], folder / "log")
    print(folder, lab.server, flush=True)
    time.sleep(1000)
"""


@pytest.mark.skipif(not _namespaces(), reason="network namespaces need root, ip and tc")
@pytest.mark.slow
def test_what_a_killed_laboratory_left_the_next_one_removes() -> None:
    command = [sys.executable, "-c", _KILLED]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as living,
    ):
        assert killed.stdout is not None and living.stdout is not None
        try:
            folder, namespace = killed.stdout.readline().split()
            other_folder, other_namespace = living.stdout.readline().split()
            killed.kill()
            killed.wait()
            assert (Path(folder) / "key").exists() and namespace in _standing()
            with lab_folder(), network_lab(1, 100, 100):
                assert not Path(folder).exists() and namespace not in _standing()
                assert (Path(other_folder) / "key").exists() and other_namespace in _standing(), "its owner lives"
        finally:
            living.terminate()
            living.wait()
            killed.kill()
    assert not Path(other_folder).exists() and other_namespace not in _standing()


def _standing() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout

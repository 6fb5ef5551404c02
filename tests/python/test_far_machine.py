"""Streams to another machine: what arrives there, who may bring it, what happens without one; data of one's own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

from machines import cluster_of, wait_for_workers
from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, resume_run, run_study
from raidlab.errors import CellFailedError, InputError
from raidlab.measure import copies
from raidlab.measure.copies import CopyTaker, HostDisk, host_disk
from raidlab.study import load_study_text

pytest.importorskip("distributed", reason="Dask is not installed (raidlab[dask])")

from raidlab.measure.hosts import Hosts

MIB = 2**20
STUDY = """
name = "copies"
title = "Copies"
on = ["memory"]

[[array]]
name = "box"
tree = "concat(1)"

[[workload]]
name = "write"
read = 0.0
size = "64KiB"
streams = [{ name = "write", source = "memory", sink = "array", bytes = "4MiB" }]

[[workload]]
name = "copy"
read = 0.5
size = "64KiB"
streams = [
    { name = "to a machine", source = "array", sink = "remote disk", bytes = "1MiB", buffers = 2 },
    { name = "from tape", source = "tape", sink = "array", bytes = "1MiB" },
]

[load]
depths = [1]

[live]
repeats = 1

[[live.end]]
name = "tape"
tape = { mb_s = 100 }

[[live.end]]
name = "remote disk"
machine = {}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """One host: a worker of this machine."""
    with Hosts("local:1") as found:
        yield found


@pytest.fixture
def machine(place: Path, hosts: Hosts) -> HostDisk:
    """Its disk."""
    hosts.ask(lambda host: host.agent.take_copies(str(place)))
    return HostDisk(f"0:{place}", hosts)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    return file


def test_a_copy_is_a_stream_like_any_other(study: Path, place: Path, tmp_path: Path, machine: HostDisk) -> None:
    run = run_study(study, out=tmp_path / "runs", machine=machine)
    copy = run.streams.filter(pl.col("stream") == "to a machine").to_dicts()[0]
    assert (copy["source"], copy["sink"], copy["bytes"]) == ("array", "connection", MIB)
    assert run.facts["far_machine"] == machine.name
    assert not list(place.glob("*/*.dat")), "what was copied is gone"


def test_without_a_machine_the_rest_is_run_and_it_is_said(study: Path, tmp_path: Path) -> None:
    said: list[str] = []

    class Heard:
        def begin(self, title: str, total: int) -> None: ...
        def advance(self) -> None: ...
        def end(self) -> None: ...
        def note(self, text: str) -> None:
            said.append(text)

    run = run_study(study, out=tmp_path / "runs", progress=Heard())
    assert run.cells["workload"].to_list() == ["write"] and run.facts["status"] == "complete"
    assert said == ["'copy' is left out: it needs another machine (--machine)"]


def test_a_copy_arrives_as_it_was_sent(place: Path, machine: HostDisk) -> None:
    bytes_sent = bytes(range(256)) * 4000
    with machine.taking(len(bytes_sent)) as descriptor, socket.socket(fileno=descriptor) as stream:
        stream.sendall(bytes_sent)
        stream.shutdown(socket.SHUT_WR)
        assert int.from_bytes(stream.recv(8, socket.MSG_WAITALL), "little") == len(bytes_sent)
        assert next(place.glob("*/*.dat")).read_bytes() == bytes_sent
        stream.detach()
    assert not list(place.glob("*/*.dat"))


def test_nobody_else_brings_a_copy(place: Path, machine: HostDisk) -> None:
    [(_, (port, _word))] = machine.hosts.ask(lambda host: host.agent.take("127.0.0.1", 100))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(b"x" * 132)
        [(_, wrong)] = machine.hosts.ask(lambda host: host.agent.taken())
    assert wrong == "somebody else came for the copy"
    assert not list(place.glob("*/*.dat"))


@pytest.mark.parametrize("who", ["nobody", "a stranger who says nothing", "a sender who falls silent"])
def test_a_copy_of_which_nothing_comes_ends(who: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_PATIENCE_S", 60.0 if who.startswith("a sender") else 0.2)
    monkeypatch.setattr(copies, "_COPY_PATIENCE_S", 0.2)
    said: list[str] = []
    with ExitStack() as held:
        taker = CopyTaker(place, held)
        port, word = taker.take("127.0.0.1", MIB)
        if who != "nobody":
            there = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            there.sendall(word + b"x" if who.startswith("a sender") else b"")
        # Should it wait for ever, the test does not.
        waiting = threading.Thread(target=lambda: said.append(taker.taken()), daemon=True)
        waiting.start()
        waiting.join(60)
    assert said == ["timed out"]
    assert not list(place.rglob("*.dat"))


def test_of_a_copy_no_more_is_taken_than_was_agreed_on(place: Path) -> None:
    with ExitStack() as held:
        taker = CopyTaker(place, held)
        port, word = taker.take("127.0.0.1", 100)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as there:
            there.sendall(word + bytes(1000))
            assert int.from_bytes(there.recv(8, socket.MSG_WAITALL), "little") == 100
            assert next(place.rglob("*.dat")).stat().st_size == 100
        assert taker.taken() == ""


def test_a_copy_that_does_not_fit_is_refused_before_it_begins(machine: HostDisk) -> None:
    with pytest.raises(CellFailedError, match=r"on 0: .* are free"), machine.taking(1 << 60):
        pass


@pytest.mark.parametrize("text", ["/scratch", "0:scratch", "127.0.0.1:7070", "lab:/scratch"])
def test_what_is_no_disk_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--machine") as caught, host_disk(text, "local:1"):
        pass
    assert caught.value.exit_code == 2


def test_a_directory_that_the_host_lacks_is_refused(hosts: Hosts) -> None:
    with pytest.raises(InputError, match=r"--machine: '/no/such/place': on 0: "):
        hosts.ask(lambda host: host.agent.take_copies("/no/such/place"))


@pytest.mark.slow
def test_a_host_that_dies_while_it_takes_a_copy_is_named(study: Path, place: Path, tmp_path: Path) -> None:
    with cluster_of(tmp_path, workers=1, replaced=False, named=True) as (address, workers):
        wait_for_workers(address, 1)
        with host_disk(f"host-0:{place}", address) as machine:
            lost = pytest.raises(CellFailedError, match=r"host host-0 \(tcp://.*\) is lost")
            with lost, machine.taking(MIB):
                workers[0].kill()
                workers[0].wait()
            failed = run_study(study, out=tmp_path / "runs", machine=machine)
    assert failed.facts["status"] == "failed" and "host host-0" in failed.facts["failure"]
    assert failed.cells["workload"].to_list() == ["write"], "what needs no host is kept"


def test_a_run_goes_on_with_the_machine_it_had(study: Path, tmp_path: Path, machine: HostDisk) -> None:
    class Full(HostDisk):
        def taking(self, total: int):  # type: ignore[no-untyped-def]
            raise CellFailedError("the disk there is full", kind="io")

    full = Full(machine.name, machine.hosts)
    failed = run_study(study, out=tmp_path / "runs", machine=full)
    assert failed.facts["status"] == "failed" and "full" in failed.facts["failure"]
    with pytest.raises(InputError, match="its streams went to 0:/"):
        resume_run(failed.folder, study)
    assert set(resume_run(failed.folder, study, machine=machine).cells["workload"]) == {"write", "copy"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('source = "array", sink = "remote disk"', 'source = "remote disk", sink = "array"', "gives none"),
        ("depths = [1]", "depths = [2]", "takes one copy at a time"),
        ("machine = {}", 'path = [{ station = "x", phase = "data" }]', "stations are modelled"),
    ],
)
def test_mistakes_are_named(old: str, new: str, told: str) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as caught:
        load_study_text(STUDY.replace(old, new), Path("study.toml"))
    assert told in str(caught.value)


def test_ones_own_data_are_written_and_amounts_are_shares(study: Path, tmp_path: Path) -> None:
    (tmp_path / "sample").write_bytes(bytes(range(256)) * 1024)
    study.write_text(STUDY.replace("[live]", '[live]\ndata = "sample"\namounts = 0.3'), encoding="utf-8")
    run = run_study(study, out=tmp_path / "runs")
    assert run.streams["bytes"].to_list() == [19 * 65_536], "whole blocks"
    found = {finding.check: finding for finding in run_checks(analyse(run))}
    assert found["data"].verdict == "WARN" and "4.8 times over" in found["data"].evidence
    study.write_text(STUDY.replace("[live]", '[live]\ndata = "nothing there"'), encoding="utf-8")
    with pytest.raises(InputError, match="is no file"):
        run_study(study, out=tmp_path / "runs")

"""One measurement from several machines: begun together, put together, a lost one named; the server counts the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from machines import address as server_address
from machines import cluster_of, free_port, namespaces, unplug, wait_for_workers
from raidlab.errors import CellFailedError, InputError
from raidlab.measure import BudgetFlags, Drive, LoadFlags, MeasureRequest, WorkloadFlags, measure, request_of_flags
from raidlab.measure.files import FilesPlan, findings, measure_whole_files, reading_rows
from raidlab.measure.merge import TOGETHER, Part, merged
from raidlab.measure.streams import StreamsPlan, measure_all_streams, stream_rows, streams_checks, streams_of
from raidlab.results.answer import times_of_all
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.runner import cell_answer, run_request
from raidlab.study.cell import FilesCell, MadeFiles, StreamsCell
from raidlab.study.workload import FixedSize

pytest.importorskip("distributed", reason="Dask is not installed (raidlab[dask])")

from raidlab.measure.hosts import Hosts, share_of


def _asked(
    *targets: str,
    rw: str = "randread",
    depth: str | None = "8",
    rate: str | None = None,
    runtime: str = "400ms",
    repeats: int = 1,
    size: str = "4KiB",
) -> MeasureRequest:
    return request_of_flags(
        targets,
        WorkloadFlags(rw=rw, size=size),
        LoadFlags(depth=None if rate else depth, rate=rate),
        BudgetFlags(runtime=runtime, warmup="100ms", repeats=repeats),
        Drive(),
        file_size="4MiB",
    )


def test_two_hosts_share_a_load_and_are_put_together(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with Hosts("local:2") as hosts:
        run = measure(_asked(str(disk), rw="randrw", depth="3"), tmp_path / "runs", hosts=hosts)
    assert run.facts["status"] == "complete", run.facts["failure"]
    facts = run.facts["measure"]["hosts"]
    assert [host["targets"] for host in facts] == [1, 1] and len({host["name"] for host in facts}) == 2
    cell = run.cells.row(0, named=True)
    members = run.members.filter(run.members["cell"] == cell["cell"])
    assert members.height == 2 and (members["reads"] + members["writes"]).min() > 0
    assert members["reads"].sum() + members["writes"].sum() == cell["all_requests"]
    # Of three outstanding the one had two and the other one.
    assert cell["depth_mean"] == pytest.approx(3, abs=0.2)
    assert [member["kind"] for member in run.facts["live_members"]] == ["file", "file"]
    assert not list(disk.iterdir()), "files were left behind"


class _KillsAfterOne(Progress):
    """Kills a worker while the second cell is measured, or one after it."""

    def __init__(self, worker: Any) -> None:
        self._kill = threading.Timer(0.2, worker.kill)

    def advance(self) -> None:
        if not self._kill.is_alive() and not self._kill.finished.is_set():
            self._kill.start()


def test_a_host_that_is_lost_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    with ExitStack() as held:
        address, workers = held.enter_context(cluster_of(tmp_path, workers=2, replaced=False, named=True))
        hosts = held.enter_context(_connected(address, 2))
        asked = _asked("null", depth="2,4", repeats=5)
        run = measure(asked, tmp_path / "runs", hosts=hosts, progress=_KillsAfterOne(workers[1]))
    assert run.facts["status"] == "failed"
    assert re.fullmatch(r"host host-1 \(tcp://.*\) is lost", run.facts["failure"] or "")
    measured = run.cells.filter(run.cells["target"] == "live")
    assert measured.height == 10 and measured["all_requests"].min() > 0
    last = measured.sort("order").row(-1, named=True)
    members = run.members.filter(run.members["cell"] == last["cell"]).sort("leaf")
    assert members["reads"][0] == last["all_requests"] and members["reads"][1] == 0


def test_hosts_are_refused_that_are_not_there_and_targets_that_one_of_them_lacks(tmp_path: Path) -> None:
    with Hosts("local:1") as hosts:
        with pytest.raises(InputError, match=r"TARGET: '/no/such/place': on .*there is no such file"):
            measure(_asked("/no/such/place"), tmp_path / "runs", hosts=hosts)
        with pytest.raises(InputError, match="is an array, and hosts drive none"):
            measure(_asked("raid5(5)@memory"), tmp_path / "runs", hosts=hosts)
    with pytest.raises(InputError, match="--hosts: 2: the cluster has 1; accepted: 1 to 1") as caught:
        Hosts("local:1", 2)
    assert caught.value.exit_code == 2


def test_shares_of_a_load_add_up_to_it() -> None:
    closed = [share_of({"kind": "closed", "depth": 7}, number, 3)["depth"] for number in range(3)]
    assert closed == [3, 2, 2]
    arrival = {"kind": "poisson", "rate_per_s": 100.0}
    opened = [share_of({"kind": "open", "arrival": arrival}, number, 4)["arrival"]["rate_per_s"] for number in range(4)]
    assert opened == [25.0] * 4 and arrival["rate_per_s"] == 100.0


_NULL = {"kind": "null", "size_bytes": 1 << 20}


def _request(seed: int) -> str:
    return json.dumps(
        {
            "engine": "direct",
            "seed": seed,
            "targets": [_NULL],
            "load": {"kind": "closed", "depth": 2},
            "measure": {"requests": 500},
            "workload": {
                "read": 0.5,
                "size": {"kind": "fixed", "bytes": 4096},
                "address": {"kind": "uniform"},
            },
        }
    )


def _answer(host: str, opened_ns: int, seed: int) -> Part:
    return Part(host, cell_answer(run_request(_request(seed))), opened_ns, seed - 1)


def test_histograms_are_added_and_windows_apart_are_said() -> None:
    parts = [_answer("a", 1_000, 1), _answer("b", 1_000, 2)]
    whole = merged(parts, 7, 3)
    assert whole["all"]["requests"] == 1000 == whole["read"]["requests"] + whole["write"]["requests"]
    assert whole["elapsed_ns"] == max(part.answer["elapsed_ns"] for part in parts)
    times = np.concatenate([np.repeat(*_columns(part)) for part in parts])
    mine = times_of_all(whole)
    for percentile in (10, 50, 90, 99):
        rank = int(np.ceil(percentile / 100 * times.size)) - 1
        assert mine.percentile_ns(percentile) == int(np.sort(times)[rank])
    # The third one's host has not answered.
    assert [member["leaf"] for member in whole["members"]] == [0, 1, 2]
    assert sum(member["reads"] + member["writes"] for member in whole["members"][:2]) == 1000
    assert whole["members"][2]["reads"] == 0
    apart = merged([parts[0], parts[1]._replace(opened_ns=1_000 + parts[0].answer["elapsed_ns"])], 7, 2)
    check = next(check for check in apart["checks"] if check["name"] == TOGETHER)
    assert check["verdict"] == "INVALID" and "their windows share 0.00%" in check["evidence"]
    # A total is over the time from the first to the last.
    assert apart["elapsed_ns"] == sum(part.answer["elapsed_ns"] for part in parts)


def _columns(part: Part) -> tuple[Any, Any]:
    times = times_of_all(part.answer)
    return times.value_ns, times.count.astype(int)


@contextmanager
def _connected(address: str, count: int) -> Iterator[Hosts]:
    """The hosts of a cluster, once so many are there."""
    wait_for_workers(address, count)
    with Hosts(address) as hosts:
        assert len(hosts.hosts) == count
        yield hosts


@contextmanager
def _server(machine: list[str], log: Path, address: str) -> Iterator[str]:
    """A server of a disk on a network that writes down every request, and serves some thousands a second at most."""
    port = free_port()
    words = ["nbdkit", "-f", "--ipaddr", address, "--port", str(port), "--filter=log", "--filter=rate"]
    words += ["memory", "64M", f"logfile={log}", "rate=128M"]
    server = subprocess.Popen([*machine, *words], start_new_session=True)
    try:
        # Who comes before it listens is refused, and does not come again.
        for _ in range(1200):
            with suppress(ConnectionError), socket.create_connection((address, port), timeout=60):
                break
            assert server.poll() is None, "the server has ended"
            time.sleep(0.05)
        yield f"nbd://{address}:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


_SERVED = re.compile(r"(\S+ \S+) connection=(\d+) (?:Connect export=(\S+)|\.\.\.Read)")


def _served(log: Path, opened_ns: int, closed_ns: int) -> Counter[str]:
    """How many reads the server answered between two moments, by the export that was asked for."""
    names, found = dict[str, str](), Counter[str]()
    for line in log.read_text(encoding="utf-8").splitlines():
        if (said := _SERVED.match(line)) is None:
            continue
        when, connection, name = said.groups()
        if name is not None:
            names[connection] = name
        elif opened_ns <= datetime.fromisoformat(when).timestamp() * 1e9 < closed_ns:
            found[names[connection]] += 1
    return found


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("nbdkit") is None or shutil.which("nbdfuse") is None, reason="needs nbdkit and nbdfuse"
)
def test_four_hosts_count_what_the_server_counts(tmp_path: Path) -> None:
    """What four machines moved in their common interval is the server's own count of it, within 1 %.

    So is what the others moved when one is killed, and when another one's cable is pulled.
    """
    log, disk = tmp_path / "server.log", tmp_path / "disk"
    disk.touch()
    warmup_ns, measured_ns = 3_000_000_000, 5_000_000_000
    with ExitStack() as held:
        machines = held.enter_context(namespaces(5))
        uri = held.enter_context(_server(machines[0], log, server_address(0)))
        # Each has the disk in the same place, as machines that mount one storage do, and a name that the server knows.
        until = 'tries=600; until [ -s "$1" ] || [ $tries = 0 ]; do sleep 0.1; tries=$((tries - 1)); done'
        own = f'mount --make-rprivate /; nbdfuse "$1" "$2" & {until}; shift 2; exec "$@"'
        inside = [
            [*machine, "unshare", "--mount", "sh", "-c", own, "sh", str(disk), f"{uri}/host-{number}"]
            for number, machine in enumerate(machines[1:])
        ]
        address, workers = held.enter_context(
            cluster_of(tmp_path, workers=4, machines=[machines[0], *inside], replaced=False, named=True)
        )
        hosts = held.enter_context(_connected(address, 4))
        hosts.open(_asked(str(disk)), writes=False)
        with hosts.made_members() as members:
            request = {
                "engine": "direct",
                "seed": 1,
                "targets": members,
                "load": {"kind": "closed", "depth": 8},
                "workload": {
                    "read": 1.0,
                    "size": {"kind": "fixed", "bytes": 4096},
                    "address": {"kind": "uniform"},
                },
                # The server lets two seconds' worth pass at once before it holds to its rate.
                "warmup": {"duration": warmup_ns},
                "measure": {"duration": measured_ns},
            }

            def counted(names: set[str], event: Callable[[], None]) -> None:
                """Run it, something happening while all are at it, and compare what these hosts moved."""
                # Early: a machine that stalls must not have it happen when all is over.
                timer = threading.Timer((hosts._lead_ns + warmup_ns // 2) / 1e9, event)
                timer.start()
                answer = hosts.run(json.dumps(request))
                timer.join()
                check = next(check for check in answer["checks"] if check["name"] == TOGETHER)
                assert check["verdict"] == "PASS", check["evidence"]
                each = answer["facts"]["hosts"]
                assert {host["name"] for host in each} == names
                (opened_ns,) = {host["opened_unix_ns"] for host in each}
                served = _served(log, opened_ns, opened_ns + answer["elapsed_ns"])
                theirs = sum(served[name] for name in names)
                assert theirs > 2_000 and answer["all"]["failed"] == 0
                assert answer["all"]["requests"] == pytest.approx(theirs, rel=0.01), check["evidence"]
                mine = [member["reads"] for member in answer["members"] if member["reads"]]
                assert len(mine) == len(names) and min(mine) > 0.1 * theirs

            counted({"host-0", "host-1", "host-2", "host-3"}, lambda: None)
            assert hosts.lost == []
            counted({"host-0", "host-1", "host-2"}, workers[3].kill)
            assert [re.sub(r"\(.*\)", "()", said) for said in hosts.lost] == ["host host-3 () is lost"]
            counted({"host-0", "host-1"}, lambda: unplug(3))
            assert len(hosts.lost) == 2 and hosts.lost[0].startswith("host host-2 ")


def _streams(*ends: str, size_bytes: int, rate_mb_s: float | None = None) -> StreamsPlan:
    streams = streams_of(ends, size_bytes=size_bytes, block_bytes=1 << 16, rate_mb_s=rate_mb_s)
    return StreamsPlan(StreamsCell(streams=streams), repeats=2, alone=False)


def test_streams_of_two_hosts_begin_together_and_are_put_together(tmp_path: Path) -> None:
    # So slow that both are under way for a second: a start apart by a tenth of that would be told.
    plan = _streams("memory", "null", "memory", "tape:4MB", size_bytes=4 << 20, rate_mb_s=4.0)
    with Hosts("local:2") as hosts:
        names = [host.name for host in hosts.hosts]
        turns = measure_all_streams(plan, progress=Silent(), stop=StopFlag(), hosts=hosts)
    assert turns.status == "complete", turns.failure
    for result in turns.results["together"]:
        assert [one.name.partition(": ")[0] for one in result.streams] == [name for name in names for _ in "ab"]
        assert len({one.name for one in result.streams}) == 4 and result.bytes == 4 * (4 << 20)
        assert [end["stream"] for end in result.facts["endpoints"]] == [0, 0, 1, 1, 2, 2, 3, 3]
        # From the first start of any to the last end of any, and no stream outside of that.
        assert max(one.start_ns + one.elapsed_ns for one in result.streams) == result.elapsed_ns
        assert min(one.start_ns for one in result.streams) == 0 and result.elapsed_ns > 900_000_000
        (check,) = (check for check in result.checks if check["name"] == TOGETHER)
        assert "2 hosts" in check["evidence"]
    rows = stream_rows(turns)
    assert [row["stream"] for row in rows][-1] == "all" and len(rows) == 5
    assert streams_checks(turns)[0]["name"] == TOGETHER


def test_streams_go_on_without_a_host_that_is_lost(tmp_path: Path) -> None:
    plan = _streams("memory", "null", size_bytes=2 << 20, rate_mb_s=2.0)
    with Hosts("local:2") as hosts:
        processes = hosts._cluster.client.run(os.getpid)
        os.kill(processes[hosts.hosts[1].address], signal.SIGKILL)
        turns = measure_all_streams(plan, progress=Silent(), stop=StopFlag(), hosts=hosts)
        names = [host.name for host in hosts.hosts]
    assert turns.status == "failed" and f"host {names[1]}" in str(turns.failure)
    assert len(turns.results["together"]) == 2
    for result in turns.results["together"]:
        assert [one.name for one in result.streams] == [f"{names[0]}: memory to null"]


def _files(hosts: Hosts, directory: Path) -> FilesPlan:
    made = MadeFiles(directories=[], sizes=FixedSize(kind="fixed", bytes=64 << 10), count=20)
    return FilesPlan(FilesCell(files=hosts.open_files([str(directory)], made)), readers=(1, 2), repeats=2)


def test_whole_files_of_two_hosts_are_their_own_and_are_put_together(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    with Hosts("local:2") as hosts:
        names = [host.name for host in hosts.hosts]
        outcome = measure_whole_files(_files(hosts, box), progress=Silent(), stop=StopFlag(), hosts=hosts)
        assert len(list(box.iterdir())) == 2, "one folder of files for each host"
    assert outcome.turns.status == "complete", outcome.turns.failure
    assert list(box.iterdir()) == [], "files were left behind"
    assert outcome.written is not None and outcome.written.fill is not None
    fill = outcome.written.fill
    assert (fill.files, fill.bytes) == (40, 40 << 16) and sorted(fill.records["file"]) == list(range(40))
    for readers, results in outcome.turns.results.items():
        for result in results:
            read = result.read
            # Every reader reads all that its host has made.
            assert (read.files, read.bytes) == (40 * readers, readers * 40 << 16)
            assert set(read.records["reader"]) == set(range(2 * readers))
            assert set(read.records["file"]) == set(range(40)) and len(result.size_bytes) == 40
            assert read.total.total == read.files == len(read.records["total_ns"])
            ends = read.records["start_ns"] + read.records["total_ns"]
            assert read.records["start_ns"].min() == 0 and ends.max() == read.elapsed_ns
            assert [one["path"].partition(":")[0] for one in result.facts["directories"]] == names
            (check,) = (check for check in result.checks if check["name"] == TOGETHER)
            assert check["evidence"].startswith("2 hosts began")
    rows = reading_rows(outcome)
    assert [row["readers"] for row in rows] == [1, 2] and all(
        0 < row["in_flight_mean"] <= row["readers"] for row in rows
    )
    assert {check["name"] for check in findings(outcome)} >= {TOGETHER, "page_cache", "content"}


def test_whole_files_go_on_without_a_host_that_is_lost(tmp_path: Path) -> None:
    with Hosts("local:2") as hosts:
        plan = _files(hosts, tmp_path)
        processes = hosts._cluster.client.run(os.getpid)
        os.kill(processes[hosts.hosts[0].address], signal.SIGKILL)
        lost, left = (host.name for host in hosts.hosts)
        outcome = measure_whole_files(plan, progress=Silent(), stop=StopFlag(), hosts=hosts)
    assert outcome.turns.status == "failed" and f"host {lost}" in str(outcome.turns.failure)
    assert outcome.written is not None and outcome.written.fill is not None and outcome.written.fill.files == 20
    for result in outcome.results:
        assert [host["name"] for host in result.facts["hosts"]] == [left]


def test_what_a_host_refuses_is_said_of_that_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Hosts("local:2") as hosts:
        plan = _files(hosts, tmp_path)
        small = plan.cell.model_copy(update={"block_bytes": 7})
        with pytest.raises(CellFailedError, match=r"^block_bytes: on \d+: 7 must be a multiple of 512"):
            hosts.files(small)
        hosts.open(_asked("null"), writes=False)
        request = json.loads(_request(1)) | {"targets": [_NULL, {**_NULL, "kind": "file", "path": "/no/such/place"}]}
        with pytest.raises(CellFailedError) as caught:
            hosts.run(json.dumps(request))
        assert caught.value.key == "targets[1]", "the only target of the second host"
        kinds = zip(hosts.hosts, ("made", "list"), strict=True)
        monkeypatch.setattr(hosts, "ask", lambda *_: list(kinds))
        with pytest.raises(InputError, match=r"PATH: 'box': is not the same on all hosts: directories on .*, files on"):
            hosts.open_files(["box"], MadeFiles(directories=[], sizes=FixedSize(kind="fixed", bytes=512), count=1))

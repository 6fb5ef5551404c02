"""Sweeps on a Dask cluster: the same bytes as on one machine, whoever dies; refused before anything begins."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conftest import SMALL_STUDY
from machines import cluster_of, namespaces
from raidlab.api import run_study
from raidlab.errors import CellLostError, InputError
from raidlab.results import load_run
from raidlab.run import dask
from raidlab.run.dask import Cluster, DaskRunner, work_of
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress

pytest.importorskip("distributed", reason="Dask is not installed (raidlab[dask])")

PATIENCE_S = 600


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL_STUDY, encoding="utf-8")
    return tmp_path / "small.toml"


@pytest.mark.slow
def test_a_local_cluster_gives_the_same_bytes(study: Path, tmp_path: Path) -> None:
    one = run_study(study, on=["sim"], out=tmp_path / "runs")
    many = run_study(study, on=["sim"], out=tmp_path / "runs", cluster="local:2")
    assert one.facts["tables"] == many.facts["tables"] and many.facts["status"] == "complete"


@pytest.mark.slow
@pytest.mark.parametrize("is_apart", [False, True], ids=["loopback", "namespaces"])
def test_processes_of_which_one_is_killed_again_and_again_give_the_same_bytes(
    study: Path, tmp_path: Path, is_apart: bool
) -> None:
    with ExitStack() as held:
        machines = held.enter_context(namespaces(3)) if is_apart else None
        study.write_text(SMALL_STUDY.replace("requests = 1500", "requests = 40000"), encoding="utf-8")
        one = run_study(study, on=["sim"], out=tmp_path / "runs")
        address, workers = held.enter_context(cluster_of(tmp_path, machines=machines))
        killing = _Killing(workers, every=10)
        many = run_study(study, on=["sim"], out=tmp_path / "runs", cluster=address, progress=killing)
    assert len(killing.killed) > 1
    assert one.facts["tables"] == many.facts["tables"] and many.facts["status"] == "complete"


@pytest.mark.slow
def test_an_interrupted_run_goes_on_on_a_cluster(study: Path, tmp_path: Path) -> None:
    study.write_text(SMALL_STUDY.replace("requests = 1500", "requests = 40000"), encoding="utf-8")
    one = run_study(study, on=["sim"], out=tmp_path / "one")
    words = [sys.executable, "-m", "raidlab", "run"]
    options: dict[str, Any] = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    cluster = ["--cluster", "local:2", "--no-cache"]
    command = [*words, str(study), "--on", "sim", *cluster]
    running = subprocess.Popen(command, **options, start_new_session=True)
    while not any(len(file.read_bytes().splitlines()) > 2 for file in tmp_path.glob("runs/*/parts.jsonl")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    # As a terminal does it: the workers hear it too.
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130 and "Traceback" not in said, said
    (folder,) = (tmp_path / "runs").iterdir()
    done = load_run(folder)
    assert done.facts["status"] == "interrupted" and 0 < done.cells.height < one.cells.height
    again = subprocess.run([*words, "--resume", "last", *cluster], **options, check=False, timeout=PATIENCE_S)
    assert again.returncode in (0, 3) and f"{done.cells.height} cells are done" in again.stderr, again.stderr
    assert load_run(folder).facts["tables"] == one.facts["tables"]


class _Killing(Progress):
    """Kills one worker or the other whenever so many cells are done, on a quick machine as on a slow one."""

    def __init__(self, workers: list[Any], every: int) -> None:
        self._workers, self._every = workers, every
        self._done, self.killed = 0, list[int]()

    def advance(self) -> None:
        self._done += 1
        if self._done % self._every == 1:
            victim = self._workers[len(self.killed) % len(self._workers)]
            victim.kill()
            self.killed.append(victim.pid)


def _deadly(requests: list[str], digest: str) -> dask.BatchAnswer:
    del digest
    if "kill" in "".join(requests):
        os.kill(os.getpid(), signal.SIGKILL)
    return dask.BatchAnswer([{"said": request} for request in requests], 0.01)  # type: ignore[misc]


@pytest.mark.slow
def test_a_cell_that_kills_its_workers_is_lost_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # As one that is sent by value: the workers have no tests to import.
    import cloudpickle
    from dask import config

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(dask, "run_batch", _deadly)
    monkeypatch.setattr(dask, "work_of", lambda _: 1.0)
    # Dask's bound is three; that many workers take a minute to start on a slow machine.
    with config.set({"distributed.scheduler.allowed-failures": 0}), Cluster("local:2") as cluster:
        runner = DaskRunner(cluster, StopFlag())
        for number in range(12):
            runner.submit(f"cell {number}", "kill" if number == 5 else "fine")
        found, lost = [], []
        while True:
            try:
                done = runner.next_done()
            except CellLostError as error:
                lost.append(error.cell)
                continue
            if done is None:
                break
            found.append(done[0])
        runner.close()
    # Without a failure allowed, what waits at the worker when the cell kills it is suspected too, and found innocent.
    assert lost == ["cell 5"]
    assert sorted(map(str, found)) == sorted(f"cell {n}" for n in range(12) if n != 5)


@pytest.mark.slow
def test_another_engine_is_refused_before_anything_begins(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster_of(tmp_path, workers=1) as (address, _):
        monkeypatch.setattr(dask, "engine_digest", _another_digest)
        # What is asked of workers is what they are asked by.
        monkeypatch.setattr(dask.Cluster, "_check_workers", _check_against_another)
        with pytest.raises(InputError, match="another version of raidlab's engine") as caught:
            run_study(study, on=["sim"], out=tmp_path / "runs", cluster=address)
    assert caught.value.exit_code == 2 and not (tmp_path / "runs").exists()


def _another_digest() -> str:
    return "0" * 64


_check = dask.Cluster._check_workers


def _check_against_another(cluster: Cluster) -> None:
    """The check as it is, of workers that answer with their own engine's digest."""
    from raidlab.run import cached

    run = cluster.client.run
    cluster.client.run = lambda _ask, **more: run(cached.engine_digest, **more)
    _check(cluster)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:1", "cannot be reached"),
        ("local:0", "is no number of processes"),
        ("local:many", "is no number of processes"),
        ("http://here", "is no address of a cluster"),
        ("", "is no address of a cluster"),
    ],
)
def test_what_is_no_cluster_is_refused(
    address: str, words: str, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_PATIENCE_S", 1.0)
    with pytest.raises(InputError, match=words):
        run_study(study, on=["sim"], out=tmp_path / "runs", cluster=address)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_cluster_without_workers_is_refused(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster_of(tmp_path, workers=0) as (address, _):
        time.sleep(1)
        monkeypatch.setattr(dask, "_PATIENCE_S", 60.0)
        with pytest.raises(InputError, match="has had no worker"):
            run_study(study, on=["sim"], out=tmp_path / "runs", cluster=address)


def test_a_cluster_of_this_machine_is_nobody_elses() -> None:
    from distributed import Client, Security

    with Cluster("local:1") as cluster:
        scheduler = cluster.client.scheduler.address
        assert scheduler.startswith("tls://127.0.0.1:")
        for address, security in (
            (scheduler.replace("tls:", "tcp:"), None),
            (scheduler, Security.temporary()),
        ):
            with pytest.raises(OSError, match=r"certificate|Connection|connect|closed"):
                Client(address, security=security, timeout=5)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_over_tls_only_who_has_a_certificate_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dask as dask_itself
    from distributed import Client, LocalCluster, Security

    monkeypatch.setattr(dask, "_PATIENCE_S", 10.0)
    for name in ("ours", "theirs"):
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
        words += ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        subprocess.run(words, check=True, capture_output=True)

    def settings(name: str) -> dict[str, str]:
        own = {"cert": str(tmp_path / f"{name}.pem"), "key": str(tmp_path / f"{name}.key")}
        roles = ("scheduler", "worker", "client")
        found = {f"tls_{role}_{part}": file for role in roles for part, file in own.items()}
        return {"tls_ca_file": str(tmp_path / "ours.pem"), **found}

    security = Security(require_encryption=True, **settings("ours"))
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None, security=security) as there:
        address = there.scheduler_address
        assert address.startswith("tls://")
        with pytest.raises(InputError, match="--cluster"):
            Cluster(address)
        # Collected while another client starts, it would wait for ever for the lock of that start.
        assert not [one for one in gc.get_objects() if type(one) is Client and one.status != "closed"]
        for name in ("theirs", "ours"):
            tls = {f"client.{part}": str(tmp_path / f"{name}.{end}") for part, end in (("cert", "pem"), ("key", "key"))}
            tls["ca-file"] = str(tmp_path / "ours.pem")
            with dask_itself.config.set({f"distributed.comm.tls.{key}": file for key, file in tls.items()}):
                if name == "ours":
                    Cluster(address).close()
                    continue
                with pytest.raises(InputError, match="--cluster"):
                    Cluster(address)


def test_what_is_not_modelled_or_keeps_rows_is_refused(study: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only modelled cells"):
        run_study(study, on=["memory"], out=tmp_path / "runs", cluster="local:1")
    with pytest.raises(InputError, match="rows of single requests"):
        run_study(study, on=["sim"], out=tmp_path / "runs", cluster="local:1", records=True)


def _request(requests: int, members: int) -> str:
    tree = {"kind": "stripe", "children": [{"kind": "member"}] * members}
    return json.dumps({"measure": {"requests": requests}, "members": [{}], "tree": tree})


class _Threads:
    threads = 2


def test_batches_are_long_enough_and_begin_with_the_longest() -> None:
    runner = DaskRunner(_Threads(), StopFlag())  # type: ignore[arg-type]
    for number in range(1000):
        runner.submit(number, _request(100 * (number + 1), 4))
    runner._work_per_s = 400_000.0
    first = runner._batch(4)
    assert [one.key for one in first[:3]] == [999, 998, 997]
    assert 1.0 <= sum(one.work for one in first) / 400_000.0 <= dask.BATCH_S + 1.0
    # Few that are left are shared out, rather than all given to one, unless they take no time worth the task.
    few = runner._waiting[:8]
    runner._waiting, runner._work_per_s = [*few], 4_000.0
    assert len(runner._batch(4)) == 2
    runner._waiting, runner._work_per_s = [*few], 400_000.0
    assert len(runner._batch(4)) == 8
    assert work_of(_request(100, 4)) == 400.0


def test_how_much_work_a_cell_is_thought_to_be_is_read_from_its_text(study: Path) -> None:
    from raidlab.run.request import cell_request
    from raidlab.study import expand, load_study

    loaded = load_study(study)
    for cell in expand(loaded.study, "sim", seed=1, quick=False).cells:
        model = loaded.geometry.device("sim", cell.array.name)
        request = cell_request(loaded, cell, members=[model.parameters], sector_bytes=model.sector_bytes, quick=False)
        asked = json.loads(request)
        requests = asked["warmup"]["requests"] + asked["measure"]["requests"]
        assert work_of(request) == requests * {"raid0": 4, "raid5": 5, "raid10": 8}[cell.array.name]


class _CountedThreads:
    """A cluster that counts how often it is asked how large it is."""

    asked = 0

    @property
    def threads(self) -> int:
        self.asked += 1
        return 2


def test_a_cluster_is_not_asked_for_its_size_with_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, clock = _CountedThreads(), iter(range(10_000))
    monkeypatch.setattr(dask.time, "monotonic", lambda: next(clock) / 1000)
    runner = DaskRunner(cluster, StopFlag())  # type: ignore[arg-type]
    monkeypatch.setattr(runner, "_submit", lambda batch: runner._done.extend((one.key, None) for one in batch))
    for number in range(5000):
        runner.submit(number, _request(100, 4))
    for _ in range(5000):
        assert runner.next_done() is not None
    # Five seconds by that clock.
    assert 1 <= cluster.asked <= 6

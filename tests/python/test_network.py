"""What hosts get together: each step with the hosts it names, a lost one told apart, nothing left behind."""

from __future__ import annotations

import json
import re
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from machines import cluster_of, wait_for_workers
from raidlab.measure import BudgetFlags, Drive, LoadFlags, MeasureRequest, WorkloadFlags, request_of_flags
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.runner import cell_answer, run_request

pytest.importorskip("distributed", reason="Dask is not installed (raidlab[dask])")

from raidlab.measure.hosts import Hosts
from raidlab.measure.merge import Part, merged
from raidlab.measure.network import HostsStep, StepAnswer, _rows, measure_network, steps_of
from raidlab.published.scorecard import load_network


def _asked(place: Path, repeats: int, runtime: str = "200ms") -> MeasureRequest:
    return request_of_flags(
        [str(place)],
        WorkloadFlags(rw="rw", size="64KiB"),
        LoadFlags(depth="2"),
        BudgetFlags(runtime=runtime, warmup="50ms", repeats=repeats),
        Drive(),
        file_size="4MiB",
    )


def _answer(host: str, leaf: int, read: float) -> Part:
    request = {
        "engine": "direct",
        "seed": 1,
        "targets": [{"kind": "null", "size_bytes": 1 << 20}],
        "load": {"kind": "closed", "depth": 2},
        "measure": {"requests": 300 * (1 + leaf)},
        "workload": {"read": read, "size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}},
    }
    begun_ns = 1_000 + 2_000_000 * leaf
    return Part(host, cell_answer(run_request(json.dumps(request))), begun_ns, leaf, begun_ns)


def test_rows_tell_readers_from_writers_and_a_lost_host_from_the_rest() -> None:
    step, reads = HostsStep("2 read while 1 write", 2, 1), {"a": 1.0, "b": 1.0, "c": 0.0}
    parts = [_answer(name, leaf, reads[name]) for leaf, name in enumerate(reads)]
    whole, cut = StepAnswer(reads, merged(parts, 1, 3)), StepAnswer(reads, merged(parts[:2], 1, 3))
    rows = _rows(step, [whole, cut], {"a": 0, "b": 1, "c": 2})
    assert [(row.test, row.work, row.machines) for row in rows] == [
        ("2 read while 1 write", "read", 2),
        ("2 read while 1 write", "write", 1),
        ("2 read while 1 write, one lost", "read", 2),
    ]
    elapsed_s = whole.answer["elapsed_ns"] / 1e9
    assert rows[0].total_mb_s == pytest.approx(900 * 4096 / 1e6 / elapsed_s)
    assert rows[0].fastest_mb_s == pytest.approx(2 * rows[0].slowest_mb_s)
    assert rows[0].total_mb_s == pytest.approx(rows[0].slowest_mb_s + rows[0].fastest_mb_s)
    assert rows[0].apart_ms == pytest.approx(4) and rows[0].low is None and rows[0].repeats == 1


def test_some_read_while_others_write_where_there_are_enough() -> None:
    assert [step.test for step in steps_of(2)] == ["1 write", "2 write", "1 read", "2 read"]
    assert steps_of(5)[-1] == ("2 read while 2 write", 2, 2)


@pytest.mark.slow
def test_hosts_write_and_read_together_and_leave_nothing(tmp_path: Path) -> None:
    place = tmp_path / "box"
    place.mkdir()
    with Hosts("local:4") as hosts:
        hosts._lead_ns = 300_000_000
        # Longer than a machine stalls: a host that is held up for a moment has moved something in the common interval.
        outcome = measure_network(_asked(place, 2, "1.5s"), hosts, progress=Silent(), stop=StopFlag())
    assert (outcome.status, outcome.failure) == ("complete", None)
    done = [(row.test, row.work, row.machines) for row in outcome.rows]
    assert done == [
        *((f"{count} {work}", work, count) for work in ("write", "read") for count in (1, 2, 3, 4)),
        ("2 read while 2 write", "read", 2),
        ("2 read while 2 write", "write", 2),
    ]
    assert all(0 < row.slowest_mb_s <= row.fastest_mb_s for row in outcome.rows)
    assert all(row.low is not None and row.high is not None for row in outcome.rows)
    assert {check["name"] for check in outcome.checks} >= {"together"}
    assert list(place.iterdir()) == []


class _KillsAfterFour(Progress):
    """Kills a worker in the fifth step."""

    def __init__(self, worker: Any) -> None:
        self._left, self._worker = 4, worker

    def advance(self) -> None:
        self._left -= 1
        if self._left == 0:
            threading.Timer(0.5, self._worker.kill).start()


@pytest.mark.slow
def test_a_host_that_is_killed_is_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    place = tmp_path / "box"
    place.mkdir()
    with ExitStack() as held:
        address, workers = held.enter_context(cluster_of(tmp_path, workers=2, replaced=False, named=True))
        wait_for_workers(address, 2)
        hosts = held.enter_context(Hosts(address))
        # A round of four, in which nothing happens, and more.
        outcome = measure_network(_asked(place, 3), hosts, progress=_KillsAfterFour(workers[1]), stop=StopFlag())
    assert outcome.status == "failed"
    assert re.fullmatch(r"host host-1 \(tcp://.*\) is lost", outcome.failure or "")
    rows = {row.test: row for row in outcome.rows}
    assert {test: rows[test].machines for test in ("1 write", "2 write", "1 read", "2 read")} == {
        "1 write": 1,
        "2 write": 2,
        "1 read": 1,
        "2 read": 2,
    }
    # One host is enough for these: they are run to the last.
    assert rows["1 write"].low is not None and rows["1 read"].low is not None
    assert all(row.machines == 1 for test, row in rows.items() if test.endswith("one lost"))


def test_a_sheet_takes_what_was_printed(tmp_path: Path) -> None:
    from raidlab.cli.measure.network import _json
    from raidlab.measure.network import NetworkOutcome

    step, reads = HostsStep("1 write", 0, 1), {"a": 0.0}
    rows = _rows(step, [StepAnswer(reads, merged([_answer("a", 0, 0.0)], 1, 1))], {"a": 0})

    class Nobody:
        hosts = ()

    file = tmp_path / "net.json"
    text = _json(NetworkOutcome(rows, [], "complete", None), Nobody())  # type: ignore[arg-type]
    file.write_text(text, encoding="utf-8")
    box, read = load_network(f"box={file}")
    assert box == "box" and (read[0]["test"], read[0]["work"]) == ("1 write", "write")
    assert read[0]["total_mb_s"] == rows[0].total_mb_s

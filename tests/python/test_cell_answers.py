"""The one shape of answers is that of every engine: no key more, and none missing, down to the last table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from typing_extensions import is_typeddict

from raidlab import _core
from raidlab.histogram import Histogram
from raidlab.results.answer import CellAnswer, times_of_all
from raidlab.results.tables import TIMES
from raidlab.run.execute import Execution
from raidlab.run.targets import resolve_targets
from raidlab.study import load_study_text

MEMBER = {"kind": "independent", "children": [{"kind": "member"}]}
WORKLOAD = {"read": 0.5, "size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}}
DISK = {"kind": "fixed", "capacity_bytes": 2**24, "read_us": 100.0, "write_us": 100.0}
MEMORY = {"kind": "memory", "size_bytes": 2**22}


def _wrong(value: Any, annotation: Any, where: str) -> Iterator[str]:
    """What of a value is not as a type says it."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(annotation):
            return
        mine = [one for one in get_args(annotation) if one is not NoneType]
        found = [list(_wrong(value, one, where)) for one in mine]
        yield from [] if any(not one for one in found) else found[0]
    elif is_typeddict(annotation):
        yield from _wrong_table(value, annotation, where)
    elif origin is list:
        for number, one in enumerate(value):
            yield from _wrong(one, get_args(annotation)[0], f"{where}[{number}]")
    elif origin is Literal:
        yield from [] if value in get_args(annotation) else [f"{where}: {value!r}"]
    elif origin is np.ndarray:
        yield from [] if isinstance(value, np.ndarray) and value.dtype == np.uint64 else [f"{where}: {type(value)}"]
    elif annotation is float:
        yield from [] if isinstance(value, (int, float)) else [f"{where}: {value!r}"]
    elif annotation in (int, str, bool):
        yield from [] if type(value) is annotation else [f"{where}: {value!r}"]


def _wrong_table(value: Any, table: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: {value!r}"
        return
    hints = get_type_hints(table, include_extras=True)
    yield from (f"{where}.{key} is not in the shape" for key in value.keys() - hints.keys())
    needed = {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}
    yield from (f"{where}.{key} is missing" for key in sorted(needed - value.keys()))
    for key in value.keys() & hints.keys():
        hint = hints[key]
        yield from _wrong(value[key], get_args(hint)[0] if get_origin(hint) is NotRequired else hint, f"{where}.{key}")


def _sim(**changes: Any) -> dict[str, Any]:
    load = {"kind": "closed", "depth": 4}
    cell = {"engine": "sim", "seed": 1, "tree": MEMBER, "members": [DISK], "load": load, "workload": WORKLOAD}
    return {**cell, "warmup": {"requests": 10}, "measure": {"requests": 200}, **changes}


PATH = {"station": [{"name": "bus"}], "member_path": [{"station": "bus", "phase": "data", "mb_s": 100.0}]}
STREAM = {"name": "out", "source": {"kind": "array"}, "sink": {"kind": "memory"}, "block_bytes": 65536, "bytes": 2**20}
CELLS = {
    "sim": _sim(path=PATH, host={"request": 1000}),
    "sim, tasks": _sim(workload={**WORKLOAD, "task": [{"op": "read"}, {"op": "write", "same_extent_as": 0}]}),
    "sim, open": _sim(load={"kind": "open", "arrival": {"kind": "poisson", "rate_per_s": 1000.0}}),
    "sim, held": _sim(
        load={"kind": "hold", "percentile": 90, "target": 1_000_000, "initial_depth": 1, "max_depth": 64},
        measure={"requests": 3000},
    ),
    "sim, files": _sim(files={"count": 20, "order": "shuffled"}),
    "sim, streams": _sim(streams=[STREAM], warmup={}, measure={"duration": 10**13}),
    "live": _sim(engine="live", members=[MEMORY]),
    "live, files": _sim(
        engine="live", members=[{**MEMORY, "size_bytes": 2**24}], files={"count": 20, "order": "shuffled"}
    ),
    "emulated": _sim(engine="live", members=[{"kind": "emulated", "device": DISK}], speed=10.0),
    "direct": {
        "engine": "direct",
        "seed": 1,
        "targets": [MEMORY],
        "load": {"kind": "closed", "depth": 4},
        "workload": WORKLOAD,
        "measure": {"requests": 200},
    },
}


@pytest.mark.parametrize("name", CELLS)
def test_every_engine_answers_in_the_one_shape(name: str) -> None:
    answer = _core.run_cell(json.dumps(CELLS[name]))
    assert answer["all"]["requests"] > 0
    assert not list(_wrong(answer, CellAnswer, name))


@pytest.mark.parametrize("name", ["sim", "sim, tasks", "sim, open", "sim, files", "live", "direct"])
def test_no_time_is_told_twice_and_none_is_left_out(name: str) -> None:
    answer = _core.run_cell(json.dumps(CELLS[name]))
    of_all, both = answer["all"], (answer["read"], answer["write"])
    for key in ("requests", "bytes", "failed"):
        assert of_all[key] == sum(one[key] for one in both)
    for time in TIMES:
        times = times_of_all(answer, time)
        assert times.total == of_all["requests"] > 0
        summed_ns = sum(one["requests"] * one[f"{time}_mean_ns"] for one in both)
        assert of_all[f"{time}_mean_ns"] == pytest.approx(summed_ns / of_all["requests"], rel=1e-12)
        # The histogram's resolution is three digits.
        assert float(times.value_ns @ times.count) / times.total == pytest.approx(of_all[f"{time}_mean_ns"], rel=1e-3)
    assert ("task" in answer) == (name == "sim, tasks") and answer["tasks"] > 0
    if "task" in answer:
        assert Histogram.of(answer["task"]["response"]).total == answer["tasks"] < of_all["requests"]


def test_an_answer_of_another_shape_is_found() -> None:
    answer = _core.run_cell(json.dumps(CELLS["sim"]))
    assert list(_wrong({**answer, "more": 1}, CellAnswer, "a")) == ["a.more is not in the shape"]
    del answer["read"]
    answer["members"][0]["reads"] = 0.5
    assert sorted(_wrong(answer, CellAnswer, "a")) == ["a.members[0].reads: 0.5", "a.read is missing"]


def test_what_is_made_of_other_answers_has_it_too(tmp_path: Path) -> None:
    # Streams on real members, and whole files in directories: engines with answers in words of their own.
    text = """
name = "others"
title = "Others"
load = { depths = [1] }
array = [{ name = "box", tree = "concat(1)" }, { name = "there", tree = "mounted" }]
live = { member_size = "8MiB", memory_member_size = "8MiB", repeats = 1, measure = { requests = 40 } }
[[workload]]
name = "copy"
read = 0.0
size = "256KiB"
streams = [{ name = "write", source = "memory", sink = "array", bytes = "2MiB" }]
arrays = ["box"]
[[workload]]
name = "files"
read = 1.0
size = "16KiB"
files = { count = 20 }
arrays = ["there"]
"""
    found = {}
    for on in ("memory", f"{tmp_path}/"):
        execution = Execution(load_study_text(text, tmp_path / "others.toml"), resolve_targets([on]), seed=1)
        execution.prepare()
        for outcome in execution.outcomes():
            found[outcome.cell.workload.name] = outcome.answer  # type: ignore[union-attr]
    assert found.keys() == {"copy", "files"}
    for name, answer in found.items():
        assert not list(_wrong(answer, CellAnswer, name))

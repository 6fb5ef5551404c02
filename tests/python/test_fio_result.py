"""fio's JSON results in raidlab's words."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.errors import InputError
from raidlab.formats.fio.result import FioResult, parse_result

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def direction(requests: int, bins: dict[str, int] | None = None) -> dict[str, Any]:
    times = {"mean": 2000.0, "percentile": {"50.000000": 1000, "99.000000": 9000}}
    return {
        "total_ios": requests,
        "io_bytes": requests * 4096,
        "runtime": 2000,
        "lat_ns": {**times, **({"bins": bins} if bins else {})},
        "clat_ns": {"mean": 1.0},
    }


def document(*jobs: dict[str, Any]) -> str:
    common = {"groupid": 0, "error": 0, "trim": direction(0), "usr_cpu": 10.0, "sys_cpu": 20.0, "ctx": 5}
    return json.dumps({"fio version": "fio-3.33", "jobs": [{**common, **job} for job in jobs]})


def test_counts_rates_and_times() -> None:
    result = parse_result(document({"jobname": "a", "read": direction(1000), "write": direction(0)}))
    (job,) = result.jobs
    assert (result.version, job.name, job.read.requests, job.write.requests) == ("fio-3.33", "a", 1000, 0)
    assert (job.read.iops, job.read.throughput_mb_s) == (500.0, 2.048)
    assert (job.read.percentile_ns(50), job.read.percentile_ns(99), job.read.percentile_ns(90)) == (1000, 9000, None)
    assert (job.read.service_mean_ns, job.user_cpu_percent, job.context_switches) == (2000.0, 10.0, 5)


def test_percentiles_of_several_are_taken_from_merged_histograms_only() -> None:
    fast, slow = direction(90, {"10": 90}), direction(10, {"500": 10})
    whole = parse_result(document({"jobname": "a", "read": fast, "write": slow})).all
    assert (whole.requests, whole.percentile_ns(90), whole.percentile_ns(91)) == (100, 10, 500)
    without = parse_result(document({"jobname": "a", "read": direction(90), "write": direction(10)})).all
    assert (without.requests, without.percentile_ns(50)) == (100, None)


def test_warnings_before_the_json_are_passed_over() -> None:
    text = "fio: this is a warning {\n" + document({"jobname": "a", "read": direction(1), "write": direction(0)})
    assert parse_result(text).jobs[0].read.requests == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "{",
        "{}",
        "[]",
        '{"fio version": "fio-2.1", "jobs": []}',
        '{"fio version": "fio-3.1", "jobs": [1]}',
    ],
)
def test_what_is_no_result_is_one_clear_error(text: str) -> None:
    with pytest.raises(InputError, match=r"out\.json: .*accepted: "):
        parse_result(text, "out.json")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["jobs", "read", "x"]), inner),
)


@given(anything=_JSON, cut=st.integers(0, 400))
def test_nothing_whatever_ends_in_a_traceback(anything: Any, cut: int) -> None:
    whole = document({"jobname": "a", "read": direction(1, {"10": 1}), "write": anything})
    for text in (json.dumps({"fio version": "fio-3.33", "jobs": anything}), whole, whole[:cut], "{" + whole[cut:]):
        try:
            assert isinstance(parse_result(text), FioResult)
        except InputError as error:
            assert str(error)


@needs_fio
def test_what_fio_itself_writes() -> None:
    words = "--ioengine=null --size=4m --bs=4k --rw=randrw --numjobs=2 --lat_percentiles=1 --output-format=json+"
    done = subprocess.run(["fio", "--name=j", *words.split()], capture_output=True, text=True, check=True)
    result = parse_result(done.stdout)
    assert [job.name for job in result.jobs] == ["j", "j"]
    assert result.all.requests == 2 * 1024
    assert result.all.bytes == 2 * 4 << 20
    assert result.all.service is not None
    assert result.all.service.total == result.all.requests

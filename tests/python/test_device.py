"""``raidlab device``: list, show, import, validate; and the demerit figure."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import disksim_files as files
from raidlab import _core
from raidlab.cli.app import app
from raidlab.devices import validate
from raidlab.errors import InputError
from raidlab.formats.disksim import read_trace
from raidlab.stats.demerit import demerit
from raidlab.study import load_study, study_names
from raidlab.study.device import load_device

FIXED = 'kind = "fixed"\ncapacity_bytes = 1048576\nread_us = 100\nwrite_us = 50\n'
FIGURE = """
[[published]]
name = "random reads"
value = 1500
unit = "IOPS"
source = "a leaflet"
read = 1.0
size = "4KiB"
address = "random"
depth = 4
"""


def command(*words: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["device", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def trace_of(device: dict[str, Any], count: int = 400) -> str:
    """A trace that this very model measured, from an angle of its own."""
    random = np.random.default_rng(5)
    capacity = int(_core.device_facts(json.dumps(device))["capacity_bytes"]) // 512
    sectors = random.integers(1, 9, count, dtype=np.uint64)
    lba = random.integers(0, capacity - 9, count, dtype=np.uint64)
    is_write = (random.random(count) < 0.3).astype(np.uint8)
    gap_ns = random.integers(0, 20_000_000, count, dtype=np.uint64) // np.uint64(1000) * np.uint64(1000)
    done = _core.device_replay(json.dumps(device), is_write, lba, sectors, gap_ns, 999)
    rows = zip(is_write, lba, sectors, done["response_ns"], gap_ns, strict=True)
    return "".join(f"{'W' if w else 'R'} Miss {a} {n} {ns / 1000:.3f} {gap // 1000}\n" for w, a, n, ns, gap in rows)


def test_the_demerit_by_hand() -> None:
    # Sorted, each of the model's is half a ms above.
    assert demerit([1.0, 2.0, 3.0], [3.5, 1.5, 2.5]) == pytest.approx(0.5)
    assert demerit([1.0, 2.0], [2.0, 1.0]) == 0
    # A quarter of the requests is 4 above, linear between the third and the last.
    assert demerit([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0]) == pytest.approx((16 / 3 / 3) ** 0.5, rel=1e-3)


@given(
    st.lists(st.floats(0, 100), min_size=2, max_size=40),
    st.lists(st.floats(0, 100), min_size=2, max_size=40),
    st.floats(-5, 5),
)
def test_the_demerit_is_a_distance(a: list[float], b: list[float], shift: float) -> None:
    assert demerit(a, a) == 0
    assert demerit(a, b) == pytest.approx(demerit(b, a))
    assert demerit(a, [value + shift for value in a]) == pytest.approx(abs(shift), abs=1e-9)
    assert demerit(a, b) >= abs(np.mean(np.quantile(a, 0.5) - np.quantile(b, 0.5))) * 0 - 1e-9


def test_a_model_that_measured_itself_has_no_demerit_but_the_floor(tmp_path: Path) -> None:
    from raidlab.formats.disksim import import_disk

    set_up = files.write(tmp_path)
    trace = tmp_path / "own.trace"
    trace.write_text(trace_of(import_disk(set_up).device), encoding="ascii")
    found = validate(str(set_up), str(trace), angles=5, seed=1)
    assert len(found.demerits_ms) == 5
    assert found.floor_ms is not None
    assert found.demerit_ms <= 2 * found.floor_ms + 0.05
    means = found.means_ms()
    assert means["all"] is not None
    assert means["all"][1] == pytest.approx(means["all"][0], rel=0.02)
    assert found.demerit_percent == pytest.approx(100 * found.demerit_ms / means["all"][0])
    # The same seed gives the same, another one other angles.
    assert validate(str(set_up), str(trace), angles=5, seed=1).demerits_ms == found.demerits_ms
    assert validate(str(set_up), str(trace), angles=5, seed=2).demerits_ms != found.demerits_ms


def test_validate_by_hand(tmp_path: Path) -> None:
    (tmp_path / "fixed.toml").write_text(FIXED, encoding="utf-8")
    trace = tmp_path / "t.trace"
    # Reads measured 100 us as modelled, writes 150 us in place of 50 us.
    trace.write_text("R Hit 0 8 100 0\nW Miss 8 8 150 10\n" * 50, encoding="ascii")
    status, out, _ = command("validate", tmp_path / "fixed.toml", "--trace", trace, "--json", "--out", tmp_path)
    assert status == 0
    result = json.loads(out)
    assert (result["requests"], result["angles"], result["seed"], result["floor_ms"]) == (100, 21, 0, 0)
    assert result["mean_ms"]["writes"] == pytest.approx({"measured": 0.15, "model": 0.05})
    # The faster half: 0.1 against 0.05; the slower: 0.15 against 0.1.
    assert result["demerit_ms"] == pytest.approx(0.05, rel=1e-3)
    assert result["demerit_percent"] == pytest.approx(40, rel=1e-3)
    assert sorted(Path(figure).suffix for figure in result["figures"]) == [".png", ".svg"]
    assert all(Path(figure).stat().st_size > 2000 for figure in result["figures"])
    status, out, _ = command("validate", tmp_path / "fixed.toml", "--trace", trace, "--out", tmp_path, "--angles", "1")
    assert "demerit 0.050 ms, 40.0 % of the measured mean" in " ".join(out.split())
    assert "floor" not in out


def test_traces_that_cannot_be_replayed(tmp_path: Path) -> None:
    device, trace = tmp_path / "d.toml", tmp_path / "t.trace"
    device.write_text(FIXED, encoding="utf-8")

    def refused(text: str, **options: int) -> str:
        trace.write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            validate(str(device), str(trace), **options)
        return str(caught.value).replace(f"{tmp_path}/", "")

    good = "R Hit 0 8 100 0\n"
    assert refused(good + "\nR Hit 2047 2 100 0\n").startswith("t.trace:3: lies outside the device")
    assert refused(good + "Q Hit 0 8 100 0\n").startswith(
        "t.trace:2: 'Q Hit 0 8 100 0': neither R nor W; accepted: R|W"
    )
    for wrong in (
        "R Hit 0 8 100",
        "R Hitt 0 8 100 0",
        "R Hit -1 8 1 0",
        "R Hit 0 0 1 0",
        "R Hit 0 8 x 0",
        "R Hit 0 8 nan 0",
    ):
        assert refused(wrong).startswith(f"t.trace:1: '{wrong}': "), wrong
    assert "holds no request" in refused("\n")
    assert "must be odd" in refused(good, angles=2)
    device.write_text(FIXED + "sector_bytes = 4096\n", encoding="utf-8")
    assert "4096 bytes" in refused(good)
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "lost.trace")


def test_import_writes_a_file_that_is_a_device(tmp_path: Path) -> None:
    set_up = files.write(tmp_path, spec=files.specs(Immediate_buffer_read="1"))
    status, out, err = command("import", set_up)
    assert status == 0
    assert "Immediate buffer read = 1" in err
    assert out.startswith("# not modelled: small.diskspecs:")
    target = tmp_path / "small.toml"
    status, nothing, err = command("import", set_up, "-o", target)
    assert (status, nothing, target.read_text(encoding="utf-8")) == (0, "", out)
    assert err.splitlines()[-1] == str(target)
    status, out, _ = command("show", target, "--json")
    shown = json.loads(out)
    assert (shown["title"], shown["capacity_bytes"]) == ("SMALL", files.SECTORS * 512)
    assert shown["parameters"]["zones"] == tomllib.loads(target.read_text(encoding="utf-8"))["zones"]
    status, out, _ = command("show", target)
    assert "2 entries" in out
    assert "published: small.parv of DiskSim" in " ".join(out.split())


def test_mistakes_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'hdd-7200'"):
        command("show", "hdd-720")
    with pytest.raises(InputError, match=r"--out: .*cannot be written"):
        command("import", files.write(tmp_path), "-o", tmp_path / "no" / "such.toml")
    with pytest.raises(InputError, match="cannot be read"):
        command("import", tmp_path / "lost.parv")
    (tmp_path / "bad.toml").write_text('kind = "hdd"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.toml: .* is missing"):
        command("show", tmp_path / "bad.toml")


def test_list_and_show_what_ships() -> None:
    listed = {device["name"]: device for device in json.loads(command("list", "--json")[1])}
    assert {"hdd-7200", "hdd-7200-bare", "ssd-sata", "ssd-nvme", "fixed-100us", "original/amdahl6380"} <= set(listed)
    assert listed["hdd-7200"]["kind"] == "hdd"
    out = command("list")[1]
    assert all(name in out for name in listed)
    for name in listed:
        status, out, _ = command("show", name)
        assert status == 0
        shown = json.loads(command("show", name, "--json")[1])
        # Every parameter's source is found.
        assert all(
            key in shown["provenance"] or key.split(".")[0] in shown["provenance"] for key in shown["parameters"]
        )
        assert " - " not in out.split("source")[1]
    assert "seek 8.36" in command("show", "hdd-7200")[1]


def test_a_model_is_held_to_what_was_published_of_it() -> None:
    status, out, _ = command("validate", "hdd-7200", "--json")
    assert status == 0
    figures = json.loads(out)["figures"]
    assert [figure["value"] for figure in figures] == [175, 83, 175, 83]
    assert all(abs(figure["error_percent"]) < 1 and figure["is_met"] for figure in figures)
    assert "175 MB/s" in command("validate", "hdd-7200")[1]


def test_a_model_that_misses_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    device = 'kind = "fixed"\ncapacity_bytes = 1073741824\nread_us = 1000.0\nwrite_us = 1000.0\n'
    file.write_text(device + FIGURE.replace("1500", "2000"), encoding="utf-8")
    status, out, _ = command("validate", file)
    assert "-50.0 % MISS" in out
    assert "source: a leaflet" in out
    assert (status, "Validation failed: 1 of 1 figures published beyond 'at most'." in out) == (3, True)
    status, out, _ = command("validate", file, "--json")
    assert (status, json.loads(out)["failures"]) == (3, ["1 of 1 figures published beyond 'at most'"])
    # A figure that no fit has held out is missed by no chance.
    file.write_text(device + FIGURE.replace("1500", "2000").replace("published", "held_out"), encoding="utf-8")
    assert command("validate", file)[0] == 3
    file.write_text(device + FIGURE.replace("1500", "1000"), encoding="utf-8")
    status, out, _ = command("validate", file)
    assert (status, "MISS" in out, "Validation" in out) == (0, False, False)


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("", "device", "has no [[published]] or [[held_out]] figures"),
        ("published = 3", "published", "is no list of tables"),
        ("published = [3]", "published[0]", "is not a table; accepted: a table of keys"),
        (FIGURE.replace('"a leaflet"', "3"), "published[0].source", "3: is not text; accepted: text in quotes"),
        (FIGURE.replace("depth", "dept"), "published[0].dept", "did you mean 'depth'?; accepted: address, at, depth"),
        (FIGURE.replace("4KiB", "4KiX"), "published[0].size", "'KiX' is not a unit of size; accepted: a size above 0"),
        (
            FIGURE.replace("4KiB", "600"),
            "published[0].size",
            "600: is no request to this device; accepted: whole sectors",
        ),
        (
            FIGURE + 'initial = "steady"',
            "published[0].initial",
            "'steady': is no state of this device; accepted: no such key",
        ),
        (FIGURE * 2, "published[1].name", "'random reads': stands twice; accepted: a name of its own each"),
    ],
)
def test_published_figures_that_make_no_sense(tmp_path: Path, text: str, where: str, said: str) -> None:
    file = tmp_path / "odd.toml"
    device = 'kind = "fixed"\ncapacity_bytes = 1073741824\nread_us = 1000.0\nwrite_us = 1000.0\n'
    file.write_text(device + text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        command("validate", file)
    if text:
        # What would not be on its page is not shown either.
        with pytest.raises(InputError):
            command("show", file)
    problem = next(one for one in caught.value.problems if one.where == where)
    assert said in str(problem)
    # In the file itself, at a line of its own table.
    assert where == "device" or (problem.file.endswith("odd.toml") and (problem.line or 0) > 4)


@pytest.mark.parametrize("name", ["cloud-gp3", "cloud-gp2"])
def test_volumes_of_clouds_give_what_their_buckets_let_through(name: str) -> None:
    figures = json.loads(command("validate", name, "--json")[1])["figures"]
    assert all(figure["is_met"] for figure in figures), figures


def test_a_burst_is_there_once(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    # Credits for half a second at 1,000 a second, then 100 a second: after the warm-up none are left.
    file.write_text(
        'like = "cloud-gp2"\nthrottle = [{ ops_s = 100, burst_ops = 500 }, { ops_s = 1000 }]\n'
        + FIGURE.replace("1500", "100").replace("depth = 4", "depth = 32"),
        encoding="utf-8",
    )
    assert "MISS" not in command("validate", file)[1]
    shown = json.loads(command("show", file, "--json")[1])
    assert [limit["ops_s"] for limit in shown["parameters"]["throttle"]] == [100, 1000]
    file.write_text('like = "cloud-gp3"\nthrottle = [{ ops = 3 }]\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"small\.toml:2: throttle\[0\]\.ops: unknown key; did you mean 'ops_s'"):
        command("show", file)
    file.write_text('like = "cloud-gp3"\nthrottle = [{ ops_s = 0 }]\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"small\.toml:2: throttle\[0\]\.ops_s: 0 must lie between"):
        command("show", file)


def test_every_mistake_in_published_figures_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "odd.toml"
    device = 'kind = "fixed"\ncapacity_bytes = 1073741824\nread_us = 1000.0\nwrite_us = 1000.0\n'
    wrong = FIGURE.replace("depth = 4", "depth = 0").replace('"IOPS"', '"ops"')
    file.write_text(device + wrong + FIGURE.replace("read = 1.0\n", ""), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        command("validate", file)
    assert {problem.where for problem in caught.value.problems} == {
        "published[0].depth",
        "published[0].unit",
        "published[1].read",
    }
    assert "raidlab-published-" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            FIXED.replace("1048576", '"1GB"'),
            ":2: capacity_bytes: '1GB': is not a whole number; accepted: a whole number",
        ),
        (FIXED.replace("1048576", "-1"), ":2: capacity_bytes: -1: is out of range; accepted: a whole number from 0 up"),
        (FIXED.replace("100", "'x'"), ":3: read_us: 'x': is not a number; accepted: a number"),
        (FIXED + "name = 3\n", ":5: name: 3: is not text; accepted: text in quotes"),
        (FIXED + "name = true\n", ":5: name: true: is not text; accepted: text in quotes"),
        (FIXED + 'name = "a\\u001bb"\n', r":5: name: 'a\x1bb': "),
        (FIXED.replace("read_us", "red_us"), ":3: red_us: unknown key; did you mean 'read_us'?; accepted: name"),
        (FIXED.replace("read_us = 100\n", ""), "read_us: is missing"),
        (FIXED.replace("fixed", "fixd"), ":1: kind: 'fixd': is no kind of device; accepted: hdd, ssd, fixed"),
        (FIXED.replace('kind = "fixed"', ""), "kind: is missing; accepted: hdd, ssd, fixed"),
        (FIXED + "scheduler = 'fcfs'\n", ":5: scheduler: 'fcfs': is not known here; accepted: fifo, sstf"),
        (
            FIXED + "scheduler = { aged_sptf = { percent = 2, age = 3 } }\n",
            ":5: scheduler.aged_sptf.age: unknown key; accepted: percent",
        ),
        (FIXED + "published = 3\n", ":5: published: 3: is no list of tables; accepted: [[published]] tables"),
        (FIXED + "[fit]\neror_percent = 3\n", ":6: fit.eror_percent: unknown key; did you mean 'error_percent'?"),
        (
            FIXED + "[fit]\nerror_percent = inf\n",
            ":6: fit.error_percent: inf: is not what a fit says; accepted: a finite number",
        ),
        (
            FIXED + "[fit]\nerror_percent = -3\n",
            ":6: fit.error_percent: -3: is not what a fit says; accepted: a finite number",
        ),
        (
            FIXED + "[fit]\nvalidation = 'good'\n",
            ":6: fit.validation: 'good': is not what a fit says; accepted: 'passed'",
        ),
    ],
)
def test_a_mistake_in_a_device_file_names_key_value_and_what_is_accepted(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "odd.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        command("show", file)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_what_is_no_device_file_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("root:x:0\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"words\.txt is not valid TOML"):
        command("show", tmp_path / "words.txt")
    with pytest.raises(InputError, match=r"cannot be read: .*directory"):
        command("show", tmp_path)
    with pytest.raises(InputError, match="there is no such device"):
        command("show", tmp_path / "lost.txt")


@pytest.mark.parametrize("name", study_names())
def test_streams_and_files_of_studies_are_simulated_on_disks_that_read_ahead(name: str) -> None:
    """On one that does not a stream loses a revolution between two requests, as on no disk sold."""
    study = load_study(name).study
    long = [work for work in study.workload if work.files or work.streams or work.address.kind == "sequential"]
    if study.sim is not None and any(work.on is None or "sim" in work.on for work in long):
        device: dict[str, Any] = load_device(study.sim.device, load_study(name).file).parameters
        assert device["kind"] == "ssd" or "none" not in (device["buffer"]["read_ahead"], device["buffer"]["write_back"])

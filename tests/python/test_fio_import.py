"""fio job files: what is read, what it comes to, and what is refused with its line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raidlab.errors import InputError, RefusedError
from raidlab.formats.fio import values
from raidlab.formats.fio.cells import Import, ImportSettings, Lane, import_jobs
from raidlab.formats.fio.options import ALIASES, HONOURED, QUIET, load_job_file
from raidlab.formats.fio.places import BLOCK, FILE, MISSING, FileStatus
from raidlab.study.cell import DirectCell

MIB = 1 << 20
THERE = {
    "/dev/one": FileStatus(BLOCK, 64 * MIB),
    "/dev/two": FileStatus(BLOCK, 64 * MIB),
    "old": FileStatus(FILE, 8 * MIB),
    "./old": FileStatus(FILE, 8 * MIB),
}


def look(path: str) -> FileStatus:
    return THERE.get(path, FileStatus(MISSING))


def imported(tmp_path: Path, text: str, **settings: Any) -> Import:
    file = tmp_path / "job.fio"
    file.write_text(text, encoding="utf-8")
    return import_jobs(load_job_file(file, environment={"SIZE": "1m"}), ImportSettings(**settings), look)


def lane(tmp_path: Path, options: str, **settings: Any) -> Lane:
    """The only lane of a job with these options."""
    result = imported(tmp_path, "[j]\n" + options.replace(" ", "\n"), **settings)
    assert [len(group) for group in result.groups] == [1]
    return result.groups[0][0]


def said(found: Lane) -> dict[str, Any]:
    """The cell of a lane as it crosses to the engine."""
    return found.cell.model_dump(exclude_none=True)


def mistakes(tmp_path: Path, text: str, **settings: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, text, **settings)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def test_sizes_follow_fios_two_bases() -> None:
    assert [values.size(text) for text in ("4096", "4096b", "4k", "4K", "4kb", "4ki", "4kib", "1g")] == [
        4096, 4096, 4096, 4096, 4096, 4096, 4000, 1 << 30,
    ]  # fmt: skip
    assert [values.size(text, 1000) for text in ("4k", "4kb", "4ki", "4kib", "1MiB")] == [4000, 4000, 4000, 4096, MIB]
    for wrong in ("", "-4k", "1.5m", "4kx", "4ib", "k", "1_0", "9" * 30, "0xg"):
        with pytest.raises(ValueError, match=r"\w"):
            values.size(wrong)


def test_a_job_in_the_words_of_a_cell(tmp_path: Path) -> None:
    text = (
        "rw=randrw rwmixread=70 bs=8k size=4m iodepth=16 ioengine=io_uring direct=1 runtime=10 time_based ramp_time=2s"
    )
    found = lane(tmp_path, text + " norandommap randseed=7 numjobs=2 filename=new refill_buffers")
    wanted = {
        "engine": "direct",
        "seed": 7,
        "targets": [{"kind": "file", "path": "new", "size_bytes": 4 * MIB}],
        "workers": 2,
        "interface": "auto",
        "buffered": False,
        "compressible_percent": 0,
        "destroy": [],
        "load": {"kind": "closed", "depth": 32},
        "workload": {
            "read": 0.7,
            "size": {"kind": "fixed", "bytes": 8192},
            "address": {"kind": "uniform"},
            "align": 8192,
        },
        "warmup": {"duration": 2_000_000_000},
        "measure": {"duration": 10_000_000_000},
    }
    assert found.cell == DirectCell.model_validate(wanted)


def test_a_job_that_says_nothing_has_fios_defaults(tmp_path: Path) -> None:
    cell = said(lane(tmp_path, "size=1m"))
    assert cell["workload"]["read"] == 1.0
    assert cell["workload"]["size"] == {"kind": "fixed", "bytes": 4096}
    assert cell["workload"]["address"]["kind"] == "sequential"
    assert (cell["load"], cell["buffered"], cell["measure"]) == (
        {"kind": "closed", "depth": 1},
        True,
        {"requests": 256},
    )


def test_waiting_engines_have_a_depth_of_one_whatever_iodepth_says(tmp_path: Path) -> None:
    result = imported(tmp_path, "[j]\nioengine=psync\niodepth=32\nsize=1m\n")
    assert said(result.groups[0][0])["load"] == {"kind": "closed", "depth": 1}
    assert any("iodepth=32" in note and "the depth is 1" in note for note in result.notes)


def test_globals_hold_below_them_and_the_later_counts(tmp_path: Path) -> None:
    text = "[global]\nsize=1m\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=4k\nstonewall\n"
    groups = imported(tmp_path, text).groups
    assert [[found.job.title for found in group] for group in groups] == [["a", "b"], ["c"]]
    assert [said(found)["workload"]["size"]["bytes"] for group in groups for found in group] == [8192, 16384, 4096]


def test_comments_variables_and_included_files(tmp_path: Path) -> None:
    (tmp_path / "more.fio").write_text("bs=2k ; half\ninclude deep.fio\n", encoding="utf-8")
    (tmp_path / "deep.fio").write_text("# nothing\niodepth=$ncpus\nioengine=libaio\ndirect=1\n", encoding="utf-8")
    text = "; first\n[j] # a job\nsize=${SIZE}\n  include more.fio\n"
    cell = said(imported(tmp_path, text).groups[0][0])
    assert cell["targets"][0]["size_bytes"] == MIB
    assert cell["workload"]["size"]["bytes"] == 2048
    assert cell["load"]["depth"] == os.sysconf("SC_NPROCESSORS_ONLN")


@pytest.mark.parametrize(
    ("options", "size", "align"),
    [
        ("bs=4k,8k rw=randread", {"kind": "fixed", "bytes": 4096}, 4096),
        ("bs=4k,8k rw=randwrite", {"kind": "fixed", "bytes": 8192}, 8192),
        ("bs=,8k rw=randread", {"kind": "fixed", "bytes": 4096}, 4096),
        ("bsrange=4k-4k rw=randread", {"kind": "fixed", "bytes": 4096}, 4096),
        ("bs=4k blockalign=16k rw=randread", {"kind": "fixed", "bytes": 4096}, 16384),
        (
            "bssplit=4k/10:64k/50:32k/40 rw=randread",
            {"kind": "table", "bytes": [4096, 65536, 32768], "weights": [10.0, 50.0, 40.0]},
            4096,
        ),
        (
            "bssplit=4k:8k/50:64k,8k/100 rw=randread",
            {"kind": "table", "bytes": [4096, 8192, 65536], "weights": [25.0, 50.0, 25.0]},
            4096,
        ),
    ],
)
def test_sizes_of_requests(tmp_path: Path, options: str, size: dict[str, Any], align: int) -> None:
    workload = said(lane(tmp_path, f"size=1m {options}"))["workload"]
    assert workload["size"] == size
    assert (workload["address"], workload["align"]) == ({"kind": "uniform"}, align)


def test_how_requests_are_handed_over(tmp_path: Path) -> None:
    words = "size=1m cpus_allowed=0,2-3 hipri iodepth_batch=8 iodepth_batch_complete_max=8 iodepth_batch_complete=0"
    cell = said(lane(tmp_path, words))
    wanted = {"cpus": [0, 2, 3], "poll_completions": True, "batch": 8, "busy": True}
    assert {key: cell[key] for key in wanted} == wanted


def test_places(tmp_path: Path) -> None:
    zipf = said(lane(tmp_path, "size=1m rw=randread random_distribution=zipf:0.9"))["workload"]["address"]
    assert zipf == {"kind": "zipf", "theta": 0.9}
    anew = said(lane(tmp_path, "size=1m rw=randread percentage_random=25"))["workload"]["address"]
    assert anew == {"kind": "mixed", "sequential": 0.75, "local": 0.0, "alike": False}
    gaps = said(lane(tmp_path, "size=1m rw=write:12k"))["workload"]
    assert (gaps["address"], gaps["align"]) == ({"kind": "strided", "stride": 16384}, 512)


@pytest.mark.parametrize(
    ("options", "load"),
    [
        ("rate_iops=1000", {"kind": "uniform", "rate_per_s": 1000.0}),
        ("rate=4m bs=8k", {"kind": "uniform", "rate_per_s": 512.0}),
        ("rate_iops=50 rate_process=poisson io_submit_mode=offload", {"kind": "poisson", "rate_per_s": 50.0}),
        # fio takes the smallest size for the measure of rate_iops.
        ("rate_iops=1000 rw=randread bssplit=4k/50:12k/50", {"kind": "uniform", "rate_per_s": 500.0}),
        ("rate_iops=300,100 rw=randrw rwmixread=75", {"kind": "uniform", "rate_per_s": 400.0}),
    ],
)
def test_paced_jobs_are_open_loops(tmp_path: Path, options: str, load: dict[str, Any]) -> None:
    cell = said(lane(tmp_path, f"size=1m ioengine=libaio iodepth=8 {options}"))
    assert cell["load"] == {"kind": "open", "arrival": load, "max_in_flight": 8}


@pytest.mark.parametrize(
    ("options", "measure"),
    [
        ("size=1m", {"requests": 256}),
        ("size=1m loops=3 numjobs=2", {"requests": 1536}),
        ("size=1m io_size=2m", {"requests": 512}),
        ("size=1m runtime=5m", {"requests": 256, "duration": 300_000_000_000}),
        ("size=1m runtime=50ms time_based", {"duration": 50_000_000}),
        ("size=1m time_based=1", {"requests": 256}),
    ],
)
def test_how_long_a_job_runs(tmp_path: Path, options: str, measure: dict[str, Any]) -> None:
    assert said(lane(tmp_path, options))["measure"] == measure


def test_what_a_user_cuts_short(tmp_path: Path) -> None:
    found = lane(tmp_path, "size=1g runtime=900 time_based ramp_time=60", most_bytes=MIB, most_ns=10**9)
    assert said(found)["targets"][0]["size_bytes"] == MIB
    assert (said(found)["measure"], said(found)["warmup"]) == ({"duration": 1_000_000_000}, {"duration": 1_000_000_000})


def test_the_part_of_a_file_that_is_used(tmp_path: Path) -> None:
    def part(options: str) -> tuple[int, int]:
        cell = said(lane(tmp_path, options))
        span = (cell["spans"] or [{"offset_bytes": 0, **cell["targets"][0]}])[0]
        return span["offset_bytes"], span["size_bytes"]

    assert part("filename=old") == (0, 8 * MIB)
    assert part("filename=old size=25%") == (0, 2 * MIB)
    assert part("filename=old offset=2m") == (2 * MIB, 6 * MIB)
    assert part("filename=old offset=50% size=1m") == (4 * MIB, MIB)
    assert part("filename=/dev/one") == (0, 64 * MIB)
    assert part("filename=new:newer size=4m") == (0, 2 * MIB)


def test_files_of_clones_and_directories(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    own = said(lane(tmp_path, f"size=1m numjobs=3 rw=randread directory={tmp_path}/a:{tmp_path}/b"))
    assert [Path(target["path"]).relative_to(tmp_path) for target in own["targets"]] == [
        Path("a/j.0.0"),
        Path("b/j.1.0"),
        Path("a/j.2.0"),
    ]
    assert own["workload"]["volumes"] == "even"
    elsewhere = said(lane(tmp_path, "size=1m directory=/nowhere filename=f", directory=str(tmp_path)))
    assert elsewhere["targets"][0]["path"] == str(tmp_path / "f")


def test_clones_that_each_read_one_file_in_order_are_lanes_of_their_own(tmp_path: Path) -> None:
    (group,) = imported(tmp_path, "[j]\nfilename=old\nnumjobs=3\nrw=read\n").groups
    assert [said(found)["workers"] for found in group] == [1, 1, 1]
    assert len({said(found)["seed"] for found in group}) == 3
    # Only one run may write a file: there each worker has a part of it, and a note says so.
    writers = imported(tmp_path, "[j]\nfilename=new\nsize=1m\nnumjobs=3\nrw=write\n")
    assert [said(found)["workers"] for found in writers.groups[0]] == [3]
    assert any("numjobs=3" in note for note in writers.notes)


def test_clones_with_adjoining_parts_are_workers_that_divide_them(tmp_path: Path) -> None:
    found = lane(tmp_path, "filename=new size=1m offset=2m offset_increment=1m numjobs=4 rw=write")
    assert said(found)["spans"] == [{"offset_bytes": 2 * MIB, "size_bytes": 4 * MIB}]
    assert (said(found)["workers"], said(found)["measure"]) == (4, {"requests": 1024})
    (mistake,) = mistakes(tmp_path, "[j]\nfilename=new\nsize=1m\noffset_increment=2m\nnumjobs=2\n")
    assert mistake.startswith("job.fio:4: 'offset_increment=2m': ")


def test_one_worker_holds_a_percentile_for_all_clones(tmp_path: Path) -> None:
    words = "filename=new size=1m numjobs=2 rw=randread ioengine=libaio iodepth=8 latency_target=500"
    cell = said(lane(tmp_path, f"{words} latency_percentile=90"))
    hold = {"kind": "hold", "percentile": 90.0, "target": 500_000, "initial_depth": 2, "max_depth": 16}
    assert (cell["workers"], cell["load"]) == (1, hold)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[j]\nsize=1m\nverify=crc32c\n", "job.fio:3: 'verify=crc32c': raidlab checks content"),
        ("[j]\nsize=1m\nrw=randtrim\n", "job.fio:3: 'rw=randtrim': raidlab trims nothing; accepted: read, write"),
        ("[j]\nsize=1m\nrw=read:-8k\n", "job.fio:3: 'rw=read:-8k': raidlab goes forward only"),
        ("[j]\nsize=1m\nbsz=4k\n", "job.fio:3: 'bsz=4k': is not among the options"),
        ("[j]\nsize=1m\niodepht=4\n", "did you mean 'iodepth'?"),
        ("[j]\nsize=1.5m\n", "job.fio:2: 'size=1.5m': is not a size as fio reads one; accepted:"),
        ("[j]\nsize=1m\nruntime=10sec\n", "job.fio:3: 'runtime=10sec': 'sec' is not a unit of time"),
        ("[j]\nsize=1m\ndirect\n", "job.fio:3: 'direct': needs a value; accepted: 0 or 1"),
        ("[j]\nsize=1m\nioengine=rbd\n", "job.fio:3: 'ioengine=rbd': raidlab has no such I/O engine"),
        ("[j]\nsize=1m\nbs=(4*1024)\n", "job.fio:3: 'bs=(4*1024)': raidlab does no arithmetic"),
        ("[j]\nsize=1m\nrandom_distribution=pareto:0.2\n", "raidlab does not draw from 'pareto'"),
        (
            "[j]\nsize=1m\nrw=randread\nrandom_distribution=zipf:0.9\npercentage_random=5\n",
            "goes on from uniformly drawn places only",
        ),
        ("[j]\nsize=1m\nbs=4k,8k\nrw=randrw\n", "job.fio:3: 'bs=4k,8k': reads and writes of one job"),
        ("[j]\nsize=1m\nrate_iops=100,\nrw=randrw\n", "job.fio:3: 'rate_iops=100,': reads and writes of one job"),
        ("[j]\nsize=1m\nrate_iops=100\nrw=randrw\nrwmixread=80\n", "these rates make 50% of the requests reads"),
        ("[j]\nsize=1m\nrate=1m\nrate_iops=5\n", "fio takes either rate or rate_iops"),
        ("[j]\nrw=read\n", "job.fio:1: [j]: j.0.0 is not there, so its size must be said"),
        ("[j]\nsize=1m\nbs=2m\n", "job.fio:2: 'size=1m': a request is longer than the part"),
        ("[j]\nsize=1m\nbs=1000\n", "job.fio:3: 'bs=1000': 1000 bytes are not whole sectors of 512"),
        ("[j]\nsize=1m\nbssplit=4k/50:8k/20\n", "its percentages add up to 70, not to 100"),
        ("[j]\nsize=${NONE}\n", "job.fio:2: 'size=${NONE}': the environment has no NONE"),
        ("[j]\nsize=2*$mb_memory\n", "raidlab does no arithmetic with $mb_memory"),
        ("[j]\ninclude gone.fio\n", "job.fio:2: 'include gone.fio': there is no such file"),
        ("size=1m\n[j]\nsize=1m\n", "job.fio:1: 'size=1m': stands before the first section"),
        ("[j\nsize=1m\n", "job.fio:1: '[j': is not a section; accepted: [name]"),
        ("[global]\nsize=1m\n", "job.fio: has no job"),
        ("[j]\nfilename=/dev/one\nsize=1g\n", "job.fio:3: 'size=1g': /dev/one has only 67108864 bytes"),
        ("[j]\nsize=1m\nkb_base=1023\n", "job.fio:3: 'kb_base=1023': is no base of units; accepted: 1024 or 1000"),
        ("[j]\nsize=1m\ndirectory=/gone\n", "job.fio:3: 'directory=/gone': there is no directory /gone"),
        ("[j]\nsize=1m\ncpus_allowed=3-1\n", "job.fio:3: 'cpus_allowed=3-1': names no processors"),
        ("[j]\nsize=1m\niodepth_batch_complete_min=4\n", "raidlab waits for no more than one completion"),
        ("[j]\nsize=1m\nfilename=-\n", "raidlab reads and writes no standard input or output"),
    ],
)
def test_what_cannot_be_honoured_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in mistake for mistake in mistakes(tmp_path, text)), mistakes(tmp_path, text)


def test_a_mistake_in_an_included_file_is_named_there(tmp_path: Path) -> None:
    (tmp_path / "more.fio").write_text("\nverify=md5\n", encoding="utf-8")
    (mistake,) = mistakes(tmp_path, "[j]\nsize=1m\ninclude more.fio\n")
    assert mistake.startswith("more.fio:2: 'verify=md5':")


def test_files_that_include_one_another_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.fio").write_text("include b.fio\n", encoding="utf-8")
    (tmp_path / "b.fio").write_text("include a.fio\n", encoding="utf-8")
    assert any("include in one another" in mistake for mistake in mistakes(tmp_path, "[j]\nsize=1m\ninclude a.fio\n"))


def test_all_mistakes_are_told_and_each_once(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "[global]\nverify=md5\n[a]\nsize=1x\n[b]\nbs=0\nsize=1m\n")
    assert [mistake.split(":")[1] for mistake in found] == ["2", "4", "6"]


def test_jobs_at_once_on_one_file_that_one_writes_are_refused(tmp_path: Path) -> None:
    text = "[global]\nsize=1m\nfilename=new\n[a]\n[b]\nrw=write\n"
    (mistake,) = mistakes(tmp_path, text)
    assert "new is also used by [a] at the same time" in mistake
    assert len(imported(tmp_path, text + "stonewall\n").groups) == 2


def test_a_block_device_is_written_only_when_given_up(tmp_path: Path) -> None:
    text = "[j]\nfilename=/dev/one\nrw=randwrite\n"
    with pytest.raises(RefusedError, match=r"job.fio:2: .*/dev/one is a block device.*--destroy /dev/one"):
        imported(tmp_path, text)
    cell = said(imported(tmp_path, text, destroy=("/dev/one",)).groups[0][0])
    assert cell["destroy"] == ["/dev/one"]
    assert said(lane(tmp_path, "filename=/dev/one rw=randread"))["destroy"] == []


def test_what_is_only_fios_own_is_noted(tmp_path: Path) -> None:
    notes = imported(tmp_path, "[j]\nsize=1m\ngroup_reporting\nwrite_bw_log\nthread\n").notes
    assert "group_reporting, write_bw_log, thread: about fio's own process and report, left out [j]" in notes


def test_no_option_is_in_two_classes() -> None:
    assert not (HONOURED.keys() | ALIASES.keys()) & QUIET
    assert not HONOURED.keys() & ALIASES.keys()
    assert set(ALIASES.values()) <= HONOURED.keys()


_NAMES = st.sampled_from([*HONOURED, *ALIASES, *sorted(QUIET), "verify", "include", "kb_base", "[x]", "[global]", ""])
_PIECES = st.sampled_from(
    ["4k", "1m", "50%", "1", "0", "-1", ":", ",", "/", "randrw", "read", "zipf", "libaio", "$ncpus"]
)
_VALUES = st.lists(_PIECES | st.text(max_size=4), max_size=5).map("".join)
_LINES = st.tuples(_NAMES, st.sampled_from(["=", "", " = ", "=="]), _VALUES).map("".join) | st.text(max_size=12)


@given(title=st.just("job") | st.text(max_size=5), lines=st.lists(_LINES, max_size=12))
def test_no_text_whatever_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, title: str, lines: list[str]
) -> None:
    text = f"[{title}]\n" + "\n".join(lines)
    file = tmp_path_factory.getbasetemp() / "any.fio"
    file.write_text(text, encoding="utf-8")
    try:
        result = import_jobs(load_job_file(file), ImportSettings())
    except (InputError, RefusedError) as error:
        assert str(error)
    else:
        assert all(said(found)["measure"] for group in result.groups for found in group)
        json.dumps([said(found) for group in result.groups for found in group], ensure_ascii=False).encode()


def test_a_file_that_is_no_text_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_bytes(b"[j]\nsize=1m\n\xff\n")
    with pytest.raises(InputError, match=r"job\.fio: is not text in UTF-8"):
        load_job_file(tmp_path / "job.fio")
    with pytest.raises(InputError, match="cannot be read"):
        load_job_file(tmp_path)


@given(value=st.text(max_size=12))
def test_no_size_is_read_but_whole_bytes(value: str) -> None:
    try:
        found = values.size(value)
    except ValueError:
        return
    assert isinstance(found, int)
    assert found >= 0


def test_includes_and_global_lines_are_counted_as_often_as_they_come_in(tmp_path: Path) -> None:
    (tmp_path / "other.inc").write_text("include other.inc\n" * 4)
    for text in ("[a]\nrw=read\ninclude other.inc\n", "[global]\n" + "rw=read\n" * 3000 + "[a]\n" * 5000):
        (told,) = mistakes(tmp_path, text)
        assert "is too long, with what it includes and what its global sections say to every job" in told


@pytest.mark.parametrize("option", ["bs=2305843009213693952", "bssplit=2e/100", "bssplit=2305843009213693952/100"])
def test_requests_of_more_than_an_exbibyte_are_refused(option: str, tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, f"[a]\nrw=randread\nsize=1m\nfilename=old\nioengine=libaio\n{option}\n")
    assert told.startswith("job.fio:6: ") and "accepted: " in told

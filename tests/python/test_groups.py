"""Groups of members: what --on says of them, how arrays lie over them; runs of so many requests; a second tool."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from raidlab import _core
from raidlab.analysis.checks import PASS, UNKNOWN, WARN, run_checks
from raidlab.api import analyse, resume_run, run_study
from raidlab.errors import InputError
from raidlab.published.quantities import KINDS, Source
from raidlab.report.figures import make_figures
from raidlab.results import Run
from raidlab.run.targets import resolve_targets
from raidlab.study import LoadedStudy, load_study
from raidlab.study.grouped import Group, arranged

STUDY = """
name = "grouped"
title = "Chains in arrays on interfaces"
seed = 1

[[array]]
name = "whole"
tree = "raid5(12, chunk=16KiB)"
of_group = 1
[[array]]
name = "halves"
tree = "independent(2*raid5(6, chunk=16KiB))"
placement = { array = [0, 0], interface = [0, 0] }
of_group = 2
load = { depths = [2] }
[[array]]
name = "two interfaces"
tree = "independent(2*raid5(12, chunk=16KiB))"
placement = { array = [0, 1], interface = [0, 1] }
of_group = 1
load = { depths = [2] }
[[array]]
name = "three of it"
tree = "raid5(3, chunk=16KiB)"
[[array]]
name = "two arrays"
tree = "independent(2*raid5(3, chunk=16KiB))"
placement = { array = [0, 1], interface = [0, 0] }

[[workload]]
name = "read 4096"
read = 1.0
size = "4KiB"
address = "sequential"
volumes = "even"
[[workload]]
name = "read 65536"
read = 1.0
size = "64KiB"
address = "sequential"
volumes = "even"
[[workload]]
name = "write 65536, 20"
read = 0.0
size = "64KiB"
count = 20
address = "sequential"
arrays = ["whole"]
[[workload]]
name = "write 65536, 40"
read = 0.0
size = "64KiB"
count = 40
address = "sequential"
arrays = ["whole"]

[load]
depths = [1]

[live]
groups = ["interface", "array"]
member_size = "2MiB"
memory_member_size = "2MiB"
repeats = 2
warmup = { requests = 1 }
measure = { requests = 12 }


[live.second_tool]
arrays = ["whole"]
workloads = ["read 65536"]
pairs = 2
warmup = { duration = "1ms" }
measure = { duration = "30ms" }

[[figure]]
number = "Sizes"
title = "by block"
draw = "sizes"
metrics = ["throughput_mb_s"]
workloads = ["read 4096", "read 65536"]
arrays = ["whole"]
also = [{ array = "halves", name = "two of half" }]
[[figure]]
number = "Amounts"
title = "by amount"
draw = "amounts"
metrics = ["throughput_mb_s"]
workloads = ["write 65536, 20", "write 65536, 40"]
arrays = ["whole"]
scale = "linear"
[[figure]]
number = "Tools"
title = "by jobs"
draw = "two_tools"
metrics = ["throughput_mb_s"]
workloads = ["read 65536"]
arrays = ["whole"]
"""
MEMBER_BYTES = 2 * 1024**2


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedStudy:
    file = tmp_path_factory.mktemp("study") / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    return load_study(file)


def _groups(*words: str) -> list[Group]:
    """Groups from words such as ``a/b=6``: so many members each."""
    found: list[Group] = []
    for word in words:
        names, _, count = word.partition("=")
        first = sum(len(group.members) for group in found)
        found.append(Group(tuple(names.split("/")), tuple(range(first, first + int(count)))))
    return found


def test_a_group_is_named_and_lists_its_places(tmp_path: Path) -> None:
    for name in ("x", "y", "z"):
        (tmp_path / name).mkdir()
    words = [f"0/a={tmp_path}/x/,{tmp_path}/x/,{tmp_path}/y/", f"0/b={tmp_path}/z/"]
    (target,) = resolve_targets(words)
    assert [(group.names, group.members) for group in target.groups] == [(("0", "a"), (0, 1, 2)), (("0", "b"), (3,))]
    assert len(target.places) == 4


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["a=memory", "sim"], "stand alone"),
        (["a=memory", "memory"], "stand alone"),
        (["a="], "is no group"),
        (["a//b=memory"], "is no group"),
        (["a=memory,,memory"], "is no group"),
        (["a=smi"], "is not a target"),
    ],
)
def test_what_is_no_group_is_refused(words: list[str], pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        resolve_targets(words)


def test_a_directory_may_have_an_equals_sign(tmp_path: Path) -> None:
    (tmp_path / "a=b").mkdir()
    (target,) = resolve_targets([str(tmp_path / "a=b")])
    assert not target.groups


def test_arrays_take_their_part_of_a_group(loaded: LoadedStudy) -> None:
    study, found = arranged(loaded, _groups("p/a=6", "q/b=6"), MEMBER_BYTES)
    assert found.members_of["whole"] == [0, 1, 2, 3, 4, 5]
    assert found.members_of["halves"] == [0, 1, 2, 3, 4, 5]
    assert found.members_of["two interfaces"] == list(range(12))
    assert found.members_of["three of it"] == [0, 1, 2]
    assert found.left_out == {
        "two arrays": "needs 2 groups, each with its own 'array' within one 'interface', and one is named"
    }
    assert not study.study.array[-1].runs_on("live")
    # The tree as it is run, in words that read back as the same tree.
    for name, text in found.trees.items():
        assert json.loads(_core.parse_tree(text)) == study.geometry.trees[name]
    assert study.geometry.facts("halves", MEMBER_BYTES, 4096)["leaves"] == 6


def test_volumes_are_equally_wide(loaded: LoadedStudy) -> None:
    _, found = arranged(loaded, _groups("p/a=7", "q/b=4"), MEMBER_BYTES)
    assert found.members_of["two interfaces"] == [0, 1, 2, 3, 7, 8, 9, 10]
    assert found.members_of["halves"] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("members", "left_out"), [(16, 0), (8, 3), (4, 6)])
def test_arrays_of_more_members_than_are_named_are_left_out(members: int, left_out: int) -> None:
    """Four drives of the user's run what a study asks of four, sixteen what it asks of eight and sixteen, too."""
    _, found = arranged(load_study("ou2007"), [Group(("0",), tuple(range(members)))], MEMBER_BYTES)
    said = {
        "4 x RAID 1": f"needs 8 members, and {members} are named",
        "RAID 10 of 8": f"needs 8 members, and {members} are named",
        "RAID 5 of 8": f"needs 8 members, and {members} are named",
        "8 x RAID 1": f"needs 16 members, and {members} are named",
        "RAID 10 of 16": f"needs 16 members, and {members} are named",
        "RAID 5 of 16": f"needs 16 members, and {members} are named",
    }
    assert found.left_out == dict(list(said.items())[len(said) - left_out :])
    assert found.members_of["2 x RAID 1"] == [0, 1, 2, 3]


def test_a_volume_that_is_there_is_one_member(loaded: LoadedStudy) -> None:
    _, found = arranged(loaded, _groups("p/a/0=1", "p/a/1=1", "p/b/0=1"), MEMBER_BYTES)
    assert found.members_of == {"whole": [0], "halves": [0, 1]}
    assert found.trees == {"whole": "member", "halves": "independent(2*member)"}
    assert set(found.left_out) == {"two interfaces", "three of it", "two arrays"}


def test_a_part_of_a_group_too_small_for_its_level_is_not_made_otherwise(loaded: LoadedStudy) -> None:
    _, found = arranged(loaded, _groups("p/a=3"), MEMBER_BYTES)
    assert found.left_out["halves"] == "cannot be made of 1 member a volume"
    _, found = arranged(loaded, _groups("p/a=4"), MEMBER_BYTES)
    assert found.left_out["halves"] == "cannot be made of 2 members a volume"
    _, found = arranged(loaded, _groups("p/a/0=1", "q/b/0=3"), MEMBER_BYTES)
    assert found.left_out["two interfaces"] == "has volumes of one member beside volumes of several"


def test_without_levels_each_volume_is_a_group(loaded: LoadedStudy) -> None:
    live = loaded.study.live.model_copy(update={"groups": []})
    plain = dataclasses.replace(loaded, study=loaded.study.model_copy(update={"live": live}))
    _, found = arranged(plain, _groups("a=3", "b=3"), MEMBER_BYTES)
    assert found.members_of["halves"] == [0, 1, 2, 3, 4, 5]
    assert found.members_of["three of it"] == [0, 1, 2]


@pytest.mark.parametrize(("words", "pattern"), [(["a=3"], "has 1 names"), (["a/b=3", "a/b=3"], "is named twice")])
def test_names_that_do_not_fit_are_refused(loaded: LoadedStudy, words: list[str], pattern: str) -> None:
    with pytest.raises(ValueError, match=pattern):
        arranged(loaded, _groups(*words), MEMBER_BYTES)


@pytest.fixture(scope="module")
def run(loaded: LoadedStudy, tmp_path_factory: pytest.TempPathFactory) -> Run:
    words = ["0/a=" + ",".join(["memory"] * 6)]
    return run_study(loaded, on=words, out=tmp_path_factory.mktemp("runs"))


def test_a_run_over_groups_keeps_how_its_arrays_lay(run: Run) -> None:
    assert run.facts["status"] == "complete"
    assert run.facts["members_of"]["halves"] == [0, 1, 2, 3, 4, 5]
    assert next(array for array in run.study.array if array.name == "whole").tree.startswith("parity(6*member")
    assert len(run.live_members("three of it")) == 3
    short = run.cells.filter(run.cells["workload"] == "write 65536, 20")
    assert list(short["all_requests"]) == [20, 20]
    # Nothing is discarded before it, and members in memory have no second tool.
    assert "two interfaces" not in set(run.cells["array"])
    assert "fio" in run.facts["second_tool"][0]["missing"]


def test_without_groups_there_is_one(loaded: LoadedStudy, tmp_path: Path) -> None:
    (tmp_path / "members").mkdir()
    run = run_study(loaded, on=[f"{tmp_path}/members/"], out=tmp_path / "runs")
    assert run.facts["status"] == "complete"
    assert run.facts["groups"] == [{"names": ["0", "0"], "members": list(range(12))}]
    assert set(run.facts["members_of"]) == {"whole", "halves", "three of it"}
    assert not list(tmp_path.rglob("member-*.dat"))


def test_a_complete_run_over_groups_is_only_read(run: Run) -> None:
    assert resume_run(run.folder).facts["members_of"] == run.facts["members_of"]


def test_sizes_and_amounts_are_drawn(run: Run) -> None:
    figures = {figure.title.partition(":")[0]: figure for figure in make_figures(analyse(run))}
    assert [panel.title for panel in figures["Sizes"].panels] == ["read"]
    assert [panel.title for panel in figures["Amounts"].panels] == ["write"]
    assert "Tools" not in figures
    assert all(any(letter.isdigit() for letter in panel.alt) for figure in figures.values() for panel in figure.panels)
    for figure in figures.values():
        assert figure.specifications()


def _read(run: Run, kind: str, **keys: object) -> float | None:
    reading = KINDS[kind].read(KINDS[kind].keys.model_validate(keys), Source(analyse(run), "live", run.folder))
    return None if reading is None else reading.value


def test_quantities_over_sizes_runs_and_amounts(run: Run) -> None:
    whole = {"metric": "iops", "array": "whole"}
    slope = _read(run, "sizes", of="slope", workloads="read *", **whole)
    rates = {
        row["workload"]: row["all_requests"] / row["elapsed_ns"]
        for row in run.cells.filter(run.cells["array"] == "whole").iter_rows(named=True)
    }
    assert slope is not None and rates["read 4096"] > 0
    # Between two sizes the line is the ratio of their rates; blocks sixteen times as large.
    points = {point.workload: point.per_s("all_requests") for point in analyse(run).points if point.array == "whole"}
    assert slope == pytest.approx(math.log(points["read 65536"] / points["read 4096"]) / math.log(16))
    knee = _read(run, "sizes", of="knee", workloads="read *", metric="throughput_mb_s", array="whole")
    assert knee is not None and 4096 <= knee <= 65536
    spread = _read(run, "runs", metric="iops", array="whole", workloads="read 4096")
    each = next(p for p in analyse(run).points if (p.array, p.workload) == ("whole", "read 4096"))
    alone = each.each_per_s("all_requests")
    assert spread == pytest.approx(100 * (max(alone) - min(alone)) / each.per_s("all_requests"))
    shortest = _read(run, "runs", of="shortest", array="whole", workloads="read 4096")
    assert shortest == pytest.approx(min(row["elapsed_ns"] for row in each.rows) / 1e9)
    settled = _read(run, "settles", array="whole", workloads="write 65536, *", within_percent=1e6)
    assert settled == pytest.approx(20 * 65536 / 1e6)
    assert _read(run, "settles", array="whole", workloads="write 65536, *", within_percent=1e-9) is None


@pytest.fixture
def told(run: Run) -> Run:
    """The same run, with what a second tool might have measured."""
    pairs = [
        {"raidlab": {"throughput_mb_s": own, "processors_busy": 0.5}, "fio": {"throughput_mb_s": other}, "first": "fio"}
        for own, other in ((100.0, 90.0), (104.0, 92.0), (96.0, 88.0))
    ]
    found = {"array": "whole", "workload": "read 65536", "depth": 1, "target": "/dev/x", "within_percent": 20.0}
    return dataclasses.replace(run, facts={**run.facts, "second_tool": [{**found, "pairs": pairs}]})


def test_a_second_tool_is_judged_drawn_and_told(told: Run) -> None:
    (finding,) = [one for one in run_checks(analyse(told)) if one.check == "second_tool"]
    assert finding.verdict == PASS
    assert "fio measured 90 MB/s, raidlab 100 (-10.0 %" in finding.evidence
    assert "4.4 and 8.0 %" in finding.evidence
    (figure,) = [one for one in make_figures(analyse(told)) if one.kind == "two_tools"]
    assert len(figure.panels) == 2
    assert figure.specifications()
    keys = {"array": "whole", "workload": "read 65536"}
    assert _read(told, "second_tool", tool="fio", **keys) == 90
    assert _read(told, "second_tool", tool="raidlab", of="spread", **keys) == pytest.approx(8)
    assert _read(told, "second_tool", tool="fio", depth=2, **keys) is None


def test_a_second_tool_that_disagrees_or_is_not_there_is_said(told: Run) -> None:
    (found,) = told.facts["second_tool"]
    for changed, verdict in (({"within_percent": 5.0}, WARN), ({"missing": "fio is not installed"}, UNKNOWN)):
        other = dataclasses.replace(told, facts={**told.facts, "second_tool": [{**found, **changed}]})
        (finding,) = [one for one in run_checks(analyse(other)) if one.check == "second_tool"]
        assert finding.verdict == verdict

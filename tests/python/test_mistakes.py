"""A study file with mistakes: each gives one clear line with place, value and what is accepted; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SMALL_STUDY
from raidlab.errors import InputError
from raidlab.study import load_study_text, study_names

TEN_MISTAKES = """\
name = "ten"
title = "Ten mistakes"
on = ["sim"]

[[array]]
name = "raid0"
tree = "raid0(4, chunk=64KiB)"
groop = "equal"

[[array]]
name = "raid6"
tree = "raid6(2)"

[[array]]
name = "odd chunk"
tree = "raid0(4, chunk=1000)"

[[array]]
name = "raid0"
tree = "raid0(6)"

[[array]]
name = "turned"
tree = "raid5(5, rotation=left_symetric)"

[[workload]]
name = "negative"
read = 1.0
size = "-8KiB"

[[workload]]
name = "too many reads"
read = 1.5
size = "8KiB"

[[workload]]
name = "beyond"
read = 0.5
size = { kind = "exponential", mean = "500TiB" }

[load]
depths = [1, 0]
hold = { target = { times_idle = 4, of = "raid9" } }

[sim]
device = "no-such-disk"
"""

EXPECTED = [
    (r"ten.toml:8: array\[0\].groop: unknown key; did you mean 'group'\?; accepted: group, name"),
    (r"ten.toml:12: array\[1\].tree: 'raid6\(2\)': RAID 6 .* at least 4"),
    (r"ten.toml:16: array\[2\].tree: .*chunk of 1000 bytes is not a multiple of the sector of 512.*accepted"),
    (r"ten.toml:19: array\[3\].name: 'raid0': is already the name of array\[0\]; accepted"),
    (r"ten.toml:24: array\[4\].tree: .*left_symetric.*left_symmetric"),
    (r"ten.toml:29: workload\[0\].size: '-8KiB': a size must be above 0; accepted: a size above 0"),
    (r"ten.toml:33: workload\[1\].read: 1.5: .*between 0 and 1; accepted"),
    (r"ten.toml:42: load.depths\[1\]: 0: must be at least 1; accepted"),
    (r"ten.toml:43: load.hold.target.of: 'raid9': is not the name of an array; did you mean .*accepted: .*raid0"),
    (r"ten.toml:46: sim.device: 'no-such-disk': there is no such device file.*accepted: .*hdd-7200"),
]


def _problems(text: str, file: str = "ten.toml") -> list[str]:
    with pytest.raises(InputError) as caught:
        load_study_text(text, Path(file))
    return [str(problem) for problem in caught.value.problems]


def test_ten_mistakes_give_ten_lines_in_the_order_of_the_file() -> None:
    import re

    # Without a device the volume has no size, so the mean beyond the volume has a test of its own below.
    lines = _problems(TEN_MISTAKES)
    assert len(lines) == len(EXPECTED)
    for line, pattern in zip(lines, EXPECTED, strict=True):
        assert re.search(pattern, line), line
        assert "\n" not in line


def test_the_command_line_reports_them_and_returns_2(tmp_path: Path) -> None:
    (tmp_path / "ten.toml").write_text(TEN_MISTAKES, encoding="utf-8")
    command = [sys.executable, "-c", "from raidlab.cli import main; main()", "run", "./ten.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    errors = done.stderr.splitlines()
    assert len(errors) == 11
    assert all(line.startswith("error: ten.toml:") for line in errors[:10])
    assert errors[10] == "10 mistakes; nothing was run"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("old", "new", "pattern"),
    [
        ('size = "8KiB"', 'size = { kind = "exponential", mean = "500TiB" }', "a mean of 500 TiB lies beyond"),
        (
            'size = "8KiB"',
            'size = { kind = "expo", mean = "8KiB" }',
            "size: 'expo': is not known here; did you mean 'exponential'",
        ),
        ('size = "8KiB"', 'size = "1000B"', "not a multiple of the sector"),
        (
            'size = "8KiB"',
            'size = { kind = "table", bytes = ["4KiB"], weights = [1, 2] }',
            "2 weights stand beside 1 sizes",
        ),
        ('reference = "raid0"', 'reference = "raid7"', "'raid7': is not the name of an array"),
        ('group = "equal"\ntitle', 'group = "equals"\ntitle', "no array is in this group; did you mean 'equal'"),
        ('on = ["sim"]', 'on = ["sm"]', "'sm': is not a target; did you mean 'sim'"),
        ('on = ["sim"]', 'on = ["original"]', r"needs a table \[original\]"),
        ("warmup = { requests = 200 }", "warmup = { request = 200 }", "unknown key; did you mean 'requests'"),
        ('duration = "30ms"', "duration = 30", "is a time without a unit"),
        ('name = "reads"\nread = 1.0', 'name = "reads"', r"workload\[0\].read: is missing; accepted: a share"),
        ("depths = [1, 8, 64]", "depths = [1, 8.5]", r"load.depths\[1\]: 8.5: is not a whole number"),
        ("depths = [1, 8, 64]", "open = { rates_per_s = [100] }", "an open loop cannot stand beside a closed one"),
        ("max_depth = 64", "maxdepth = 64", "unknown key; did you mean 'max_depth'"),
        ('name = "small"', 'name = "A B"', "is not a name"),
        ("title", "title =", "is not valid TOML"),
    ],
)
def test_single_mistakes(old: str, new: str, pattern: str) -> None:
    import re

    assert old in SMALL_STUDY
    lines = _problems(SMALL_STUDY.replace(old, new, 1))
    assert len(lines) == 1, lines
    assert re.search(pattern, lines[0]), lines[0]


def test_the_small_study_has_none() -> None:
    assert load_study_text(SMALL_STUDY, Path("small.toml")).study.name == "small"


def test_the_studies_that_come_with_raidlab_have_none() -> None:
    names = study_names()
    assert {"quickstart", "chen1990"} <= set(names)
    for file in names.values():
        load_study_text(file.read_text(encoding="utf-8"), file)

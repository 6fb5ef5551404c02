"""A study file with mistakes: each gives one clear line with place, value and what is accepted; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SMALL_STUDY
from raidlab.errors import InputError
from raidlab.study import load_study, load_study_text, study_names

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
    (
        r"ten.toml:8: array\[0\].groop: unknown key; did you mean 'group'\?; "
        "accepted: device, disks, events, group, load, missing"
    ),
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


COMPARED_TWICE = """group = "equal"
title = "A"
reference = "raid0"
equal = "user_capacity"
[[compare]]
group = "equal"
title"""


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
        (
            'group = "equal"\ntitle',
            COMPARED_TWICE,
            r"compare\[1\].group: 'equal': is compare\[0\]'s already",
        ),
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
        ('on = ["sim"]', "seed = " + "9" * 5000, "is not valid TOML"),
        ('on = ["sim"]', "on = " + "[" * 3000, "nested too deeply"),
        # What is there and wrong is not missing too.
        ("depths = [1, 8, 64]\nhold", "depths = [0]\n# hold", r"load.depths\[0\]: 0: must be at least 1"),
        ("depths = [1, 8, 64]\nhold", "depths = [1.5]\n# hold", r"load.depths\[0\]: 1.5: is not a whole number"),
        (
            "depths = [1, 8, 64]\nhold",
            "open = { rates_per_s = [0] }\n# hold",
            r"load.open.rates_per_s\[0\]: 0: must be above 0",
        ),
        (
            "depths = [1, 8, 64]\nhold",
            'open = { arrival = "h2", rates_per_s = [10], cv2 = 0.5 }\n# hold',
            "load.open.cv2: 0.5: must be above 1",
        ),
        ("depths = [1, 8, 64]\nhold", "depths = []\n# hold", "load: says no load; accepted: depths = "),
        (
            'target = { times_idle = 4, of = "raid0" }',
            'target = "fast"',
            r"hold.target: 'fast': is not a time; accepted",
        ),
        (
            'target = { times_idle = 4, of = "raid0" }',
            "target = 5",
            "hold.target: 5: is a time without a unit; accepted",
        ),
        ('target = { times_idle = 4, of = "raid0" }', 'target = { of = "raid0" }', "target.times_idle: is missing"),
        (
            'size = "8KiB"',
            'size = "8KiB"\ntask = [{ op = "read", same_extent_as = 0 }]',
            "no step comes before the first",
        ),
        (
            "depths = [1, 8, 64]",
            "depths = [100000000]",
            r"100000000: must be at most 65536; accepted: a number at most",
        ),
        ("depths = [1, 8, 64]", "depths = [99999999999999999999]", "must be at most 65536"),
        ("requests = 1500", "requests = 10000000000000", "must be at most 1000000000000"),
        ('size = "8KiB"', 'size = "8KiB"\naddress = { kind = "zipf", theta = inf }', "theta: inf: is not finite"),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "mixed", sequential = 0.6, local = 0.5, local_sd = "20MB" }',
            r"address.local: 0.5: and sequential = 0.6 are more than all; accepted: at most 0.4",
        ),
        ("depths = [1, 8, 64]\nhold", "open = { rates_per_s = [inf] }\n# hold", "inf: is not finite"),
        ("member_size", 'memory_member_size = "2000000TiB"\nmember_size', "a size must be at most 1 EiB"),
        ('duration = "30ms"', 'duration = "1000000d"', "'d' is not a unit of time"),
        ('duration = "30ms"', 'duration = "1000000min"', "a time must be at most a year"),
        (
            'title = "A',
            'title = "\\u0000A',
            r"title: '\\x00A small study': has a control character \(U\+0000\); accepted",
        ),
        ('title = "A', 'title = "\\u001b[31mA', r"has a control character \(U\+001B\)"),
        ('title = "Equal', 'title = "\\u202eEqual', r"has a control character \(U\+202E\)"),
        ('name = "writes"', 'name = "wri\\ntes"', r"workload\[1\].name: 'wri\\ntes': has a control character"),
        (
            'device = "hdd-7200',
            'device = { kind = "fixed", name = "a\\u0007b" } # "',
            r"name: .*: has a control character",
        ),
        ("read = 0.0", '"re\\u001bad" = 1\nread = 0.0', r"workload\[1\].re\\x1bad: unknown key"),
        ('name = "writes"', f'name = "{"w" * 61}"', r"name: 'w.*': is too long; accepted: at most 60 letters"),
        ('tree = "raid5(5, chunk=64KiB)"', 'tree = "raid5:-3"', "a number of members is expected at '-3'"),
        (
            'device = "hdd-7200-bare"',
            'device = { kind = "fixed", capacity_bytes = 1000000000, read_us = 0.0, write_us = 0.0 }',
            r"read_us: 0 us and next to nothing a byte; accepted: at least 0.001 us",
        ),
        (
            "[live]",
            "[live]\nquick = { fill_caches = false }",
            r"live.quick.fill_caches: unknown key; accepted: measure, member_size, repeats, warmup$",
        ),
    ],
)
def test_single_mistakes(old: str, new: str, pattern: str) -> None:
    import re

    assert old in SMALL_STUDY
    lines = _problems(SMALL_STUDY.replace(old, new, 1))
    assert len(lines) == 1, lines
    assert re.search(pattern, lines[0]), lines[0]


FAILS = 'events = [{ at = "1s", fail = 2 }]'


@pytest.mark.parametrize(
    ("keys", "pattern"),
    [
        ('events = [{ at = "1s", fail = "2" }]', r"events\[0\].fail: '2': is not a whole number"),
        ('events = [{ at = "1s", fail = true }]', r"events\[0\].fail: true: is not a whole number"),
        ('events = [{ at = "1s", fail = -1 }]', r"events\[0\].fail: -1: must be at least 0"),
        ('events = [{ at = "1s" }]', r"events\[0\]: does not say what befalls which member; accepted: "),
        ("events = [{ fail = 2 }]", r"events\[0\].at: is missing; accepted: a time with its unit, such as '0s'"),
        (
            'events = [{ at = "1s", slow = 2, times = 2 }, { at = "2s", slow = 2, times = 3 },'
            ' { at = "1000ms", slow = 2, times = 4 }]',
            r"events\[2\].slow: 2: how slow this member becomes at 1 s is said before; accepted: one of both, or an",
        ),
        ("events = [2]", r"events\[0\]: 2: is not a table; accepted: a table of keys: at, fail"),
        ("missing = [true]", r"missing\[0\]: true: is not a whole number"),
        # A rebuild beside a mistake is no second one.
        ('events = [{ at = "soon", fail = 2 }]\nrebuild = {}', r"events\[0\].at: 'soon': is not a time; accepted"),
        ('event = [{ at = "1s", fail = 2 }]\nrebuild = {}', r"event: unknown key; did you mean 'events'\?"),
        ('missing = ["2"]\nrebuild = {}', r"missing\[0\]: '2': is not a whole number"),
        ("rebuild = {}", r"rebuild: has nothing to rebuild; accepted: it beside missing"),
        (FAILS + '\nrebuild = "md"', r"rebuild: 'md': is not a table; accepted: a table of keys: after, thr"),
        (
            FAILS + '\nrebuild = { throttle = "rate" }',
            r"""throttle: 'rate': needs kib_s; accepted: \{ kind = "rate", kib_s = \.\.\. \} with a number""",
        ),
        (FAILS + '\nrebuild = { throttle = "share" }', "throttle: 'share': needs fraction; accepted"),
        (
            'policy = { sit_out = { hold = "0s" } }',
            r"sit_out\.hold: '0s': must be at least 1 s; accepted: a time at least 1 s",
        ),
        (
            FAILS + '\nrebuild = { unit = "32MiB" }',
            r"unit: '32MiB': must be at most 16 MiB; accepted: a size at most 16",
        ),
        (
            FAILS + '\nrebuild = { throttle = { kind = "rate", kib_s = 1e300 } }',
            r"kib_s: 1e\+300: must be below 4.29497e\+09; accepted: a number below 4.2",
        ),
        (FAILS + "\nrebuild = { throttle = 50 }", "throttle: 50: is not a table; accepted: a kind or a table of one"),
        (FAILS + "\nrebuild = { throttle = { depth = 8 } }", "throttle.kind: is missing; accepted: idle, md, rate"),
        (FAILS + '\nrebuild = { throttle = { kind = "rate", kib_s = true } }', "kib_s: true: is not a number"),
        (FAILS + '\nrebuild = { after = "-1s" }', "after: '-1s': a time must not be below 0; accepted: a time"),
        (FAILS + "\nrebuild = { after = 10 }", "after: 10: is a time without a unit"),
        (
            'tree = "raid0(4, chunk=64KiB)"\npolicy = { sit_out = {} }',
            r"policy.sit_out: no member of 'raid0\(4, chunk=64KiB\)' can sit out, since .*; accepted: a tree with",
        ),
        ('tree = "mounted"\n' + FAILS, r"events: is said of members, and a mounted array has none; accepted"),
    ],
)
def test_mistakes_of_a_bad_day(keys: str, pattern: str) -> None:
    import re

    before = 'tree = "raid5(5, chunk=64KiB)"'
    after = keys if keys.startswith("tree") else f"{before}\n{keys}"
    lines = _problems(SMALL_STUDY.replace(before, after, 1))
    assert len(lines) == 1, lines
    assert re.search(pattern, lines[0]), lines[0]


@pytest.mark.parametrize("keys", [{"at": "0s"}, {"after": "0s"}, {"watch": "0s"}])
def test_a_moment_may_be_at_once(keys: dict[str, str]) -> None:
    at = keys.pop("at", "1s")
    rebuild = ", ".join(f'{key} = "{value}"' for key, value in keys.items())
    more = f'events = [{{ at = "{at}", fail = 2 }}]\nrebuild = {{ {rebuild} }}'
    before = 'tree = "raid5(5, chunk=64KiB)"'
    load_study_text(SMALL_STUDY.replace(before, f"{before}\n{more}", 1), Path("small.toml"))


@pytest.mark.parametrize(
    ("content", "pattern"),
    [(b"\xff\xfe\x00binary", "is not text \\(UTF-8\\) from byte 0 on"), (b"\x7fELF\x02\x01", "is not valid TOML")],
)
def test_a_binary_file_is_no_study(content: bytes, pattern: str, tmp_path: Path) -> None:
    (tmp_path / "it.toml").write_bytes(content)
    with pytest.raises(InputError, match=pattern):
        load_study(tmp_path / "it.toml")


@pytest.mark.parametrize(("name", "pattern"), [("x" * 5000, "File name too long"), ("", "is empty"), (" ", "is empty")])
def test_names_that_can_name_nothing(name: str, pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        load_study(name)


def test_the_small_study_has_none() -> None:
    assert load_study_text(SMALL_STUDY, Path("small.toml")).study.name == "small"


def test_the_studies_that_come_with_raidlab_have_none() -> None:
    names = study_names()
    assert {"quickstart", "chen1990"} <= set(names)
    for file in names.values():
        load_study_text(file.read_text(encoding="utf-8"), file)


def test_what_a_file_says_without_end_is_cut() -> None:
    endless = "9" * 5000
    text = f"name = 'x'\n{endless} = 1\n[[array]]\nname = 'a'\ntree = 'raid5({endless})'\n"
    with pytest.raises(InputError) as caught:
        load_study_text(text, Path("study.toml"))
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems) > 2 and max(map(len, lines)) < 2000

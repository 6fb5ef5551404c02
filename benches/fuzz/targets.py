"""The parsers of raidlab that read what strangers may have written, each as a function of bytes.

Invariants:

- A parser takes its bytes, or refuses them with raidlab's own error: whatever else it raises is a defect.
- Nothing outside the folder that it is given is written, and no device or address is opened.
- A refusal is a sentence a mistake: not empty, not endless, and without a line break within a sentence.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from raidlab import _core, load_run
from raidlab.api import Analysis, analyse, choice_of, sheet_of
from raidlab.errors import InputError, RaidlabError
from raidlab.formats.disksim import import_disk, read_trace
from raidlab.formats.fio.cells import ImportSettings, import_jobs
from raidlab.formats.fio.options import load_job_file
from raidlab.formats.fio.places import FILE, FileStatus
from raidlab.formats.fio.result import parse_result
from raidlab.formats.toml import toml_text
from raidlab.formats.traces import convert_trace, trace_facts
from raidlab.histogram import Histogram
from raidlab.measure.fit.kept import KeptFacts, KeptList, KeptMeasurements
from raidlab.measure.fit.situations import Situation
from raidlab.measure.fit.table import Sample
from raidlab.published.compare import compare_run
from raidlab.published.compare.left_out import read_left_out
from raidlab.published.quantities import check_measures
from raidlab.recommend.load import load_need
from raidlab.results.foreign import read_foreign
from raidlab.results.tables import TABLES
from raidlab.study.device import load_device
from raidlab.study.expand import expand
from raidlab.study.expression import read as read_expression
from raidlab.study.load import LoadedStudy, load_study_text
from raidlab.study.mapping import load_mapping
from raidlab.study.units import parse_bytes, parse_time_ns

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import disksim_files  # noqa: E402 - a module of the tests

# What a mistake may take to say: all of a study's, each cut to a line.
_LONGEST_SENTENCE = 4000
_MEMBER_BYTES = 1 << 30
# Places in texts where parsers have their limits.
WORDS = (
    b"", b"\0", b"\n", b"\r\n", b"\x1b[31m", b"\xff", "\N{SNOWMAN}".encode(), b"=", b"-", b"-1", b"0", b"1", b"0.5",
    b"1e308", b"1e999", b"1/0", b"nan", b"inf", b"9**9**9", b"4294967296", b"18446744073709551616", b"9" * 5000,
    b"0x" + b"F" * 4000, b"1000000000", b"(" * 300, b"[" * 300, b"{" * 300, b'"', b"'", b",", b":", b"*", b"/dev/null",
    b"../../x", b"KiB", b"ms", b"true", b"\\u0000", b"\\ud800",
    b"a." * 30, b"2024-01-01", b"12:00:00", b"\xef\xbb\xbf", b"D d { A = ",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A parser.

    Attributes
    ----------
    name : str
    examples : callable
        Inputs that it takes, from which others are made.
    parse : callable
        Given the bytes and an empty folder.
    """

    name: str
    examples: Callable[[], list[bytes]]
    parse: Callable[[bytes, Path], None]

    def check(self, data: bytes, folder: Path) -> bool:
        """Parse; a refusal must be in words, and all else that is raised is passed on. True unless it was refused."""
        try:
            self.parse(data, folder)
            return True
        except (RaidlabError, _core.CellError) as error:
            sentences = str(error).splitlines()
            assert sentences and all(line.strip() for line in sentences), f"says nothing: {error!r}"
            assert max(map(len, sentences)) <= _LONGEST_SENTENCE, f"says too much: {str(error)[:200]}"
            if isinstance(error, InputError):
                assert len(sentences) <= len(error.problems), f"not one line a mistake: {str(error)[:200]}"
            return False


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _files(pattern: str) -> list[bytes]:
    found = [file.read_bytes() for file in sorted(ROOT.glob(pattern))]
    assert found, f"no example: {pattern}"
    return found


@contextmanager
def _value_errors() -> Iterator[None]:
    """Where the contract is a ValueError with a sentence."""
    try:
        yield
    except ValueError as error:
        # Whoever reports it puts it on one line.
        raise RaidlabError(" ".join(str(error).split())) from None


def _study(data: bytes, folder: Path) -> None:
    loaded = load_study_text(_text(data), folder / "study.toml")
    for target in ("sim", "emulated", "live", "original"):
        if getattr(loaded.study, target, None) is not None:
            expand(loaded.study, target, seed=1, quick=True)


def _device(data: bytes, folder: Path) -> None:
    (folder / "device.toml").write_bytes(data)
    try:
        load_device(str(folder / "device.toml"), folder)
    except ValueError as error:
        raise RaidlabError(str(error)) from None


def _tree(data: bytes, _folder: Path) -> None:
    tree = _core.parse_tree(_text(data))
    facts = _core.tree_facts(tree, _MEMBER_BYTES, 512)
    assert facts["user_bytes"] <= _MEMBER_BYTES * facts["leaves"]
    if facts["leaves"] <= 64:
        _core.layout_map(tree, 4)


def _trace(data: bytes, folder: Path) -> None:
    names = [name for name, _ in _core.trace_formats()]
    file, copy = folder / "trace", folder / "copy"
    file.write_bytes(data[1:])
    number = data[0] if data else 0
    name = names[number] if number < len(names) else None
    facts = trace_facts(file, name)
    for other in names:
        # A format that has no room for what another says refuses it.
        with suppress(InputError):
            count = convert_trace(file, copy, other, name)
            again = trace_facts(copy, other)
            assert again.requests == count == facts.requests, f"{other}: {count} written, {again.requests} read"


def _fio(data: bytes, folder: Path) -> None:
    file = folder / "job.fio"
    file.write_bytes(data)
    (folder / "other.inc").write_text("norandommap=1\n")
    jobs = load_job_file(file, environment={"SIZE": "1m"})
    import_jobs(jobs, ImportSettings(), lambda _path: FileStatus(FILE, _MEMBER_BYTES))


def _fio_result(data: bytes, _folder: Path) -> None:
    parse_result(_text(data))


def _disksim(data: bytes, folder: Path) -> None:
    file = disksim_files.write(folder)
    file.write_bytes(data)
    imported = import_disk(file)
    toml_text(imported.device)


def _disksim_seek(data: bytes, folder: Path) -> None:
    file = disksim_files.write(folder)
    (folder / "small.seek").write_bytes(data)
    toml_text(import_disk(file).device)


def _disksim_trace(data: bytes, folder: Path) -> None:
    (folder / "trace").write_bytes(data)
    read_trace(folder / "trace")


def _expression(data: bytes, _folder: Path) -> None:
    known = {"a": 4.0, "b": 0.0, "c": 1e300, "d": "word"}
    with _value_errors():
        expression = read_expression(_text(data))
    if expression.names <= known.keys():
        with _value_errors():
            expression.value(known)


def _quantity(data: bytes, _folder: Path) -> None:
    text = _text(data)
    for parse in (parse_bytes, parse_time_ns):
        with suppress(ValueError):
            assert 0 <= parse(text) < 1 << 80


_FIXTURE = ROOT / "tests" / "python" / "fixtures" / "run-schema-7"


@cache
def _run_files() -> list[str]:
    return ["run.json", "parts.jsonl", *sorted(file.name for file in _FIXTURE.glob("*.parquet"))]


def _run_example() -> list[bytes]:
    facts = json.loads((_FIXTURE / "run.json").read_bytes())
    parts = "\n".join(json.dumps(part) for part in ({"facts": facts}, {"rank": [0, 0], "row": {}}, {"rank": [1]}))
    texts = {"parts.jsonl": parts.encode() + b"\n"}
    content = [texts.get(name) or (_FIXTURE / name).read_bytes() for name in _run_files()]
    return [bytes([number]) + data for number, data in enumerate(content)]


def _run_folder(data: bytes, folder: Path) -> None:
    """A run folder of which one file is a stranger's; the first byte says which."""
    name = _run_files()[data[0] % len(_run_files())] if data else "run.json"
    place = folder / "run"
    shutil.copytree(_FIXTURE, place)
    if name == "parts.jsonl":
        (place / "run.json").unlink()
    if name.endswith(".parquet"):
        # Else the hash of each table says that it is another.
        facts = json.loads((place / "run.json").read_bytes())
        facts.pop("tables", None)
        (place / "run.json").write_text(json.dumps(facts))
    (place / name).write_bytes(data[1:])
    run = load_run(place)
    for table in TABLES:
        getattr(run, table)
    assert isinstance(run.facts["study"], dict)


# A study with a run, and all that may stand beside it of what was published; each is fuzzed among the others.
_PUBLISHED_RUN = ROOT / "tests" / "python" / "fixtures" / "run-schema-12"
_METRIC = '{ kind = "metric", array = "raid0", workload = "mixed", metric = "response_time_ms_mean", at = "heaviest" }'
_SERVED = '{ kind = "metric", array = "{level}", workload = "mixed", metric = "throughput_mb_s", at = "idle" }'
_PUBLISHED = {
    "quantities.toml": f"""target = "sim"
[measure]
a = {_METRIC}
d = {{ kind = "device", key = "sector_bytes" }}
[called]
raid0 = "striping"
[claim.c1]
value = "a"
[claim.c2]
value = "100 * a / d"
published_with = {{ N = 2 }}
why = "of the model"
[claim.c3]
not_evaluated = "nobody could"
[derived.half]
value = "a / 2"
unit = "ms"
[conclusion.slow]
says = "It is slow."
holds = "a > 3 or about(a, 2)"
[given]
"t1:raid0,4096:*" = "an input"
[fit]
parameters = {{ seek = [1, 2] }}
to = ["c1"]
held_out = ["*"]
""",
    "columns.toml": f"""[[table]]
file = "t*.csv"
[table.key]
level = "level"
size = "size_bytes"
[[table.skip]]
rows = "size > 5000"
why = "not run"
[[table.miss]]
rows = "level == 'raid1'"
why = "of the model"
[table.measure]
b = {_SERVED}
[table.word.level]
from = "level"
mirror = "raid1"
[table.column.rate]
value = "b"
up_to = "most"
unit = "MB/s"
[table.order.fastest]
by = "level"
holds = {{ raid0 = "b > a" }}
not_evaluated = {{ mirror = "as printed" }}
""",
    "published/claims.csv": """id,topic,kind,value,unit,low,high,conditions,where,checkable_by,note
c1,time,value,12.5,ms,,,at once,Table 1,simulation,
c2,share,ratio,1/N,,.5,1,,Figure 2,simulation,a remark
c3,order,ordinal,a > b,,,,,Section 3,none,
""",
    "published/t1.csv": """level,size_bytes,rate,most,fastest
raid0,4096,1.5,2,yes
mirror,4096,.9,1/2,no
raid0,8192,3,4,yes
""",
    "left-out.toml": '"c1" = 12.5\n',
    "choice.toml": """title = "Choice"
[price]
disk = 100
[candidate]
r0 = { array = "raid0", numbers = { user = 1 } }
r1 = { array = "raid1", numbers = { user = 0.5 } }
[figure.time]
title = "time, mean"
unit = "ms"
want = "least"
measure = { kind = "metric", workload = "mixed", metric = "response_time_ms_mean", at = "idle" }
[figure.value]
title = "value"
want = "most"
value = "user / (time * disk)"
[total_time]
alone = "time"
each = "time"
candidates = ["r0", "r1"]
[[rule]]
when = "time matters"
says = "the fastest"
choose = ["r0"]
by = "time"
[[rule]]
when = "mirrors are slow"
says = "stripes"
holds = "time_r0 < time_r1"
sides = ["time_r0", "time_r1"]
""",
    "sheet.toml": """title = "Sheet"
baseline = "raid1"
[[test]]
name = "1 time"
measure = { kind = "metric", workload = "mixed", metric = "throughput_mb_s", at = "idle" }
kind = "qualifying"
at_least = 10
""",
}


@cache
def _published_run() -> tuple[Analysis, LoadedStudy]:
    run = analyse(_PUBLISHED_RUN)
    return run, load_study_text(str(run.run.facts["study"]["text"]), _PUBLISHED_RUN / "study.toml")


def _published(data: bytes, folder: Path) -> None:
    """A study's folder with a run of it, in which one file is a stranger's; the first byte says which."""
    names = list(_PUBLISHED)
    (folder / "published").mkdir()
    for name, text in _PUBLISHED.items():
        (folder / name).write_text(text)
    (folder / names[data[0] % len(names)] if data else folder / names[0]).write_bytes(data[1:])
    run, study = _published_run()
    loaded = replace(study, file=folder / "study.toml")
    # What one of them refuses must not keep the others from it.
    asked: tuple[Callable[[], object], ...] = (
        lambda: check_measures(folder),
        lambda: compare_run(run, load_mapping(loaded.file)),
        lambda: read_left_out(folder),
        lambda: choice_of(run, loaded),
        lambda: sheet_of(run, loaded),
    )
    refused: list[RaidlabError] = []
    for ask in asked:
        try:
            ask()
        except RaidlabError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _published_examples() -> list[bytes]:
    return [bytes([number]) + text.encode() for number, text in enumerate(_PUBLISHED.values())]


def _hardware(data: bytes, folder: Path) -> None:
    """The parameters of a study's hardware, and its device with them in."""
    (folder / "of.parameters.toml").write_bytes(data)
    study = """name = "s"
title = "S"
[[array]]
name = "a"
tree = "raid5(3, chunk=64KiB)"
[[workload]]
name = "w"
read = 0.5
size = "4KiB"
[load]
depths = [1]
[original]
device = "hdd-7200"
parameters = "./of.parameters.toml"
host = { cpus = "$processors", request = "$request", access = "$access", completion = "$completion" }
"""
    loaded = load_study_text(study, folder / "study.toml")
    expand(loaded.study, "original", seed=1, quick=True)


_NEED = """[[devices]]
device = "hdd-7200"
at_most = 6
price = 100
watts = 8
afr_percent = 1.5
[[workload]]
name = "mail"
read = 0.7
size = "8KiB"
load = { depths = [16] }
[need]
capacity = "2TB"
p99 = "50ms"
tolerate = 1
"""


_PRICES = 'currency = "EUR"\ndated = "2026-11"\n[price]\nhdd-7200 = 90\n'


def _need(data: bytes, folder: Path) -> None:
    """What `recommend` is asked, or the list of prices beside it; the first byte says which."""
    need, prices = folder / "need.toml", folder / "prices.toml"
    need.write_text(_NEED)
    prices.write_text(_PRICES)
    (prices if data[:1] == b"\x01" else need).write_bytes(data[1:])
    load_need(need, prices=prices)


def _kept_fit(data: bytes, folder: Path) -> None:
    """What `device fit --keep` kept, from which a fit is made."""
    (folder / "probe.parquet").write_bytes(data)
    KeptMeasurements.read(folder / "probe.parquet")


def _kept_fit_examples() -> list[bytes]:
    facts = KeptFacts("disk", 1 << 30, "a disk", 1, 10**9, writes=False)
    situation, times = Situation("read", "random", 4096, 1), Histogram.of({"value_ns": [10**6], "count": [9]})
    sample = Sample(situation, 0, 9, 9 * 10**6, 1e6, 1e6, times)
    asked = KeptList("read", 512, np.array([0, 512]), "an error of the device")
    return [KeptMeasurements(facts, [sample], [asked]).parquet()]


def _foreign(data: bytes, folder: Path) -> None:
    (folder / "foreign.csv").write_bytes(data)
    read_foreign(folder / "foreign.csv")


def _trace_examples() -> list[bytes]:
    lines = [
        b"128166372003061629,usr,0,Read,10995532800,16384,30123\n128166372016382155,usr,0,Write,2517696,4096,2\n",
        b"0,303567,3584,w,0.026214\n1,1209856,4096,r,0.026682\n",
        b"  8,0    1        1     0.000000000  4162  Q   R 383496192 + 64 [fio]\n"
        b"  8,0    1        2     0.000001829  4162  C   W 383496192 + 64 [0]\n",
        b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda wait 10\n/dev/sda close\n",
        b"fio version 3 iolog\n0 /dev/sda add\n1 /dev/sda open\n2 /dev/sda write 8192 4096\n9 /dev/sda close\n",
        b"0.5 0 1024 8 1\n1.25 0 2048 16 0\n",
        b"R Hit 1024 16 10 5.5\nW Miss 2048 16 10 7.25\n",
        b"1,R,126703644672,4096,1577808000000026\n1,W,8192,512,1577808000000046\n",
        b"1538323200,12910952,128,0,1063\n1538323201,6265688,8,1,1004\n",
    ]
    return [bytes([number]) + text for number, text in enumerate(lines)] + [b"\xff" + lines[0]]


_FIO_DIRECTION = {
    "total_ios": 10, "io_bytes": 40960, "iops": 1.5, "bw_bytes": 6144.0, "runtime": 6000, "drop_ios": 0, "short_ios": 0,
    "clat_ns": {"min": 1, "max": 9, "mean": 2.5, "stddev": 1.0, "N": 10, "bins": {"100": 4, "200": 6}},
    "lat_ns": {"min": 1, "max": 9, "mean": 2.5, "stddev": 1.0, "N": 10},
}  # fmt: skip
_FIO_RESULT = {
    "fio version": "fio-3.33",
    "jobs": [{"jobname": "a", "error": 0, "job_runtime": 6000, "read": _FIO_DIRECTION, "write": _FIO_DIRECTION}],
}

TARGETS = (
    Target("study", lambda: _files("studies/*/study.toml"), _study),
    Target("device", lambda: _files("devices/*.toml"), _device),
    Target(
        "tree",
        lambda: [b"raid5(5, chunk=64KiB)", b"raid10:8", b"stripe(mirror(2), mirror(2), chunk=4K)", b"raid6(6)"],
        _tree,
    ),
    Target("trace", _trace_examples, _trace),
    Target(
        "fio",
        lambda: [
            b"[global]\nrw=randrw\nbs=4k\nsize=1g\n"
            b"[a]\nrwmixread=70\niodepth=8\ninclude other.inc\n[b]\nstonewall\nrate_iops=100\n",
            b"[j]\nfilename=/tmp/x:/tmp/y\nbssplit=4k/60:64k/40\nrandom_distribution=zipf:1.2\nnumjobs=4\nsize=${SIZE}\n",
        ],
        _fio,
    ),
    Target(
        "fio_result",
        lambda: [json.dumps(_FIO_RESULT).encode()],
        _fio_result,
    ),
    Target(
        "disksim",
        lambda: [
            text.encode()
            for text in (
                disksim_files.SET_UP,
                disksim_files.specs(),
                disksim_files.model(),
                disksim_files.PARAMETERS["Model"],
            )
        ],
        _disksim,
    ),
    Target("disksim_seek", lambda: [disksim_files.SEEK.encode(), b"4, 2.0\n40, 6.0, 0.1\n"], _disksim_seek),
    Target("disksim_trace", lambda: [b"R Hit 1024 16 10 5.5\nW Miss 2048 16 10 7.25\n"], _disksim_trace),
    Target(
        "expression",
        lambda: [b"100 * b / a", b"a > b and about(a, 4.1)", b"max(a, b) if not a < c else -sqrt(a) ** 2", b"'x' == d"],
        _expression,
    ),
    Target("quantity", lambda: [b"64KiB", b"1.5 GB", b"4K", b"10ms", b"2 h", b"1e3us"], _quantity),
    Target("run_folder", _run_example, _run_folder),
    Target("published", _published_examples, _published),
    Target("hardware", lambda: _files("devices/original/ich8r.parameters.toml"), _hardware),
    Target("need", lambda: [b"\0" + _NEED.encode(), b"\x01" + _PRICES.encode()], _need),
    Target("kept_fit", _kept_fit_examples, _kept_fit),
    Target("foreign", lambda: [b"controller,level,workload,depth,iops,drives\nA,raid5,mail,8,431.5,4\n"], _foreign),
)

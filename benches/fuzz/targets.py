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
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from raidlab import _core, load_run
from raidlab.errors import InputError, RaidlabError
from raidlab.formats.disksim import import_disk, read_trace
from raidlab.formats.fio.cells import ImportSettings, import_jobs
from raidlab.formats.fio.options import load_job_file
from raidlab.formats.fio.places import FILE, FileStatus
from raidlab.formats.fio.result import parse_result
from raidlab.formats.toml import toml_text
from raidlab.formats.traces import convert_trace, trace_facts
from raidlab.results.tables import TABLES
from raidlab.study.device import load_device
from raidlab.study.expand import expand
from raidlab.study.expression import read as read_expression
from raidlab.study.load import load_study_text
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
    b"1e999", b"nan", b"inf", b"9**9**9", b"4294967296", b"18446744073709551616", b"9" * 5000, b"1000000000",
    b"(" * 300, b"[" * 300, b"{" * 300, b'"', b"'", b",", b":", b"/dev/null", b"../../x", b"KiB", b"ms", b"true",
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
    Target("disksim_trace", lambda: [b"R Hit 1024 16 10 5.5\nW Miss 2048 16 10 7.25\n"], _disksim_trace),
    Target(
        "expression",
        lambda: [b"100 * b / a", b"a > b and about(a, 4.1)", b"max(a, b) if not a < c else -sqrt(a) ** 2", b"'x' == d"],
        _expression,
    ),
    Target("quantity", lambda: [b"64KiB", b"1.5 GB", b"4K", b"10ms", b"2 h", b"1e3us"], _quantity),
    Target("run_folder", _run_example, _run_folder),
)

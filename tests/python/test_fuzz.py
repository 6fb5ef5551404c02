"""The parsers of what strangers may have written, for seconds; `benches/fuzz/run.py` does the same for hours."""

from __future__ import annotations

import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches" / "fuzz"))

from mutation import mutated  # noqa: E402 - beside the script that fuzzes for hours
from targets import TARGETS, WORDS  # noqa: E402 - as above

# Of each parser, in time of the processor: a machine that stalls does not count.
_SECONDS = 2.0
_INPUTS = 400
_SLOW_S = 10.0
_MOST_KIB = 2 << 20


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_examples_are_taken(target, tmp_path):
    taken = 0
    for number, example in enumerate(target.examples()):
        folder = tmp_path / str(number)
        folder.mkdir()
        taken += target.check(example, folder)
    assert taken, "a parser that refuses every example is not reached by what is made from them"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.slow
def test_any_input_is_taken_or_refused_in_words(target):
    examples, began = target.examples(), time.process_time()
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(_INPUTS):
        before = time.process_time()
        if before - began > _SECONDS:
            break
        data = mutated(examples, WORDS, Random(number))
        with tempfile.TemporaryDirectory(prefix="raidlab-fuzz-") as folder:
            try:
                target.check(data, Path(folder))
            except BaseException as error:
                pytest.fail(f"input {number}, {data[:500]!r}: {type(error).__name__}: {error}")
        assert time.process_time() - before < _SLOW_S, f"input {number}, {data[:500]!r} takes too long"
    assert number > 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib < _MOST_KIB


@pytest.mark.parametrize("file", sorted((ROOT / "benches/fuzz/found").glob("*")), ids=lambda file: file.name)
def test_what_was_found_once_is_refused_in_words(file, tmp_path):
    target = next(target for target in TARGETS if file.name.startswith(f"{target.name}-"))
    target.check(file.read_bytes(), tmp_path)


def test_every_promise_to_users_names_a_test_that_is_there():
    page = (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    missing = [(file, name) for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    rows = [row for row in page.splitlines() if row.startswith("| ") and not row.startswith("| promise")]
    assert len(rows) > 10 and not [row for row in rows if "::test_" not in row] and not missing

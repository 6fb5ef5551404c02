"""What the parser of commands refuses is one line like any other mistake: place, value, what is accepted; code 2."""

from __future__ import annotations

import sys

import pytest

from raidlab.cli import main

MISTAKES = {
    "recommend --tolerate two": "--tolerate: 'two': is not accepted; accepted: a whole number",
    "recommend --seed=1e3": "--seed: '1e3': is not accepted; accepted: a whole number",
    "recommend --p98 3ms": "--p98: is no option of raidlab recommend; accepted: --p90, --p95, --p99",
    "recommend --p99": "--p99: needs a value behind it; accepted: the value after a space, or after =",
    "layout": "TREE: is missing; accepted: a tree, such as raid5:5",
    "layout raid5:5 --rows 0": "--rows: '0': is not accepted; accepted: ",
    "device fit memory --kind banana": "--kind: 'banana': is not accepted; accepted: 'auto', 'hdd', 'table'",
    "run a b": "raidlab run: got unexpected extra argument",
    "frobnicate": "raidlab: no such command 'frobnicate'",
    "device frobnicate": "raidlab device: no such command 'frobnicate'",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_words_that_no_command_has(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["raidlab", *words.split()])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.startswith(f"error: {MISTAKES[words]}") and said.count("\n") == 1 and "; accepted: " in said, said

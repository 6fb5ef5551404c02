"""Lines of keys in TOML text."""

from __future__ import annotations

from raidlab.study.places import line_index, line_of, written

TEXT = '''\
name = "x"
description = """
not = "a key"
"""
[[array]]
name = "a"
[[array]]
name = "b"   # tree = "no key either"
[array.policy]
parity_read = "skip"
[load.hold]
target = { times_idle = 4, of = "a" }
'''


def test_keys_are_found_where_they_stand() -> None:
    lines = line_index(TEXT)
    assert lines["name",] == 1
    assert lines["array", 0, "name"] == 6
    assert lines["array", 1, "name"] == 8
    assert lines["array", 1, "policy", "parity_read"] == 10
    assert ("not",) not in lines


def test_what_is_missing_has_the_line_of_what_encloses_it() -> None:
    lines = line_index(TEXT)
    assert line_of(lines, ("array", 1, "tree")) == 7
    assert line_of(lines, ("load", "hold", "target", "of")) == 12
    assert line_of(lines, ("nowhere",)) is None


def test_places_are_written_as_people_read_them() -> None:
    assert written(("array", 2, "tree")) == "array[2].tree"
